"""Architectures whose activation, filters and kernels are in their names."""

from __future__ import annotations

import pytest
import torch

from radii.errors import SpecificationError
from radii.training import architecture


@pytest.mark.parametrize(
    "name",
    [
        *("dense:4@swish", "dense:0@tanh", "conv:8@relu", "conv:8x0", "conv:8x5+0", "conv:8x5x2"),
        *("resnet:8/2/1", "resnet:8/0", "resnet:8-", "resnet:8+0"),
    ],
)
def test_architectures_that_make_no_sense(name: str) -> None:
    with pytest.raises(SpecificationError, match="architecture"):
        architecture(name, (1, 8, 8), 10)


def test_convolutions_take_images() -> None:
    with pytest.raises(SpecificationError, match="takes images"):
        architecture("conv:4x3", (7,), 10)


def test_residual_blocks_by_filters_and_strides() -> None:
    """The same layers as those of the network of the literature."""
    named = architecture("resnet:16/2-32/2-32-32/2-32+100", (3, 32, 32), 10)
    assert str(named) == str(architecture("resnet_4b", (3, 32, 32), 10))
    small = architecture("resnet:4-4", (1, 8, 8), 3)
    assert small(torch.zeros(2, 1, 8, 8)).shape == (2, 3)
