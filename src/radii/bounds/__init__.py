"""Bounds on the values of a network over a region of inputs.

`interval_bounds` encloses every node of a graph; `crown_bounds` and `alpha_crown_bounds` bound
linear functions of the outputs over batches of regions, ever more tightly; `fuse` reduces a graph
to the affine maps between its nonlinear nodes; `linear_range` bounds linear functions over a ball
or a box. All are sound: the rounding of their own arithmetic is part of what they return.
`FloatErrors` is what the network itself rounds, and `unprovable` says why nothing is known of that.
"""

from __future__ import annotations

from radii.bounds._affine_maps import (
    FUSED_ROUNDING,
    Layer,
    LayeredNetwork,
    Rounding,
    layered,
    prepared,
)
from radii.bounds._alpha import FreeChoices, OptimisedPass, alpha_crown_bounds, optimised
from radii.bounds._ascent import Ascent, AscentSettings, Choices
from radii.bounds._cascades import HeldValues, fuse_cascades
from radii.bounds._crown import (
    CrownPasses,
    StageBounds,
    bound_rows,
    crown_bounds,
    linear_bounds,
    propagate,
    stage_bounds,
)
from radii.bounds._dense_layers import Block, DenseLayers
from radii.bounds._duals import (
    DUAL_ROUNDING,
    Layers,
    Multipliers,
    Rows,
    evaluate,
    improve,
    lost_to_underflow,
)
from radii.bounds._float_errors import LOST_TO_UNDERFLOW, FloatErrors, unprovable
from radii.bounds._forward_forms import has_forward_forms
from radii.bounds._intervals import interval_bounds
from radii.bounds._linear import (
    Between,
    LinearBounds,
    LinearFunctions,
    State,
    UnitLosses,
    backward,
    input_influence,
    unit_losses,
)
from radii.bounds._mapped_layers import MappedLayer, MappedLayers, MappedSpecifications
from radii.bounds._regions import (
    OFFSET_ROUNDING,
    ROUND_UP,
    SMALLEST_NORMAL,
    SUM_ROUNDING,
    box_of,
    centre_of,
    euclidean_lengths,
    linear_range,
    scale_of_small,
)
from radii.bounds._relu_form import (
    Fusion,
    ReluForm,
    Stage,
    StageUnits,
    Windows,
    fuse,
    hinges_of,
    relu_form,
    windows_of,
)
from radii.bounds._rows_backward import RowsBackward
from radii.bounds._softmax import (
    ends_in_last,
    from_differences,
    pairs_of,
    without_last,
    without_softmax,
)
from radii.bounds._supports import Support, Supports, support_of
from radii.networks import (
    BOUND_EXTRA_TERMS,
    Constants,
    FixedLines,
    Hinges,
    Interval,
    Lines,
    Maxima,
    NumberType,
    PiecewiseLinear,
    Relaxation,
    UnitLines,
    log_softmax_error,
    softmax_error,
    softmax_ratio,
)

__all__ = [
    "BOUND_EXTRA_TERMS",
    "DUAL_ROUNDING",
    "FUSED_ROUNDING",
    "LOST_TO_UNDERFLOW",
    "OFFSET_ROUNDING",
    "ROUND_UP",
    "SMALLEST_NORMAL",
    "SUM_ROUNDING",
    "Ascent",
    "AscentSettings",
    "Between",
    "Block",
    "Choices",
    "Constants",
    "CrownPasses",
    "DenseLayers",
    "FixedLines",
    "FloatErrors",
    "FreeChoices",
    "Fusion",
    "HeldValues",
    "Hinges",
    "Interval",
    "Layer",
    "LayeredNetwork",
    "Layers",
    "LinearBounds",
    "LinearFunctions",
    "Lines",
    "MappedLayer",
    "MappedLayers",
    "MappedSpecifications",
    "Maxima",
    "Multipliers",
    "NumberType",
    "OptimisedPass",
    "PiecewiseLinear",
    "Relaxation",
    "ReluForm",
    "Rounding",
    "Rows",
    "RowsBackward",
    "Stage",
    "StageBounds",
    "StageUnits",
    "State",
    "Support",
    "Supports",
    "UnitLines",
    "UnitLosses",
    "Windows",
    "alpha_crown_bounds",
    "backward",
    "bound_rows",
    "box_of",
    "centre_of",
    "crown_bounds",
    "ends_in_last",
    "euclidean_lengths",
    "evaluate",
    "from_differences",
    "fuse",
    "fuse_cascades",
    "has_forward_forms",
    "hinges_of",
    "improve",
    "input_influence",
    "interval_bounds",
    "layered",
    "linear_bounds",
    "linear_range",
    "log_softmax_error",
    "lost_to_underflow",
    "optimised",
    "pairs_of",
    "prepared",
    "propagate",
    "relu_form",
    "scale_of_small",
    "softmax_error",
    "softmax_ratio",
    "stage_bounds",
    "support_of",
    "unit_losses",
    "unprovable",
    "windows_of",
    "without_last",
    "without_softmax",
]
