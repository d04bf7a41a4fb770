"""D: the mean over all inputs of how far outputs, or their softmax, can move within one eps.

Each input's change is measured as a bracket (`_changes`), and kept in a file: one line per input,
written as it is finished, so that running again continues.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self, TextIO

from radii import verifiers
from radii.errors import DataError, ExperimentError, StoreError, UnsupportedQuery
from radii.networks import Network
from radii.problem import FLOAT, Arithmetic, Instance, Norm, StandardRobustness
from radii.runs._selection import select
from radii.runs.guarantees._changes import (
    CHANGE_ATTACKS,
    Change,
    OutputScale,
    narrow_change,
    proven_changes,
    witnessed_changes,
)
from radii.runs.guarantees._robustness import MEASURED_BY, GlobalRobustness, SampledInput
from radii.runs.guarantees._sources import InputSource
from radii.statistics import Demand, Estimate, Range, Tally, estimate_mean
from radii.verifiers import Limits, Verifier

CHANGES_FILE = "changes.jsonl"
BOUND_BATCH = 8
"""Inputs whose bounds are computed together: more would hold back what is already known."""


class ChangeRecords:
    """What is known already, by the key of the instance. Without a directory nothing is kept."""

    def __init__(self, directory: Path | None, identity: dict[str, Any]) -> None:
        self.known: dict[str, Change] = {}
        self._stream: TextIO | None = None
        if directory is None:
            return
        path = directory / CHANGES_FILE
        try:
            directory.mkdir(parents=True, exist_ok=True)
            text = path.read_text("utf-8") if path.exists() else ""
            whole = text[: text.rfind("\n") + 1]
            if whole != text:  # the line that was being written when a run was ended
                path.write_text(whole, "utf-8")
            self._read(path, whole.splitlines(), identity)
            self._stream = path.open("a", encoding="utf-8")
            if not whole:
                self._write(identity)
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or "not a text file"
            raise StoreError(f"{path}: cannot be used ({reason})") from None

    def _read(self, path: Path, lines: list[str], identity: dict[str, Any]) -> None:
        for number, line in enumerate(lines, 1):
            try:
                record = json.loads(line)
                if number > 1:
                    upper = float("inf") if record["upper"] is None else float(record["upper"])
                    self.known[record["key"]] = Change(float(record["lower"]), upper)
            except (ValueError, KeyError, TypeError):
                raise StoreError(f"{path}: line {number} is not a measured change") from None
            if number == 1:
                _check_same(path, record, json.loads(json.dumps(identity)))

    def add(self, key: str, change: Change) -> None:
        self.known[key] = change
        upper = None if change.upper == float("inf") else change.upper
        self._write({"key": key, "lower": change.lower, "upper": upper})

    def _write(self, record: dict[str, Any]) -> None:
        if self._stream is not None:
            self._stream.write(json.dumps(record) + "\n")
            self._stream.flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        if self._stream is not None:
            self._stream.close()


def _check_same(path: Path, was: dict[str, Any], now: dict[str, Any]) -> None:
    """An ExperimentError if a file is of another measurement, in words."""
    if "arithmetic" not in was:  # an older file, whose proofs are of real arithmetic
        is_proven = was.get("by") != "attack" or was.get("within") is not None
        was = {**was, "arithmetic": "real" if is_proven else None}
    different = [name for name in now if was.get(name) != now[name]]
    if different == ["arithmetic"]:
        raise ExperimentError(
            f"{path}: its proofs hold {Arithmetic.parse(was['arithmetic']).scope}: go on with "
            f"--arithmetic {was['arithmetic']}, or choose another --out"
        )
    if was != now:
        raise ExperimentError(
            f"{path} holds another measurement ({', '.join(different)}); choose another --out"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeSettings:
    """How g-bar is measured. `within` asks a verifier to narrow it down to that width, in
    `timeout` seconds per input: by its name, or an instance that proves in `arithmetic`, which is
    what all proofs speak of.
    """

    eps: float
    on: OutputScale = "probabilities"
    norm: Norm = Norm.LINF
    by: str = "both"
    attack: str = "pgd"
    within: float | None = None
    verifier: Verifier | str = "native"
    timeout: float = 60.0
    arithmetic: Arithmetic = FLOAT

    def __post_init__(self) -> None:
        if not 0 < self.eps < math.inf:
            raise ExperimentError(f"eps {self.eps} must be a number above 0")
        if self.on not in ("outputs", "probabilities"):
            raise ExperimentError(f"on '{self.on}' is not one of outputs, probabilities")
        if self.by not in MEASURED_BY:
            raise ExperimentError(f"by '{self.by}' is not one of {', '.join(MEASURED_BY)}")
        if self.attack not in CHANGE_ATTACKS:
            raise ExperimentError(
                f"attack '{self.attack}' for changes is not one of {', '.join(CHANGE_ATTACKS)}"
            )
        if self.within is not None and not self.within > 0:
            raise ExperimentError(f"within {self.within} must be above 0")
        if self.within is not None:
            self._verifier()

    def _verifier(self) -> Verifier:
        if isinstance(self.verifier, str):
            return verifiers.get(self.verifier, arithmetic=self.arithmetic)
        if self.verifier.arithmetic != self.arithmetic:
            raise ExperimentError(
                f"verifier '{self.verifier.spec}' proves {self.verifier.arithmetic.scope}, but "
                f"arithmetic is '{self.arithmetic}'"
            )
        return self.verifier

    @property
    def proven_in(self) -> Arithmetic | None:
        """The arithmetic of the upper sides; None where nothing is proven."""
        return None if self.by == "attack" and self.within is None else self.arithmetic

    def range_of(self, given: Range | None) -> Range:
        """Changes of probabilities are in [0, 1]; how far outputs can move, the user must say."""
        if self.on == "probabilities":
            return given or Range()
        if given is None:
            raise DataError(
                "the outputs of this network have no known range: say how far they can move, "
                "such as 0:40, or measure the change of probabilities"
            )
        return given

    def identity(self, network: Network, seed: int) -> dict[str, Any]:
        """What must be the same for measured changes to be used again."""
        own = ("eps", "on", "by", "attack", "within", "verifier", "timeout")
        texts = {} if isinstance(self.verifier, str) else {"verifier": self.verifier.spec}
        return {
            "network": network.fingerprint,
            "norm": self.norm.value,
            "seed": seed,
            **{name: getattr(self, name) for name in own},
            **texts,
            "arithmetic": None if self.proven_in is None else str(self.proven_in),
        }

    def check_supported(self, network: Network) -> None:
        """An UnsupportedQuery if the verifier that narrows cannot decide what it will be asked."""
        if self.within is None:
            return
        query = StandardRobustness(1.0, on_probabilities=self.on == "probabilities")
        kind = query.kind(network.outputs_are_probabilities)
        reason = self._verifier().unsupported(network, self.norm, kind)
        if reason is not None:
            raise UnsupportedQuery(f"{network.name}: {reason}")

    def measure(self, network: Network, instances: list[Instance], seed: int) -> list[Change]:
        lower = [0.0] * len(instances)
        upper = [math.inf] * len(instances)
        if self.by != "proof":
            way = CHANGE_ATTACKS[self.attack]
            lower = witnessed_changes(network, instances, self.eps, self.on, attack=way, seed=seed)
        if self.by != "attack":
            upper = proven_changes(
                network, instances, self.eps, self.on, arithmetic=self.arithmetic
            )
        changes = [Change(*sides) for sides in zip(lower, upper, strict=True)]
        if self.within is None:
            return changes
        return [
            narrow_change(
                network,
                instance,
                self.eps,
                change,
                self._verifier(),
                Limits(seconds=self.timeout),
                on=self.on,
                within=self.within,
                arithmetic=self.arithmetic,
            )
            for instance, change in zip(instances, changes, strict=True)
        ]


def estimate_change(
    network: Network,
    source: InputSource,
    measuring: ChangeSettings,
    demand: Demand,
    *,
    values: Range | None = None,
    seed: int = 0,
    layout: str | None = None,
    out: Path | None = None,
    progress: Callable[[int, int], None] = lambda _done, _total: None,
) -> GlobalRobustness:
    """Draw inputs, measure how far each can move the outputs, and say what follows for the mean.

    With `out` every measured input is kept there, and running again continues.
    """
    span = measuring.range_of(values)
    measuring.check_supported(network)
    tally = Tally(demand, source.population, source.available, values=span, is_share=False)
    dataset = source.draw(tally.needed, seed)
    instances = select(
        network, dataset, property="cr:of=prediction", norm=measuring.norm, layout=layout
    )
    with ChangeRecords(out, measuring.identity(network, seed)) as records:
        for start in range(0, len(instances), BOUND_BATCH):
            batch = instances[start : start + BOUND_BATCH]
            _measure_batch(network, batch, measuring, records, seed)
            for place, instance in enumerate(batch, start):
                tally.put(place, *_within(records.known[instance.key], span, instance.index))
            progress(min(start + BOUND_BATCH, len(instances)), len(instances))
            if tally.is_enough:
                break
        known = records.known
    inputs = tuple(
        _sampled_input(instance, known[instance.key]) for instance in instances[: tally.counted]
    )
    return GlobalRobustness(
        measure="D",
        network=network.name,
        asked=f"largest change of {measuring.on}",
        norm=measuring.norm.value,
        eps=measuring.eps,
        by=measuring.by,
        seed=seed,
        estimate=tally.estimate(),
        attacked=None if measuring.by == "proof" else _attacked(inputs, source, demand, span),
        reason=tally.reason,
        arithmetic=measuring.proven_in,
        inputs=inputs,
        threshold=demand.threshold,
    )


def _measure_batch(
    network: Network,
    batch: list[Instance],
    measuring: ChangeSettings,
    records: ChangeRecords,
    seed: int,
) -> None:
    """Measure the instances of a batch that are not known yet, and record them."""
    new = [instance for instance in batch if instance.key not in records.known]
    changes = measuring.measure(network, new, seed) if new else []
    for instance, change in zip(new, changes, strict=True):
        records.add(instance.key, change)


def _attacked(
    inputs: tuple[SampledInput, ...], source: InputSource, demand: Demand, span: Range
) -> Estimate | None:
    """D as if no change were larger than the one that the attack found."""
    if demand.is_sequential:
        return None
    return estimate_mean(
        [each.lower for each in inputs],
        population=source.population,
        confidence=demand.confidence,
        method=demand.method or "tightest",
        values=span,
    )


def _sampled_input(instance: Instance, change: Change) -> SampledInput:
    return SampledInput(
        instance.index, instance.label, instance.predicted, change.lower, change.upper
    )


def _within(change: Change, span: Range, index: int) -> tuple[float, float]:
    """The change as far as the range leaves it open; a DataError if it was seen to leave it."""
    if change.lower > span.high:
        raise DataError(
            f"the outputs were seen to change by {change.lower:g} at input {index}, outside the "
            f"range [{span.low:g}, {span.high:g}]: give a range that holds every possible change"
        )
    return max(change.lower, span.low), min(max(change.upper, span.low), span.high)
