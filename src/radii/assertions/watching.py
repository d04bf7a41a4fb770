"""Watches a run that answers one question, and ends it when the rest cannot change the answer."""

from __future__ import annotations

from collections.abc import Sequence

from radii.execution import Case
from radii.guarantees import SequentialEstimate
from radii.queries import Instance
from radii.search import Question
from radii.verdicts import Result

__all__ = ["Enough", "Watch"]


class Enough(Exception):
    """The answer is known."""


class Watch:
    """An observer of a run. Whatever order inputs end in, `sequential` gets them in theirs."""

    def __init__(
        self,
        instances: Sequence[Instance],
        eps: float,
        *,
        enough_proven: int,
        enough_refuted: int,
        sequential: SequentialEstimate | None,
    ) -> None:
        self._eps = eps
        self._keys = [instance.key for instance in instances]
        self._found: dict[str, tuple[bool, bool]] = {}
        self._proven_left, self._refuted_left = enough_proven, enough_refuted
        self._sequential = sequential

    def started(self, total: int) -> None: ...
    def answered(self, case: Case, question: Question, result: Result, /) -> None: ...
    def held(self, is_held: bool, /) -> None: ...

    def finished(self, case: Case, /) -> None:
        bracket, key = case.search.bracket, case.instance.key
        if key in self._found:
            return
        proven, refuted = bracket.lower >= self._eps, bracket.upper <= self._eps
        self._found[key] = proven, refuted
        self._proven_left -= proven
        self._refuted_left -= refuted
        is_last = len(self._found) == len(self._keys)
        is_decided = self._is_decided() or min(self._proven_left, self._refuted_left) <= 0
        if is_decided and not is_last:
            raise Enough

    def _is_decided(self) -> bool:
        """Whether the inputs whose turn it was by now decide it, one after the other."""
        known = self._sequential
        if known is None:
            return False
        while known.reason_to_stop is None and len(known) < len(self._keys):
            found = self._found.get(self._keys[len(known)])
            if found is None:
                return False
            proven, refuted = found
            known.add([float(proven)], [float(not refuted)])
        return known.reason_to_stop is not None
