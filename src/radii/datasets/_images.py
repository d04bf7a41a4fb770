"""Where the images of a data set come from; they become float32 only when they are asked for."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from radii.datasets._archives import error_text
from radii.errors import DataError

Float32 = npt.NDArray[np.float32]
Int64 = npt.NDArray[np.int64]

MAX_PIXELS = 1 << 26
"""The largest picture that is decoded, in pixels; far above what any classifier takes."""

DECODED_FORMATS = ("PNG", "JPEG", "PPM", "BMP", "GIF", "TIFF", "WEBP")
"""Formats decoded in the process itself; others of pillow's call foreign programs."""


class Images(ABC):
    """A sequence of images of one shape, read by position."""

    @property
    @abstractmethod
    def shape(self) -> tuple[int, ...]:
        """The shape of one image: (channels, height, width), or (features,)."""

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def read(self, positions: Int64) -> Float32:
        """The images at these positions, in the data's own units."""


@dataclass(frozen=True, slots=True, eq=False)
class Stack(Images):
    """Images in one array (N, *shape), in memory or mapped from a file, divided by `divisor`."""

    array: npt.NDArray[Any]
    divisor: float = 1.0

    @property
    def shape(self) -> tuple[int, ...]:
        return self.array.shape[1:]

    def __len__(self) -> int:
        return len(self.array)

    def read(self, positions: Int64) -> Float32:
        images: Float32 = self.array[positions].astype(np.float32)
        images /= np.float32(self.divisor)
        return images


@dataclass(frozen=True, slots=True, eq=False)
class Files(Images):
    """One picture in each file, decoded when asked for; all must have the shape of the first."""

    paths: tuple[Path, ...]
    shape: tuple[int, ...]

    @classmethod
    def of(cls, paths: tuple[Path, ...]) -> Files:
        return cls(paths, decode(paths[0], str(paths[0])).shape)

    def __len__(self) -> int:
        return len(self.paths)

    def read(self, positions: Int64) -> Float32:
        pixels = np.empty((len(positions), *self.shape), np.uint8)
        for row, position in enumerate(positions):
            path = self.paths[position]
            picture = decode(path, str(path))
            if picture.shape != self.shape:
                raise DataError(
                    f"{path}: is {extent(picture.shape)} but {self.paths[0].name} is "
                    f"{extent(self.shape)}; bring all images to one size and number of channels"
                )
            pixels[row] = picture
        return np.divide(pixels, np.float32(255), dtype=np.float32)


def decode(
    source: Path | IO[bytes], name: str, *, size: tuple[int, int] | None = None
) -> npt.NDArray[np.uint8]:
    """One picture as (channels, height, width): 1 channel if it is grey, else 3; no transparency.

    `size` is (width, height) to resize to, bilinearly. `name` is what an error calls the picture.
    """
    from PIL import Image

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", Image.DecompressionBombWarning)
            with Image.open(source, formats=DECODED_FORMATS) as image:
                if image.width * image.height > MAX_PIXELS:
                    raise DataError(f"{name}: {image.width}x{image.height} pixels are too many")
                if image.mode.startswith(("I", "F")):
                    raise DataError(f"{name}: has more than 8 bits a channel; convert it to 8 bits")
                picture = image.convert("L" if image.mode in ("1", "L", "LA", "La") else "RGB")
        if size is not None and picture.size != size:
            picture = picture.resize(size, Image.Resampling.BILINEAR)
        pixels = np.array(picture, dtype=np.uint8)
    except DataError:
        raise
    except FileNotFoundError:
        raise DataError(f"{name}: there is no such file") from None
    except Exception as error:  # decoders fail on hostile bytes in more ways than they document
        raise DataError(f"{name}: cannot be decoded as a picture ({error_text(error)})") from None
    return pixels[None] if pixels.ndim == 2 else np.ascontiguousarray(np.moveaxis(pixels, 2, 0))


def channels_first(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """(N, H, W) as (N, 1, H, W), and (N, H, W, C) as (N, C, H, W); anything else as it is.

    The last axis holds channels if it has length 1 or 3 and the second axis has not.
    """
    if array.ndim == 3:
        return array[:, None]
    if array.ndim == 4 and array.shape[3] in (1, 3) and array.shape[1] not in (1, 3):
        return np.moveaxis(array, 3, 1)
    return array


def extent(shape: tuple[int, ...]) -> str:
    """A shape as messages show it: 1x28x28."""
    return "x".join(map(str, shape)) or "a single number"
