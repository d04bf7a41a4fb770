"""Trees of splits, as arrays: of units, of boxes of inputs, of cells of outputs."""

from __future__ import annotations

import numpy as np

from radii_check._format import Array, Arrays, hold


def leaves_of(arrays: Arrays, parent_name: str, *names: str) -> Array:
    """Which nodes are leaves, once it is a tree: nodes come after their parents, and are none or
    two below each, for both signs of one split. `names` say what is split, and the sign."""
    parent, *splits, sign = (arrays[name] for name in (parent_name, *names))
    count = len(parent)
    hold([x.shape == (count,) for x in (*splits, sign)], "its lists of nodes differ in length")
    hold((parent >= -1) & (parent < np.arange(count)), "a node comes before its parent")
    below = np.flatnonzero(parent >= 0)
    below = below[np.lexsort((sign[below], parent[below]))]
    one, two = below[::2], below[1::2]
    hold(len(one) == len(two), "a node has one child")
    is_one = np.all([held[one] == held[two] for held in (parent, *splits)], axis=0)
    is_one &= (sign[one] == -1) & (sign[two] == 1) & (np.diff(parent[one], prepend=-1) > 0)
    hold(is_one, "a node has children that are not the two sides of one split")
    return np.asarray(np.bincount(parent[below], minlength=count) == 0)


def path_to(parent: Array, node: int) -> list[int]:
    """The nodes from the root to this one."""
    found = [int(node)]
    while parent[found[-1]] >= 0:
        found.append(int(parent[found[-1]]))
    return found[::-1]
