"""The training card: what a run was and what came of it, as JSON and as Markdown."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from pathlib import Path

from radii.errors import TrainingError
from radii.training._checkpoints import Epoch, replacing
from radii.training._settings import TrainingSettings

CARD_JSON_FILE = "card.json"
CARD_MARKDOWN_FILE = "card.md"


@dataclass(frozen=True, slots=True)
class DataSummary:
    """Which images; `fingerprint` is the sha256 of their values and labels."""

    title: str
    images: int
    shape: tuple[int, ...]
    fingerprint: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """Accuracies are shares of the images of `tested`, none of which was trained on if `held_out`.

    `robust_accuracy` is the share of the first `attacked` of them that PGD of `attack_steps` steps
    did not break: an upper bound, no proof. `seconds` are wall time without tests.
    `largest_difference` is that between the outputs of the module and of the exported file on real
    images.
    """

    architecture: str
    parameters: int
    settings: TrainingSettings
    data: DataSummary
    tested: DataSummary
    held_out: bool
    accuracy: float
    robust_accuracy: float
    attacked: int
    attack_steps: int
    seconds: float
    history: tuple[Epoch, ...]
    network: str
    network_fingerprint: str
    largest_difference: float
    versions: dict[str, str]

    @property
    def overlap(self) -> str:
        """What to say of tested images that were trained on; empty if there are none."""
        if self.held_out:
            return ""
        some = "" if self.tested == self.data else "some of "
        return f"{some}which it was trained on"

    def as_json(self) -> str:
        return json.dumps(dataclasses.asdict(self), indent=2) + "\n"

    def markdown(self) -> str:
        """A page for people."""
        settings, tested = self.settings, self.tested
        steps = f", times {settings.rate_factor:g} every {settings.rate_step} epochs"
        rows = {
            "architecture": f"{self.architecture}, {self.parameters:,} parameters",
            "data": _data_text(self.data),
            "regime": settings.regime,
            "epochs": f"{settings.epochs} of batches of {settings.batch}",
            "optimizer": f"{settings.optimizer}, rate {settings.rate:g}"
            + (steps if settings.rate_step else "")
            + (f", weight decay {settings.weight_decay:g}" if settings.weight_decay else ""),
            **({"class weights": settings.class_weights} if settings.class_weights else {}),
            "seed": str(settings.seed),
            "time": f"{self.seconds:.1f} s",
            "tested on": _data_text(tested) + (f", **{self.overlap}**" if self.overlap else ""),
            "accuracy": f"{self.accuracy:.4f}",
            f"accuracy under PGD, eps {settings.eps:g}": f"{self.robust_accuracy:.4f} of the first "
            f"{self.attacked} images, {self.attack_steps} steps; an upper bound of the robust "
            "accuracy",
            "network": f"{self.network}, fingerprint {self.network_fingerprint[:12]}; outputs on "
            f"ONNX Runtime differ from torch by at most {self.largest_difference:.2g}",
            "versions": ", ".join(f"{name} {version}" for name, version in self.versions.items()),
        }
        table = [f"| {name} | {value} |" for name, value in rows.items()]
        return (
            "\n".join([f"# {self.architecture}, {settings.regime}", "", "| | |", "|---|---|"])
            + "\n"
            + "\n".join([*table, "", *_history(self.history)])
            + "\n"
        )

    def write(self, directory: Path) -> None:
        """`card.json` and `card.md`."""
        for name, text in ((CARD_JSON_FILE, self.as_json()), (CARD_MARKDOWN_FILE, self.markdown())):
            with replacing(directory / name) as path:
                path.write_text(text, "utf-8", errors="backslashreplace")  # names of files

    @classmethod
    def read(cls, directory: Path) -> Card:
        """From `card.json` in a directory of `radii train`."""
        path = directory / CARD_JSON_FILE
        try:
            fields = json.loads(path.read_text("utf-8"))
            for name in ("data", "tested"):
                fields[name]["shape"] = tuple(fields[name]["shape"])
                fields[name] = DataSummary(**fields[name])
            fields["settings"] = TrainingSettings(**fields["settings"])
            fields["history"] = tuple(Epoch(**epoch) for epoch in fields["history"])
            return cls(**fields)
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise TrainingError(f"{path}: cannot be read as a training card ({error})") from None


def _data_text(data: DataSummary) -> str:
    shape = "x".join(map(str, data.shape))
    return f"{data.title}, {data.images:,} images of {shape} (sha256 {data.fingerprint[:12]})"


def _history(history: tuple[Epoch, ...]) -> list[str]:
    lines = ["| epoch | loss | accuracy | under PGD | rate |", "|---:|---:|---:|---:|---:|"]
    for epoch in history:
        if epoch.accuracy is not None and epoch.robust_accuracy is not None:
            lines.append(
                f"| {epoch.number} | {epoch.loss:.4f} | {epoch.accuracy:.3f} | "
                f"{epoch.robust_accuracy:.3f} | {epoch.rate:.3g} |"
            )
    return lines
