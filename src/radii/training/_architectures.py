"""The networks of the literature by name, for any shape of images and number of classes.

Layer sizes follow the published parameter and neuron counts. All are `nn.Sequential`s of torch's
own layers, of `Residual` and of `Normalize`, which is what certified training can look into.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from radii.errors import SpecificationError

Shape = tuple[int, ...]

CLAMP = 100.0
"""Outputs of the networks for Marabou are kept in [-100, 100], since it takes no softmax."""


MOST_LABELS = 100_000
"""More are labels gone wrong, and more outputs than memory holds."""


class Residual(nn.Module):
    """body(x) + shortcut(x)."""

    def __init__(self, body: nn.Module, shortcut: nn.Module) -> None:
        super().__init__()
        self.body = body
        self.shortcut = shortcut

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.body(x) + self.shortcut(x)
        return out


class Normalize(nn.Module):
    """(x - mean) / std for each channel, inside the network, so that eps is in the data's units."""

    mean: Tensor
    std: Tensor

    def __init__(self, mean: npt.ArrayLike, std: npt.ArrayLike, shape: Shape) -> None:
        super().__init__()
        for name, given in (("mean", mean), ("std", std)):
            values = np.atleast_1d(np.asarray(given, np.float32))
            fits = values.ndim == 1 and values.size in (1, shape[0])
            if not (fits and np.isfinite(values).all() and (name == "mean" or (values > 0).all())):
                raise SpecificationError(
                    f"{name} {np.asarray(given).tolist()} must be one number or one for each of "
                    f"{shape[0]} channels" + (", all above 0" if name == "std" else "")
                )
            self.register_buffer(
                name, torch.from_numpy(values).reshape(-1, *[1] * (len(shape) - 1))
            )

    def forward(self, x: Tensor) -> Tensor:
        return (x - self.mean) / self.std


def architecture(
    name: str,
    input_shape: Shape,
    classes: int,
    *,
    mean: npt.ArrayLike | None = None,
    std: npt.ArrayLike | None = None,
    seed: int = 0,
) -> nn.Sequential:
    """The network called `name`, with seeded weights; torch's own generator is left as it was.

    `mean` and `std` put a normalisation in front.
    """
    if not 2 <= classes <= MOST_LABELS:
        raise SpecificationError(
            f"architecture '{name}': needs from 2 to {MOST_LABELS} classes, not {classes}"
        )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        layers = _layers(name.strip().lower(), input_shape, classes)
    if mean is not None or std is not None:
        front = Normalize(0.0 if mean is None else mean, 1.0 if std is None else std, input_shape)
        layers.insert(0, front)
    return nn.Sequential(*layers)


def _layers(name: str, shape: Shape, classes: int) -> list[nn.Module]:
    if matched := re.fullmatch(r"(?:mnist_|cifar_|gtsrb_)?(?:relu_)?(\d{1,2})_(\d{1,5})", name):
        depth, width = int(matched[1]), int(matched[2])
        if depth < 2 or width < 1:
            raise SpecificationError(f"architecture '{name}': needs 2 layers and 1 neuron or more")
        return _dense(shape, [width] * (depth - 1), classes)
    if matched := re.fullmatch(r"(?:mnist-)?net_(\d{1,5})x(\d{1,2})", name):
        return _dense(shape, [int(matched[1])] * int(matched[2]), classes)
    if matched := re.fullmatch(r"dense:([\d-]+)@([a-z]+)", name):
        return _dense(shape, _sizes(name, matched[1]), classes, _activation(name, matched[2]))
    if matched := re.fullmatch(r"(conv|vgg):([\dx-]+)(?:\+([\d-]+))?(?:@([a-z]+))?", name):
        kernels = [_sizes(name, layer, "x") for layer in matched[2].split("-")]
        widths = _sizes(name, matched[3]) if matched[3] else []
        build = _strided if matched[1] == "conv" else _blocks
        return build(name, shape, kernels, widths, classes, _activation(name, matched[4]))
    if matched := re.fullmatch(r"resnet:([\d/-]+)(?:\+([\d-]+))?", name):
        blocks = [_sizes(name, block, "/") for block in matched[1].split("-")]
        widths = _sizes(name, matched[2]) if matched[2] else []
        return _residual(name, shape, blocks, widths, classes)
    if matched := re.fullmatch(r"(?:dense:|mlp-)([1-9]\d{0,4}(?:-[1-9]\d{0,4})*)(-clamp)?", name):
        layers = _dense(shape, [int(width) for width in matched[1].split("-")], classes)
        return [*layers, nn.Hardtanh(-CLAMP, CLAMP)] if matched[2] else layers
    if name in ARCHITECTURES:
        return _of_images(name, shape, lambda: ARCHITECTURES[name](shape, classes))
    known = ", ".join(ARCHITECTURES)
    raise SpecificationError(f"architecture '{name}' is not one of {GENERAL_FORMS}, {known}")


GENERAL_FORMS = (
    "dense:30, dense:100-50, dense:30-clamp, dense:64-64@tanh, conv:8x5-16x5+64@relu, "
    "vgg:24x3-48x3+128, resnet:16/2-16-32/2+100, relu_3_50, net_256x4, gtsrb_6_256"
)

ACTIVATIONS: dict[str, type[nn.Module]] = {
    "relu": nn.ReLU,
    "tanh": nn.Tanh,
    "sigmoid": nn.Sigmoid,
}
"""What stands behind the @ of a name."""


def _activation(name: str, given: str | None) -> type[nn.Module]:
    if given is not None and given not in ACTIVATIONS:
        known = ", ".join(ACTIVATIONS)
        raise SpecificationError(
            f"architecture '{name}': activation '{given}' is not one of {known}"
        )
    return ACTIVATIONS[given or "relu"]


def _sizes(name: str, text: str, separator: str = "-") -> list[int]:
    parts = text.split(separator)
    if not all(re.fullmatch(r"[1-9]\d{0,4}", part) for part in parts):
        raise SpecificationError(f"architecture '{name}': '{text}' is not a list of sizes above 0")
    return [int(part) for part in parts]


def _of_images(name: str, shape: Shape, build: Callable[[], list[nn.Module]]) -> list[nn.Module]:
    """What `build` returns, where inputs are images and large enough for it."""
    if len(shape) != 3:
        raise SpecificationError(
            f"architecture '{name}' takes images (channels, height, width), "
            f"not inputs of shape {shape}"
        )
    try:
        return build()
    except _TooSmall:
        raise SpecificationError(
            f"architecture '{name}': images of {shape[1]}x{shape[2]} pixels are too small"
        ) from None


def _strided(
    name: str,
    shape: Shape,
    kernels: Sequence[Sequence[int]],
    widths: Sequence[int],
    classes: int,
    activation: type[nn.Module],
) -> list[nn.Module]:
    """Convolutions of FILTERSxKERNEL, each of which halves the sides, then dense layers."""
    if any(len(layer) != 2 for layer in kernels):
        raise SpecificationError(f"architecture '{name}': a convolution is FILTERSxKERNEL, as 8x5")

    def build() -> list[nn.Module]:
        grown = _LayerStack(shape)
        for filters, kernel in kernels:
            grown.conv(filters, kernel, 2, kernel // 2).then(activation())
        return grown.dense(widths, classes, activation)

    return _of_images(name, shape, build)


def _blocks(
    name: str,
    shape: Shape,
    kernels: Sequence[Sequence[int]],
    widths: Sequence[int],
    classes: int,
    activation: type[nn.Module],
) -> list[nn.Module]:
    """Blocks of FILTERSxKERNEL as VGG has them: two convolutions that keep the sides, then a
    pooling that halves them; then dense layers."""
    if any(len(block) != 2 for block in kernels):
        raise SpecificationError(f"architecture '{name}': a block is FILTERSxKERNEL, as 24x3")

    def build() -> list[nn.Module]:
        grown = _LayerStack(shape)
        for filters, kernel in kernels:
            for _ in range(2):
                grown.conv(filters, kernel, 1, kernel // 2).then(activation())
            grown.pool()
        return grown.dense(widths, classes, activation)

    return _of_images(name, shape, build)


def _residual(
    name: str,
    shape: Shape,
    blocks: Sequence[Sequence[int]],
    widths: Sequence[int],
    classes: int,
) -> list[nn.Module]:
    """A 3x3 convolution of FILTERS/STRIDE, then a residual block for each other one, then dense
    layers; a stride that is not given is 1."""
    if any(len(block) > 2 for block in blocks):
        raise SpecificationError(f"architecture '{name}': a block is FILTERS/STRIDE, as 16/2")

    def build() -> list[nn.Module]:
        (filters, stride), *others = ([*block, 1][:2] for block in blocks)
        grown = _LayerStack(shape).conv(filters, 3, stride, 1).relu()
        for filters, stride in others:
            grown.block(filters, stride).relu()
        return grown.dense(widths, classes)

    return _of_images(name, shape, build)


class _TooSmall(Exception):
    """No pixel is left after a layer."""


def _dense(
    shape: Shape,
    widths: Sequence[int],
    classes: int,
    activation: type[nn.Module] = nn.ReLU,
) -> list[nn.Module]:
    """Flatten, then dense layers with an activation between them."""
    layers: list[nn.Module] = [nn.Flatten()]
    size = math.prod(shape)
    for width in widths:
        layers += [nn.Linear(size, width), activation()]
        size = width
    return [*layers, nn.Linear(size, classes)]


class _LayerStack:
    """Layers one after the other; each knows the shape that the one before it leaves."""

    def __init__(self, shape: Shape) -> None:
        self.layers: list[nn.Module] = []
        self.shape = shape

    def conv(self, filters: int, kernel: int, stride: int = 1, padding: int = 0) -> _LayerStack:
        self.layers.append(nn.Conv2d(self.shape[0], filters, kernel, stride, padding))
        return self._now(filters, kernel, stride, padding)

    def pool(self) -> _LayerStack:
        self.layers.append(nn.MaxPool2d(2))
        return self._now(self.shape[0], 2, 2, 0)

    def relu(self) -> _LayerStack:
        return self.then(nn.ReLU())

    def then(self, layer: nn.Module) -> _LayerStack:
        """A layer that keeps the shape."""
        self.layers.append(layer)
        return self

    def norm(self) -> _LayerStack:
        self.layers.append(nn.BatchNorm2d(self.shape[0]))
        return self

    def block(self, filters: int, stride: int) -> _LayerStack:
        """Two 3x3 convolutions beside the identity, or beside a 1x1 convolution."""
        before = self.shape[0]
        body = _LayerStack(self.shape).conv(filters, 3, stride, 1).relu().conv(filters, 3, 1, 1)
        same = stride == 1 and before == filters
        shortcut = nn.Identity() if same else nn.Conv2d(before, filters, 1, stride)
        self.layers.append(Residual(nn.Sequential(*body.layers), shortcut))
        self.shape = body.shape
        return self

    def dense(
        self, widths: Sequence[int], classes: int, activation: type[nn.Module] = nn.ReLU
    ) -> list[nn.Module]:
        return [*self.layers, *_dense(self.shape, widths, classes, activation)]

    def _now(self, filters: int, kernel: int, stride: int, padding: int) -> _LayerStack:
        sides = tuple((s + 2 * padding - kernel) // stride + 1 for s in self.shape[1:])
        if min(sides) < 1:
            raise _TooSmall
        self.shape = (filters, *sides)
        return self


def _conv_small(shape: Shape, classes: int) -> list[nn.Module]:
    return _LayerStack(shape).conv(16, 4, 2).relu().conv(32, 4, 2).relu().dense([100], classes)


def _conv_med(shape: Shape, classes: int) -> list[nn.Module]:
    return (
        _LayerStack(shape).conv(16, 4, 2, 1).relu().conv(32, 4, 2, 1).relu().dense([1000], classes)
    )


def _conv_big(shape: Shape, classes: int) -> list[nn.Module]:
    grown = _LayerStack(shape).conv(32, 3, 1, 1).relu().conv(32, 4, 2, 1).relu()
    return grown.conv(64, 3, 1, 1).relu().conv(64, 4, 2, 1).relu().dense([512, 512], classes)


def _resnet_4b(shape: Shape, classes: int) -> list[nn.Module]:
    grown = _LayerStack(shape).conv(16, 3, 2, 1).relu()
    for stride in (2, 1, 2, 1):
        grown.block(32, stride).relu()
    return grown.dense([100], classes)


def _deep_game(shape: Shape, classes: int) -> list[nn.Module]:
    grown = _LayerStack(shape)
    for filters in (64, 128):
        grown.conv(filters, 3, 1, 1).relu().conv(filters, 3, 1, 1).relu().pool()
    return grown.dense([256, 256], classes)


def _vnncomp23(shape: Shape, classes: int) -> list[nn.Module]:
    grown = _LayerStack(shape)
    for filters, kernel in ((32, 5), (64, 5), (64, 3)):
        grown.conv(filters, kernel).relu().pool().norm()
    return grown.dense([1024], classes)


ARCHITECTURES: dict[str, Callable[[Shape, int], list[nn.Module]]] = {
    "mnist_nn": lambda shape, classes: _dense(shape, [256, 256], classes),
    "mnist_net": lambda shape, classes: _dense(shape, [512, 512], classes),
    "convsmall": _conv_small,
    "convmed": _conv_med,
    "conv_big": _conv_big,
    "resnet_4b": _resnet_4b,
    "gtsrb_cnn_deep_game": _deep_game,
    "gtsrb_cnn_vnncomp23": _vnncomp23,
}
"""The architectures whose sizes are not part of their names."""
