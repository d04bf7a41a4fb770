"""Readers of operators, one file a family; each file's table names its operators.

A reader follows the definition in the ONNX specification and nothing else. How radii reads the same
operator stands in the file of the same name in radii.networks.operators.
"""

from radii_check.operators import (
    _activations,
    _arithmetic,
    _arrangement,
    _convolution,
    _pooling,
    _products,
)

READERS = {
    **_activations.READERS,
    **_arithmetic.READERS,
    **_convolution.READERS,
    **_pooling.READERS,
    **_products.READERS,
}

MOVES = _arrangement.MOVES
move = _arrangement.move

__all__ = ["MOVES", "READERS", "move"]
