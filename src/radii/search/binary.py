"""Binary search: decide at the middle of what is open."""

from __future__ import annotations

from typing import ClassVar

from radii.search._base import Kind, Question, Search, midpoint_avoiding

__all__ = ["Binary"]


class Binary(Search):
    """One query at a time, each at the middle of the open range."""

    name: ClassVar[str] = "binary"

    def next_question(self) -> Question | None:
        if self.outstanding:
            return None
        index = midpoint_avoiding(*self.open_range(), self.missing_indices())
        return None if index is None else Question(Kind.PROVE, self.grid[index])
