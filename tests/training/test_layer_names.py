"""Architectures whose activation, filters and kernels are in their names."""

from __future__ import annotations

import pytest

from radii.errors import SpecificationError
from radii.training import architecture


@pytest.mark.parametrize(
    "name", ["dense:4@swish", "dense:0@tanh", "conv:8@relu", "conv:8x0", "conv:8x5+0", "conv:8x5x2"]
)
def test_architectures_that_make_no_sense(name: str) -> None:
    with pytest.raises(SpecificationError, match="architecture"):
        architecture(name, (1, 8, 8), 10)


def test_convolutions_take_images() -> None:
    with pytest.raises(SpecificationError, match="takes images"):
        architecture("conv:4x3", (7,), 10)
