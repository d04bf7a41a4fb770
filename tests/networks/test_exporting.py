"""torch modules as networks."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from radii.errors import NetworkError
from radii.networks import from_torch


class Residual(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(3, 4, 3, padding=1)
        self.norm = nn.BatchNorm2d(4)
        self.second = nn.Conv2d(4, 4, 3, padding=1, groups=2)
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.dropout = nn.Dropout(0.5)
        self.last = nn.Linear(4 * 17, 5)

    def forward(self, x: Tensor) -> Tensor:
        x = torch.relu(self.norm(self.first(x)))
        x = x + torch.nn.functional.leaky_relu(self.second(x), 0.1)
        pooled = self.pool(x).view(x.size(0), -1)
        rest = torch.flatten(nn.functional.max_pool2d(x, 2), 1)
        parts = self.dropout(torch.cat([pooled, rest], dim=1))
        result: Tensor = self.last(parts)
        return result


def test_module_with_normalisation(capfd: pytest.CaptureFixture[str]) -> None:
    torch.manual_seed(0)
    module = Residual()
    module.norm.running_mean = torch.randn(4)
    module.norm.running_var = torch.rand(4) + 0.5
    module.dropout.eval()
    mean, std = (0.4, 0.5, 0.6), (0.2, 0.25, 0.3)
    network = from_torch(
        module, input_shape=(3, 8, 8), domain=(0, 1), mean=mean, std=std, name="residual"
    )
    assert capfd.readouterr() == ("", "")
    assert module.training
    assert not module.dropout.training
    assert (network.name, network.input_shape, network.output_size) == ("residual", (3, 8, 8), 5)
    x = torch.rand(7, 3, 8, 8)
    module.eval()
    along = (3, 1, 1)
    with torch.no_grad():
        expected = module((x - torch.tensor(mean).view(along)) / torch.tensor(std).view(along))
    torch.testing.assert_close(network(x), expected, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(network.replay(x.numpy()), expected, rtol=1e-4, atol=1e-5)


def test_double_module() -> None:
    network = from_torch(nn.Linear(3, 2).double(), input_shape=(3,), domain=(0, 1))
    assert network.input_dtype == np.float64


class Determinant(nn.Module):
    """An operator of ONNX that no network has between its layers."""

    def forward(self, x: Tensor) -> Tensor:
        return torch.det(x)[:, None]


def test_operators_that_are_not_supported_are_named() -> None:
    with pytest.raises(NetworkError, match="torch: operator 'Det'"):
        from_torch(Determinant(), input_shape=(2, 2), domain=(0, 1))


def test_wrong_input_shape() -> None:
    with pytest.raises(NetworkError, match=r"cannot export the module for inputs of shape \(4,\)"):
        from_torch(nn.Linear(3, 2), input_shape=(4,), domain=(0, 1))


class Branching(nn.Module):
    """What it computes depends on values, which no export can see."""

    def forward(self, x: Tensor) -> Tensor:
        return 2 * x if bool(x.sum() == 0) else 3 * x


def test_an_export_that_computes_something_else_is_refused() -> None:
    with pytest.raises(NetworkError, match="does not compute what the torch module does"):
        from_torch(Branching(), input_shape=(3,), domain=(0, 1))
