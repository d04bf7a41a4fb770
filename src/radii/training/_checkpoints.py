"""The state of a training run in one file, replaced as a whole, so that a kill loses little."""

from __future__ import annotations

import dataclasses
import os
import pickle
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from radii.errors import TrainingError, first_line
from radii.processes import take_lock
from radii.training._optimizers import Optimizer
from radii.training._settings import TrainingSettings

CHECKPOINT_FILE = "checkpoint.pt"
CHECKPOINT_FORMAT = 1


@dataclass(frozen=True, slots=True)
class Epoch:
    """What was seen in one epoch, counted from 1. Epochs that were not tested have no accuracy."""

    number: int
    loss: float
    rate: float
    seconds: float
    accuracy: float | None = None
    robust_accuracy: float | None = None


@dataclass(slots=True)
class TrainingState:
    """Where a run stands: whole epochs, batches of the next one and the sum of their losses.

    `weights` are the classes' in the next epoch's loss; none where all count alike.
    """

    epoch: int = 0
    batches: int = 0
    loss: float = 0.0
    seconds: float = 0.0
    history: list[Epoch] = field(default_factory=list)
    weights: list[float] = field(default_factory=list)


class Checkpoint:
    """Takes the state of a run, and writes it on request; `purpose` is what else must agree."""

    def __init__(
        self, directory: Path | None, settings: TrainingSettings, purpose: dict[str, str]
    ) -> None:
        self.path = None if directory is None else directory / CHECKPOINT_FILE
        self.settings = settings
        self.purpose = purpose
        self._taken: dict[str, Any] | None = None

    def take(self, module: nn.Module, optimizer: Optimizer, progress: TrainingState) -> None:
        """Remember the state as it is now; a TrainingError if a parameter is not finite."""
        state = {name: tensor.detach().clone() for name, tensor in module.state_dict().items()}
        for name, tensor in state.items():
            if tensor.is_floating_point() and not bool(tensor.isfinite().all()):
                raise TrainingError(
                    f"training diverged: '{name}' holds values that are not finite after epoch "
                    f"{progress.epoch}; lower the learning rate"
                )
        self._taken = {
            "format": CHECKPOINT_FORMAT,
            "settings": dataclasses.asdict(self.settings),
            "purpose": self.purpose,
            "module": state,
            "optimizer": {n: [t.clone() for t in ts] for n, ts in optimizer.state.items()},
            "generators": _generators(),
            "progress": dataclasses.asdict(progress),
        }

    def write(self) -> None:
        """Replace the file by the latest state, if that is not written yet."""
        if self._taken is None or self.path is None:
            return
        with replacing(self.path) as partial, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            torch.save(self._taken, partial)
        self._taken = None

    def restore(self, module: nn.Module, optimizer: Optimizer) -> TrainingState:
        """Put everything back as it was written; where nothing was, a run that begins."""
        if self.path is None or not self.path.exists():
            return TrainingState()
        saved = _read_checkpoint(self.path)
        try:
            self._compare(saved)
            module.load_state_dict(saved["module"])
            optimizer.restore(saved["optimizer"])
            _set_generators(saved["generators"])
            return _progress(saved["progress"])
        except (LookupError, TypeError, ValueError, AttributeError, RuntimeError) as error:
            raise TrainingError(
                f"{self.path}: is not the checkpoint of this module ({_reason(error)}); choose "
                "another directory, or remove the file to begin anew"
            ) from None

    def _compare(self, saved: dict[str, Any]) -> None:
        differing = self.settings.differences(saved["settings"])
        before = saved["purpose"]
        differing += [
            f"{name} {before.get(name)}, not {self.purpose.get(name)}"
            for name in {**before, **self.purpose}
            if before.get(name) != self.purpose.get(name)
        ]
        if differing:
            raise TrainingError(
                f"{self.path}: belongs to another training ({'; '.join(differing)}); choose "
                "another directory, or remove the file to begin anew"
            )


def saved_weights(directory: Path) -> dict[str, Tensor]:
    """The state of the module in the checkpoint of a run, whole or cut off."""
    path = directory / CHECKPOINT_FILE
    weights = _read_checkpoint(path).get("module")
    if not isinstance(weights, dict):
        raise TrainingError(f"{path}: holds no module")
    return weights


def _read_checkpoint(path: Path) -> dict[str, Any]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            saved = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as e:  # torch fails on hostile bytes in more ways than it documents
        raise TrainingError(
            f"{path}: cannot be read as a checkpoint ({_reason(e)}); remove it to begin anew"
        ) from None
    if not isinstance(saved, dict) or saved.get("format") != CHECKPOINT_FORMAT:
        raise TrainingError(
            f"{path}: is not a checkpoint of this version of radii; choose another directory"
        )
    return saved


@contextmanager
def claimed(directory: Path) -> Iterator[None]:
    """Make a directory and keep other processes from training in it meanwhile."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
        handle = os.open(directory, os.O_RDONLY)  # a directory: not on Windows
    except OSError as error:
        raise TrainingError(f"{directory}: cannot be made ({error.strerror})") from None
    try:
        take_lock(handle)
        yield
    except BlockingIOError:
        raise TrainingError(f"{directory}: another process is training there") from None
    finally:
        os.close(handle)


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A path to write to, which becomes `path` once it is written as a whole."""
    partial = path.with_name(f".{path.name}.partial")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        yield partial
        with partial.open("rb") as file:
            os.fsync(file.fileno())
        partial.replace(path)
    except (OSError, RuntimeError) as error:  # torch says of a full disk RuntimeError
        raise TrainingError(f"{path}: cannot be written ({_reason(error)})") from None
    finally:
        with suppress(OSError):  # half a file would only keep a full disk full
            partial.unlink(missing_ok=True)


def _progress(saved: dict[str, Any]) -> TrainingState:
    history = [Epoch(**epoch) for epoch in saved.pop("history")]
    state = TrainingState(**saved, history=history)
    if [epoch.number for epoch in history] != list(range(1, state.epoch + 1)):
        raise ValueError("its epochs are not those of its history")
    if not (isinstance(state.batches, int) and state.batches >= 0 and state.seconds >= 0):
        raise ValueError("its progress makes no sense")
    return state


def _generators() -> list[Tensor]:
    cuda = torch.cuda.get_rng_state_all() if torch.cuda.is_available() else []
    return [torch.get_rng_state(), *cuda]


def _set_generators(states: list[Tensor]) -> None:
    torch.set_rng_state(states[0])
    if torch.cuda.is_available() and len(states) > 1:
        torch.cuda.set_rng_state_all(states[1:])


def _reason(error: BaseException) -> str:
    """What a library says, without its advice to load files unsafely."""
    if isinstance(error, pickle.UnpicklingError):
        return "it holds Python objects that radii does not load, or is damaged"
    return first_line(error)
