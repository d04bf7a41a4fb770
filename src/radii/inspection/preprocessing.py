"""Ways in which networks are commonly fed: (x - mean) / std of the data's own units."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

__all__ = ["Preprocessing", "candidates"]

Numbers = tuple[float, ...]

IMAGE_NORMALISATIONS: tuple[tuple[str, int, Numbers, Numbers], ...] = (
    ("MNIST's mean and deviation", 1, (0.1307,), (0.3081,)),
    ("Fashion-MNIST's mean and deviation", 1, (0.2860,), (0.3530,)),
    ("CIFAR-10's means and deviations", 3, (0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616)),
    ("CIFAR-10's, averaged by batch", 3, (0.4914, 0.4822, 0.4465), (0.2023, 0.1994, 0.2010)),
    ("GTSRB's means and deviations", 3, (0.3403, 0.3121, 0.3214), (0.2724, 0.2608, 0.2669)),
    ("ImageNet's means and deviations", 3, (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)),
)
"""Of pixels between 0 and 1, by how many channels they have."""


@dataclass(frozen=True, slots=True)
class Preprocessing:
    """A network is fed (x - mean) / std, one number each or one a channel; None: x as it is.

    `layout` is how a flat network input lists coloured images.
    """

    name: str
    mean: Numbers | None = None
    std: Numbers | None = None
    layout: str | None = None

    def apply(self, images: npt.NDArray[np.floating]) -> npt.NDArray[np.floating]:
        """Images (N, channels, ...), or flat ones with one number, as the network is fed them."""
        if self.mean is None or self.std is None:
            return images
        shape = (1, -1, *(1,) * (images.ndim - 2)) if len(self.mean) > 1 else ()
        mean, std = (np.reshape(side, shape or ()) for side in (self.mean, self.std))
        fed: npt.NDArray[np.floating] = ((images - mean) / std).astype(images.dtype)
        return fed

    def __str__(self) -> str:
        order = f", listed as {self.layout}" if self.layout else ""
        if self.mean is None or self.std is None:
            return f"{self.name}{order}"
        numbers = [" ".join(f"{n:g}" for n in side) for side in (self.mean, self.std)]
        return f"{self.name} (mean {numbers[0]}, std {numbers[1]}){order}"


def candidates(
    images: npt.NDArray[np.floating], *, layouts: tuple[str | None, ...] = (None,)
) -> list[Preprocessing]:
    """What to try, the simplest first. Images are (N, channels, height, width), or flat."""
    found: list[tuple[str, Numbers | None, Numbers | None]] = [("as they are", None, None)]
    if images.min() >= 0 and images.max() <= 1:
        found += [("from 0 to 255", (0.0,), (1 / 255,)), ("from -1 to 1", (0.5,), (0.5,))]
        found += [("around 0, from -0.5 to 0.5", (0.5,), (1.0,))]
        channels = images.shape[1] if images.ndim == 4 else 1
        found += [
            (name, mean, std)
            for name, count, mean, std in IMAGE_NORMALISATIONS
            if count == channels and images.ndim == 4
        ]
    elif images.min() >= 0 and images.max() <= 255:
        found += [("from 0 to 1", (0.0,), (255.0,)), ("from -1 to 1", (127.5,), (127.5,))]
    own = _own(images)
    if own is not None:
        found.append(("this data's own mean and deviation", *own))
    return [Preprocessing(*one, layout=layout) for layout in layouts for one in found]


def _own(images: npt.NDArray[np.floating]) -> tuple[Numbers, Numbers] | None:
    """Of each channel of pictures, of all features together otherwise."""
    axes = (0, *range(2, images.ndim)) if images.ndim == 4 else None
    mean = np.atleast_1d(images.mean(axis=axes, dtype=np.float64))
    std = np.atleast_1d(images.std(axis=axes, dtype=np.float64))
    if not np.all(std > 0):
        return None
    return tuple(round(float(m), 4) for m in mean), tuple(float(f"{s:.4g}") for s in std)
