"""The networks of the literature have the sizes that their papers publish."""

from __future__ import annotations

import numpy.typing as npt
import pytest
import torch

from radii.errors import SpecificationError
from radii.networks import from_torch
from radii.training import ARCHITECTURES, Normalize, architecture

MNIST, CIFAR = (1, 28, 28), (3, 32, 32)


@pytest.mark.parametrize(
    ("name", "shape", "classes", "parameters"),
    [
        ("relu_3_50", MNIST, 10, 42310),
        ("relu_6_100", MNIST, 10, 119910),
        ("relu_9_200", MNIST, 10, 440410),
        ("mnist_relu_4_1024", MNIST, 10, 2913290),
        ("mnist_nn", MNIST, 10, 269322),
        ("mnist_net", MNIST, 10, 669706),
        ("mnist-net_256x4", MNIST, 10, 400906),
        ("net_256x6", MNIST, 10, 532490),
        ("convSmall", MNIST, 10, 89606),
        ("convMed", MNIST, 10, 1587506),
        ("cifar_7_1024", CIFAR, 10, 8405002),
        ("conv_big", CIFAR, 10, 2466858),
        ("resnet_4b", CIFAR, 10, 123734),
        ("gtsrb_6_256", CIFAR, 43, 1060907),
        ("gtsrb_7_1024", CIFAR, 43, 8438827),
    ],
)
def test_parameters_are_as_published(
    name: str, shape: tuple[int, ...], classes: int, parameters: int
) -> None:
    """Tables 17 to 19 of the JAIR paper, in thousands, rounded down there."""
    assert sum(p.numel() for p in architecture(name, shape, classes).parameters()) == parameters


@pytest.mark.parametrize("name", [*ARCHITECTURES, "dense:7", "dense:9-5-clamp", "relu_3_6"])
@pytest.mark.parametrize("shape", [(1, 28, 28), (3, 28, 32)])
def test_any_image_and_number_of_classes(name: str, shape: tuple[int, ...]) -> None:
    module = architecture(name, shape, 4).eval()
    assert module(torch.zeros(2, *shape)).shape == (2, 4)


@pytest.mark.parametrize("name", ["dense:30-clamp", "resnet_4b", "gtsrb_cnn_vnncomp23"])
def test_radii_can_read_what_is_exported(name: str) -> None:
    module = architecture(name, CIFAR, 5, mean=(0.5, 0.4, 0.3), std=0.25)
    network = from_torch(module, input_shape=CIFAR, domain=(0, 1))
    images = torch.rand(3, *CIFAR)
    with torch.no_grad():
        torch.testing.assert_close(network(images), module.eval()(images), atol=1e-5, rtol=1e-4)


def test_the_clamp_of_the_paper() -> None:
    module = architecture("mlp-30-clamp", MNIST, 10)
    outputs = module(1e6 * torch.rand(8, *MNIST)).detach()
    assert float(outputs.min()) == -100
    assert float(outputs.max()) == 100


def test_weights_depend_on_the_seed_alone() -> None:
    torch.manual_seed(3)
    before = torch.get_rng_state()
    first, same, other = (
        architecture("dense:4", (6,), 3, seed=seed).get_parameter("1.weight") for seed in (0, 0, 1)
    )
    assert torch.equal(torch.get_rng_state(), before)
    assert torch.equal(first, same)
    assert not torch.equal(first, other)


@pytest.mark.parametrize(
    ("name", "shape", "classes", "said"),
    [
        ("resnet_5c", MNIST, 10, "'resnet_5c' is not one of dense:30"),
        ("convSmall", (1, 8, 8), 10, "8x8 pixels are too small"),
        ("convSmall", (64,), 10, "takes images"),
        ("relu_1_50", MNIST, 10, "2 layers"),
        ("dense:0", MNIST, 10, "is not one of"),
        ("dense:30", MNIST, 1, "2 to 100000 classes"),
    ],
)
def test_bad_names(name: str, shape: tuple[int, ...], classes: int, said: str) -> None:
    with pytest.raises(SpecificationError, match=said):
        architecture(name, shape, classes)


@pytest.mark.parametrize(("mean", "std"), [((0, 0), 1), (0, 0), (float("nan"), 1), (0, (1, 1))])
def test_bad_normalisation(mean: npt.ArrayLike, std: npt.ArrayLike) -> None:
    with pytest.raises(SpecificationError, match="must be one number or one for each of 3"):
        Normalize(mean, std, CIFAR)
