"""Why answers are missing: the reasons of a whole run, each with how often it was given."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from radii.processes import Ending
from radii.store import Record


@dataclass(frozen=True, slots=True)
class MissingReason:
    """How questions ended without an answer, and what the first of them says about it."""

    ending: Ending
    verifier: str
    message: str
    count: int

    def __str__(self) -> str:
        detail = f": {self.message}" if self.message else ""
        return f"{self.count} × {self.ending} ({self.verifier}{detail})"


def missing_reasons(records: Iterable[Record]) -> list[MissingReason]:
    """The most frequent first. Messages that differ in numbers only are one reason."""
    counts: Counter[tuple[Ending, str, str]] = Counter()
    messages: dict[tuple[Ending, str, str], str] = {}
    for record in records:
        for _, result in record.unanswered:
            reason = result.ending, result.verifier, result.message_kind
            counts[reason] += 1
            messages.setdefault(reason, result.message)
    return [
        MissingReason(ending, verifier, messages[ending, verifier, kind], count)
        for (ending, verifier, kind), count in counts.most_common()
    ]
