"""Readers of operators, one file a family; each file's table names its operators.

A reader follows the definition in the ONNX specification and nothing else. How radii reads the same
operator stands in the file of the same name in radii.networks.operators.
"""

from radii_check.operators import (
    _arithmetic,
    _arrangement,
    _convolution,
    _elementary,
    _gated,
    _max_pool,
    _piecewise_linear,
    _pooling,
    _products,
    _smooth,
    _softmax,
    _tanh,
)

READERS = {
    **_arithmetic.READERS,
    **_convolution.READERS,
    **_elementary.READERS,
    **_gated.READERS,
    **_max_pool.READERS,
    **_piecewise_linear.READERS,
    **_pooling.READERS,
    **_products.READERS,
    **_smooth.READERS,
    **_softmax.READERS,
    **_tanh.READERS,
}

MOVES = _arrangement.MOVES
move = _arrangement.move

__all__ = ["MOVES", "READERS", "move"]
