"""Trees of splits, as arrays of nodes: splits of units, of boxes of inputs, of cells of outputs.

The nodes of a proof by splits cover the region: a node is a leaf, or has two children that are the
two sides of one split (branch and bound; Bunel et al., 2018).
"""

from __future__ import annotations

import numpy as np

from radii_check._errors import require
from radii_check._format import Array, Arrays


def leaves_of(arrays: Arrays, parent_name: str, *names: str) -> Array:
    """Which nodes are leaves, once this is known to be a forest of splits.

    `names` are the arrays that say what is split, which both children must agree in, and last the
    array of signs, which must be -1 at one child and +1 at the other. Roots have the parent -1, and
    every node stands behind its parent, so that there are no cycles.
    """
    parent, *splits, sign = (arrays[name] for name in (parent_name, *names))
    count = len(parent)
    lengths = [array.shape == (count,) for array in (*splits, sign)]
    require(lengths, "its lists of nodes differ in length")
    is_ordered = (parent >= -1) & (parent < np.arange(count))
    require(is_ordered, "a node comes before its parent")

    children = np.flatnonzero(parent >= 0)
    children = children[np.lexsort((sign[children], parent[children]))]
    negative, positive = children[::2], children[1::2]
    require(len(negative) == len(positive), "a node has one child")
    is_pair = np.all([each[negative] == each[positive] for each in (parent, *splits)], axis=0)
    is_pair &= (sign[negative] == -1) & (sign[positive] == 1)
    is_pair &= np.diff(parent[negative], prepend=-1) > 0  # no parent has four children
    require(is_pair, "a node has children that are not the two sides of one split")
    return np.asarray(np.bincount(parent[children], minlength=count) == 0)


def path_to(parent: Array, node: int) -> list[int]:
    """The nodes from the root to this one."""
    path = [int(node)]
    while parent[path[-1]] >= 0:
        path.append(int(parent[path[-1]]))
    return path[::-1]
