"""D: the mean over all inputs of how far outputs, or their softmax, can move within one eps."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from radii import selection, verifiers
from radii.balls import Norm
from radii.errors import DataError, ExperimentError, UnsupportedQuery
from radii.global_robustness.changes import (
    ATTACKS,
    Change,
    On,
    narrowed,
    proven_changes,
    witnessed_changes,
)
from radii.global_robustness.records import ChangeRecords
from radii.global_robustness.robustness import BY, GlobalRobustness, SampledInput
from radii.global_robustness.sampling import Source
from radii.guarantees import Demand, Range, Tally, estimate_mean
from radii.networks import Network
from radii.properties import StandardRobustness
from radii.queries import Instance
from radii.verdicts import FLOAT, Arithmetic
from radii.verifiers import Limits, Verifier

__all__ = ["Measuring", "estimate_change"]

BATCH = 8
"""Inputs whose bounds are computed together: more would hold back what is already known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measuring:
    """How g-bar is measured. `within` asks a verifier to narrow it down to that, in `timeout`
    seconds an input. `arithmetic` is what proofs speak of.
    """

    eps: float
    on: On = "probabilities"
    norm: Norm = Norm.LINF
    by: str = "both"
    attack: str = "pgd"
    within: float | None = None
    verifier: str = "native"
    timeout: float = 60.0
    arithmetic: Arithmetic = FLOAT

    def __post_init__(self) -> None:
        if not 0 < self.eps < math.inf:
            raise ExperimentError(f"eps {self.eps} must be a number above 0")
        if self.on not in ("outputs", "probabilities"):
            raise ExperimentError(f"on '{self.on}' is not one of outputs, probabilities")
        if self.by not in BY:
            raise ExperimentError(f"by '{self.by}' is not one of {', '.join(BY)}")
        if self.attack not in ATTACKS:
            raise ExperimentError(
                f"attack '{self.attack}' for changes is not one of {', '.join(ATTACKS)}"
            )
        if self.within is not None and not self.within > 0:
            raise ExperimentError(f"within {self.within} must be above 0")
        if self.within is not None:
            self._verifier()

    def _verifier(self) -> Verifier:
        return verifiers.get(self.verifier, arithmetic=self.arithmetic)

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

    def check_supported(self, network: Network) -> None:
        """An UnsupportedQuery if the verifier that narrows cannot decide what it will be asked."""
        if self.within is None:
            return
        asked = StandardRobustness(1.0, on_probabilities=self.on == "probabilities")
        kind = asked.kind(network.outputs_are_probabilities)
        reason = self._verifier().unsupported(network, self.norm, kind)
        if reason is not None:
            raise UnsupportedQuery(f"{network.name}: {reason}")

    def measure(self, network: Network, instances: list[Instance], seed: int) -> list[Change]:
        lower = [0.0] * len(instances)
        upper = [math.inf] * len(instances)
        if self.by != "proof":
            way = ATTACKS[self.attack]
            lower = witnessed_changes(network, instances, self.eps, self.on, attack=way, seed=seed)
        if self.by != "attack":
            upper = proven_changes(
                network, instances, self.eps, self.on, arithmetic=self.arithmetic
            )
        changes = [Change(*sides) for sides in zip(lower, upper, strict=True)]
        if self.within is None:
            return changes
        return [
            narrowed(
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
    source: Source,
    measuring: Measuring,
    demand: Demand,
    *,
    values: Range | None = None,
    seed: int = 0,
    layout: str | None = None,
    out: Path | None = None,
    progress: Callable[[int, int], None] = lambda _done, _total: None,
) -> GlobalRobustness:
    """Draw inputs, measure how far each can move the outputs, and say what follows of the mean.

    With `out` every measured input is kept there, and running again continues.
    """
    span = measuring.range_of(values)
    measuring.check_supported(network)
    tally = Tally(demand, source.population, source.available, values=span, is_share=False)
    dataset = source.draw(tally.needed, seed)
    instances = selection.select(
        network, dataset, property="cr:of=prediction", norm=measuring.norm, layout=layout
    )
    identity = {
        "network": network.fingerprint,
        "norm": measuring.norm.value,
        "seed": seed,
        **{name: getattr(measuring, name) for name in ("eps", "on", "by", "attack")},
        **{name: getattr(measuring, name) for name in ("within", "verifier", "timeout")},
        "arithmetic": None if measuring.proven_in is None else str(measuring.proven_in),
    }
    with ChangeRecords(out, identity) as records:
        for start in range(0, len(instances), BATCH):
            batch = instances[start : start + BATCH]
            new = [instance for instance in batch if instance.key not in records.known]
            found = measuring.measure(network, new, seed) if new else []
            for instance, change in zip(new, found, strict=True):
                records.add(instance.key, change)
            for place, instance in enumerate(batch, start):
                tally.put(place, *_within(records.known[instance.key], span, instance.index))
            progress(min(start + BATCH, len(instances)), len(instances))
            if tally.is_enough:
                break
        known = records.known
    counted = instances[: tally.counted]
    changes = [known[instance.key] for instance in counted]
    return GlobalRobustness(
        measure="D",
        network=network.name,
        asked=f"largest change of {measuring.on}",
        norm=measuring.norm.value,
        eps=measuring.eps,
        by=measuring.by,
        seed=seed,
        estimate=tally.estimate(),
        attacked=None
        if measuring.by == "proof" or demand.is_sequential
        else estimate_mean(
            [change.lower for change in changes],
            population=source.population,
            confidence=demand.confidence,
            method=demand.method or "tightest",
            values=span,
        ),
        reason=tally.reason,
        arithmetic=measuring.proven_in,
        inputs=tuple(
            SampledInput(
                instance.index, instance.label, instance.predicted, change.lower, change.upper
            )
            for instance, change in zip(counted, changes, strict=True)
        ),
        threshold=demand.threshold,
    )


def _within(change: Change, span: Range, index: int) -> tuple[float, float]:
    """The change as far as the range leaves it open; a DataError if it was seen to leave it."""
    if change.lower > span.high:
        raise DataError(
            f"the outputs were seen to change by {change.lower:g} at input {index}, outside the "
            f"range [{span.low:g}, {span.high:g}]: give a range that holds every possible change"
        )
    return max(change.lower, span.low), min(max(change.upper, span.low), span.high)
