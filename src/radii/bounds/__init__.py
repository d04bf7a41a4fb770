"""Bounds on the values of a network over a region of inputs.

`interval_bounds` encloses every node of a graph; `crown_bounds` and `alpha_crown_bounds` bound
linear functions of the outputs over batches of regions, ever more tightly; `fuse` reduces a graph
to the affine maps between its nonlinear nodes; `linear_range` bounds linear functions over a ball
or a box. All are sound: the rounding of their own arithmetic is part of what they return.
`FloatErrors` is what the network itself rounds, and `unprovable` says why nothing is known of that.
"""

from __future__ import annotations

from radii.bounds.alpha import alpha_crown_bounds
from radii.bounds.crown import StageBounds, crown_bounds, stage_bounds
from radii.bounds.elementary import log_softmax_error, softmax_error, softmax_ratio
from radii.bounds.float_errors import FloatErrors, NumberType, unprovable
from radii.bounds.fusion import Fusion, Stage, fuse
from radii.bounds.interval import Interval, interval_bounds
from radii.bounds.pieces import Hinges, Windows, hinges_of, windows_of
from radii.bounds.regions import box_of, centre_of, linear_range
from radii.bounds.softmax import without_softmax

__all__ = [
    "FloatErrors",
    "Fusion",
    "Hinges",
    "Interval",
    "NumberType",
    "Stage",
    "StageBounds",
    "Windows",
    "alpha_crown_bounds",
    "box_of",
    "centre_of",
    "crown_bounds",
    "fuse",
    "hinges_of",
    "interval_bounds",
    "linear_range",
    "log_softmax_error",
    "softmax_error",
    "softmax_ratio",
    "stage_bounds",
    "unprovable",
    "windows_of",
    "without_softmax",
]
