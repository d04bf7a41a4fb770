"""What is derived from one object that never changes, kept by that object.

A network is fused, an operator is asked for its absolute values, a linear map is brought to another
number type: each is done once, for as long as the network, the operator or the map lives, and is
dropped with it. Nobody else has to know how long that is.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from threading import Lock
from typing import Any, TypeVar

Derived = TypeVar("Derived")


class Memo:
    """What was derived from its owner, by a key that says how; of the latest `most` keys alone.

    It is no part of what its owner is: copies and other processes begin with an empty one.
    """

    __slots__ = ("_derived", "_lock", "_most")

    def __init__(self, most: int | None = None) -> None:
        self._most = most
        self._derived: dict[Hashable, Any] = {}
        self._lock = Lock()

    def __deepcopy__(self, _: object) -> Memo:
        return Memo(self._most)

    def __reduce__(self) -> tuple[type[Memo], tuple[int | None]]:
        return Memo, (self._most,)

    def get(self, key: Hashable, make: Callable[[], Derived]) -> Derived:
        """What is known under the key; else what `make` gives, which is kept.

        Where several threads make it at once, all of them get the same one.
        """
        with self._lock:
            is_known = key in self._derived
        made = None if is_known else make()
        with self._lock:
            # Whichever thread was first; and from now on this key is the last to be forgotten.
            derived: Derived = self._derived.pop(key, made)
            self._derived[key] = derived
            while self._most is not None and len(self._derived) > self._most:
                self._derived.pop(next(iter(self._derived)))
        return derived

    def forget(self) -> None:
        """Give the memory back: what is needed again is made again."""
        with self._lock:
            self._derived.clear()
