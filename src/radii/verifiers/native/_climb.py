"""The climb along the grid: which eps is tried next, for how long, and when it is given up.

Pure: it is driven by callables that prove and that tell the time. First come proofs that are quick,
so that there is a lower side whatever happens later; their margins tell where the next one is
tried. Then the goal, the largest value below the witness, and what lies between.
"""

from __future__ import annotations

import bisect
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from radii.problem import Verdict, Witness
from radii.verifiers.native._attempts import Certify, ProofAttempt
from radii.verifiers.native._nodes import Frontier
from radii.verifiers.native._patience import Patience
from radii.verifiers.native._settings import ClimbSettings

DEFAULTS = ClimbSettings()

STOPPED_ORDER = (
    Verdict.MEMOUT,
    Verdict.TIMEOUT,
    Verdict.ERROR,
    Verdict.CANCELLED,
    Verdict.UNKNOWN,
)
"""Of several attempts that left values open, which says most about why."""


@dataclass(slots=True)
class Secant:
    """Looks for the zero of a margin that falls with eps, from what it was at some values.

    `proven` may begin with what it is at eps 0.
    """

    proven: list[tuple[float, float]] = field(default_factory=list)
    failed: list[tuple[float, float]] = field(default_factory=list)
    in_a_row: int = 0
    settings: ClimbSettings = DEFAULTS

    def note(self, eps: float, margin: float) -> None:
        is_proven = margin > 0
        self.in_a_row = max(self.in_a_row, 0) + 1 if is_proven else min(self.in_a_row, 0) - 1
        (self.proven if is_proven else self.failed).append((eps, margin))

    def guess(self) -> float | None:
        """The eps to try next; None where nothing is better than the middle."""
        if not self.proven or not self.proven[-1][0]:
            return None
        settings = self.settings
        eps, margin = self.proven[-1]
        if self.failed:
            above, depth = self.failed[-1]
            if above > settings.far_apart * eps:
                return math.sqrt(above * eps)
            # After two answers on one side the other end of the chord is too far off to tell.
            is_one_sided = abs(self.in_a_row) > 1
            return None if is_one_sided else eps + (above - eps) * margin / (margin - depth)
        step = settings.short_of_zero * (self.zero - eps)
        return min(eps + step, settings.long_step * eps)

    @property
    def zero(self) -> float:
        """Where the line through the last two proven values is 0; inf where that says nothing."""
        if len(self.proven) < 2:
            return math.inf
        (before, larger), (eps, margin) = self.proven[-2:]
        return eps + margin * (eps - before) / (larger - margin) if larger > margin else math.inf


Prove = Callable[[float, Frontier | None, Patience, bool], ProofAttempt]
"""Decide at an eps, going on from a frontier, while there is patience; False: do not branch."""


class Climb:
    """Raises `lower` along increasing grid values; a closer witness lowers the goal.

    `on_progress` is called when a side has moved. `certify` makes the certificate of `lower`.
    `frontiers` are what attempts at some eps have left open; it may begin with earlier ones.
    """

    def __init__(
        self,
        values: Sequence[float],
        prove: Prove,
        remaining: Callable[[], float],
        on_progress: Callable[[Climb], None] = lambda _: None,
        settings: ClimbSettings = DEFAULTS,
    ) -> None:
        self.settings = settings
        self.values = values
        self.prove = prove
        self.remaining = remaining
        self.proven = -1
        self.goal = len(values) - 1
        self.unprovable = len(values)
        self.witness: Witness | None = None
        self.frontiers: dict[float, Frontier] = {}
        self.certify: Certify | None = None
        self.last_seconds = 0.0
        self.message = ""
        self.left_open: dict[int, Verdict] = {}
        self.on_progress = on_progress

    @property
    def lower(self) -> float:
        """The largest proven value; 0 if there is none."""
        return self.values[self.proven] if self.proven >= 0 else 0.0

    @property
    def is_closed(self) -> bool:
        return self.proven >= self.goal

    @property
    def stopped(self) -> Verdict | None:
        """What kept attempts from deciding values that are open: a limit or a failure rather than
        that they gave up. None if nothing was tried."""
        open_values = range(self.proven + 1, self.goal + 1)
        verdicts = {self.left_open[index] for index in open_values if index in self.left_open}
        return min(verdicts, key=STOPPED_ORDER.index, default=None)

    @property
    def highest(self) -> int:
        """The last value that is worth trying: the goal, unless rounding is in the way."""
        return min(self.goal, self.unprovable - 1)

    @property
    def goes_on(self) -> bool:
        return self.proven < self.highest and self.remaining() > 0

    def run(self) -> None:
        """Until the goal is proven or the time is over."""
        settings = self.settings
        closed = [frontier.closed_share for frontier in self.frontiers.values()]
        if self.proven < 0 and closed and max(closed) < settings.promising_share:
            self._without_branching()
        has_quick_proof = self.proven >= 0
        if has_quick_proof and self.values[self.goal] > settings.out_of_reach * self.lower:
            self.frontiers.clear()  # many nodes, split for another eps
            self._between(self.goal + 1)
            return
        while self.goes_on:
            index, has_others = self.highest, self.proven + 1 < self.highest
            patience = self._patience(settings.first_attempt_share) if has_others else Patience()
            verdict = self._try(index, patience)
            # What is left open below an unprovable value is mostly little: no need to go far down.
            if verdict.is_missing and index < self.unprovable:
                if not has_quick_proof:
                    self._without_branching()
                self._between(index)
                return

    def rise(
        self,
        margin: Callable[[float], float],
        certify: Callable[[float], Certify | None] = lambda _: None,
        at_zero: float = 0.0,
    ) -> None:
        """To the largest value with a quick proof; its margin is above 0 where there is one, and
        `certify` tells how that is certified. `at_zero` is the margin at eps 0, where it is known.

        Begins with the smallest value, or just above what is proven, so that what can be proven
        at all is there after one call.
        """
        settings, at_first = self.settings, self.remaining()
        secant = Secant(settings=settings)
        if at_zero > 0:
            secant.proven.append((0.0, at_zero))
        failed, index = self.goal + 1, self._index(settings.first_step * self.lower, self.goal + 1)
        while self.proven + 1 < failed and self.remaining() > 0:
            found = margin(self.values[index])
            secant.note(self.values[index], found)
            if found > 0:
                self.proven, self.certify = index, certify(self.values[index])
                self.on_progress(self)
            else:
                failed = index
            spent = 1 - self.remaining() / max(at_first, 1e-9)
            possible = self.values[failed - 1] - self.lower if failed else 0.0
            is_little = possible < settings.worthwhile_rise * self.lower
            is_enough = spent > settings.enough_share and is_little
            is_beyond = failed > self.goal and self._next > settings.beyond_zero * secant.zero
            if is_enough or is_beyond or spent > settings.rising_share:
                return
            guess = secant.guess()
            middle = (self.proven + failed) // 2
            index = middle if guess is None else self._index(guess, failed)

    @property
    def _next(self) -> float:
        """The value above what is proven; inf if there is none."""
        return self.values[self.proven + 1] if self.proven + 1 < len(self.values) else math.inf

    def _patience(self, share: float) -> Patience:
        return Patience(self.remaining(), share, self.settings.patient_share)

    def _index(self, eps: float, failed: int) -> int:
        """The last value up to eps, among those above what is proven and below what failed."""
        within = bisect.bisect_right(self.values, eps) - 1
        return max(self.proven + 1, min(within, failed - 1))

    def _between(self, failed: int) -> None:
        """Values between what is proven and an index that could not be decided.

        When all are tried, the least that was given up gets the time that is left.
        """
        while self.goes_on:
            failed = min(failed, self.highest + 1)
            gap = failed - self.proven
            if gap > 1:
                highest = math.floor(self.settings.highest_next * gap)
                index = self._affordable(self.proven + max(1, highest))
                patience = self._patience(self.settings.later_attempt_share)
            else:
                index, patience = failed, Patience()
            verdict = self._try(index, patience)
            if verdict is Verdict.ROBUST:
                failed = max(failed, self.proven + 1)
            elif gap > 1:
                failed = index
            elif verdict.is_missing:
                return

    def _affordable(self, most: int) -> int:
        """The largest index up to `most` that half of the time that is left should suffice for."""
        remaining = self.remaining()
        last_seconds = max(self.last_seconds, self.settings.quick_share * remaining, 1e-3)
        doublings = math.log2(max(1.0, remaining / (2 * last_seconds)))
        limit = self.lower * (1 + self.settings.doubling_eps * doublings)
        while most > self.proven + 1 and self.values[most] > limit:
            most -= 1
        return most

    def _without_branching(self) -> None:
        """The largest value that the root alone proves."""
        low, high = self.proven + 1, self.highest - 1
        while low <= high and self.remaining() > 0:
            middle = (low + high + 1) // 2
            patience = self._patience(self.settings.root_share)
            if self._try(middle, patience, branches=False) is Verdict.ROBUST:
                low = middle + 1
            else:
                high = min(middle - 1, self.highest)

    def _try(self, index: int, patience: Patience, *, branches: bool = True) -> Verdict:
        # Only what a value at least as large left open may be gone on from.
        known = [eps for eps in self.frontiers if eps >= self.values[index]]
        frontier = self.frontiers[min(known)] if known and branches else None
        started = time.monotonic()
        attempt = self.prove(self.values[index], frontier, patience, branches)
        verdict = attempt.answer.verdict
        before = self.proven, self.witness
        if attempt.is_unprovable:
            self.unprovable = min(self.unprovable, index)
        if attempt.is_unprovable or self.unprovable == len(self.values):
            self.message = attempt.answer.message  # why the goal is out of reach is not forgotten
        if verdict is Verdict.MEMOUT or (verdict.is_missing and branches):
            self.left_open[index] = verdict
        if verdict is Verdict.ROBUST:
            self.last_seconds = time.monotonic() - started
            if index > self.proven:
                self.proven, self.certify = index, attempt.certify
        if branches and attempt.frontier is not None:
            self.frontiers[self.values[index]] = attempt.frontier
        witness = attempt.witness
        if witness is not None and (
            self.witness is None or witness.distance < self.witness.distance
        ):
            self.witness = witness
            while self.goal >= 0 and self.values[self.goal] >= witness.distance:
                self.goal -= 1
        if self.proven > before[0] or self.witness is not before[1]:
            self.on_progress(self)
        return verdict
