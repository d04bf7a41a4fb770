"""Linear relaxations: lines below and above nonlinear operators, over each region of a batch.

Each side of a unit's graph has a family of valid lines; a choice in [0, 1] picks one of them. Lines
hold in real arithmetic up to a few roundings of the numbers in them, which the backward pass
subtracts along with its own.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, fields
from typing import Self

import torch
from torch import Tensor

from radii.networks.operators._intervals import Interval

BAND_ROUNDINGS = 16
"""What a band is widened by, relative to the numbers that it is computed from, in roundings."""


@dataclass(frozen=True, slots=True, eq=False)
class PulledRows:
    """Coefficients on arguments, with the constant that goes with them and its absolute size."""

    rows: Tensor | None
    constant: Tensor
    size: Tensor


class Lines(ABC):
    """Chosen lines of one layer: for each region one choice, or one for each of its rows."""

    @abstractmethod
    def pulled(self, rows: Tensor) -> PulledRows:
        """Rows (regions, rows, units) on values, bounded from below by rows on their arguments."""

    @abstractmethod
    def taken(self, index: Tensor) -> Lines:
        """The lines of some of the regions."""

    @abstractmethod
    def turned(self, directions: Tensor) -> Tensor:
        """Changes of arguments (regions, n, arguments) as changes of values, about."""

    @abstractmethod
    def gaps(self, arguments: Tensor) -> Tensor:
        """How far the lines of each unit are apart (regions, units) at these arguments."""

    def attained(self, rows: Tensor, arguments: Tensor) -> Tensor | None:
        """Values (regions, units) on the lines that rows (regions, units), one on each region, take
        at these arguments; None where lines are not of single units."""
        return None

    def losses(self, rows: Tensor, arguments: Tensor, values: Tensor) -> Tensor | None:
        """What the lines around each argument (regions, arguments) cost such rows at arguments with
        these values, about: where splits gain. None where that is not known."""
        on_lines = self.attained(rows, arguments)
        return None if on_lines is None else rows.abs() * (values - on_lines).abs()


@dataclass(frozen=True, slots=True, eq=False)
class UnitLines(Lines):
    """One line below and one above each unit: slope * argument + offset.

    All are (regions, 1, units), or (regions, rows, units) where each row has its own.
    """

    lower_slope: Tensor
    lower_offset: Tensor
    upper_slope: Tensor
    upper_offset: Tensor

    def pulled(self, rows: Tensor) -> PulledRows:
        above, below = rows.clamp_min(0), rows.clamp_max(0)
        on_arguments = torch.addcmul(above * self.lower_slope, below, self.upper_slope)
        gain, gain_size = _with_size(above, self.lower_offset)
        loss, loss_size = _with_size(below, self.upper_offset)
        return PulledRows(on_arguments, gain + loss, gain_size - loss_size)

    def taken(self, index: Tensor) -> UnitLines:
        return UnitLines(*(getattr(self, f.name)[index] for f in fields(self)))

    def turned(self, directions: Tensor) -> Tensor:
        return directions * ((self.lower_slope + self.upper_slope) / 2)

    def attained(self, rows: Tensor, arguments: Tensor) -> Tensor:
        below = self.lower_slope[:, 0] * arguments + self.lower_offset[:, 0]
        above = self.upper_slope[:, 0] * arguments + self.upper_offset[:, 0]
        return torch.where(rows >= 0, below, above)

    def gaps(self, arguments: Tensor) -> Tensor:
        steeper = (self.upper_slope - self.lower_slope) * arguments[:, None]
        return (steeper + self.upper_offset - self.lower_offset).squeeze(1)


def _with_size(rows: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
    """`along` of the values and of their absolute values."""
    if values.shape[1] > 1:
        return along(rows, values), along(rows, values.abs())
    if not bool(values.any()):  # as below a ReLU
        nothing = rows.new_zeros(rows.shape[:2])
        return nothing, nothing
    both = torch.bmm(rows, torch.cat([values, values.abs()], 1).transpose(1, 2))
    return both[..., 0], both[..., 1]


def along(rows: Tensor, values: Tensor) -> Tensor:
    """The sum of each row (regions, rows, n) times values, (regions, 1, n) or as many as rows."""
    if values.shape[1] == 1:
        return torch.bmm(rows, values.transpose(1, 2)).squeeze(2)
    return (rows * values).sum(2)


class LinearBand(ABC):
    """Values within `radius` of a linear function of the arguments, `offset` included, over each of
    several regions; both are (regions, values). `terms` are the most products that one value adds
    up."""

    offset: Tensor
    radius: Tensor
    terms: int

    @abstractmethod
    def pushed(self, directions: Tensor) -> Tensor:
        """The linear part of directions (regions, n, arguments), without the offset."""

    @abstractmethod
    def spread(self, radii: Tensor) -> Tensor:
        """How far values move where each argument moves by its radius (regions, arguments)."""


@dataclass(frozen=True, slots=True, eq=False)
class UnitBand(LinearBand):
    """Around each unit a band of one slope; all are (regions, units)."""

    slope: Tensor
    offset: Tensor
    radius: Tensor
    terms: int = 1

    @classmethod
    def between(cls, lines: UnitLines, arguments: Interval) -> UnitBand:
        """The narrower of the bands with the slope of the upper and of the lower line of each unit.

        Where the other line has another slope, it is farthest from the band's at an end.
        """
        low, high = arguments.low, arguments.high
        slopes = lines.lower_slope[:, 0], lines.upper_slope[:, 0]
        offsets = lines.lower_offset[:, 0], lines.upper_offset[:, 0]
        bands = []
        for slope in slopes:
            below, above = (own - slope for own in slopes)
            bottom = offsets[0] + torch.minimum(below * low, below * high)
            top = offsets[1] + torch.maximum(above * low, above * high)
            # Rounded outward: products and sums of numbers of these sizes.
            largest = torch.maximum(low.abs(), high.abs())
            size = (below.abs() + above.abs() + slope.abs()) * largest
            size = size + offsets[0].abs() + offsets[1].abs()
            numbers = torch.finfo(low.dtype)
            wider = BAND_ROUNDINGS * (numbers.eps * size + numbers.tiny)
            bands.append((slope, bottom / 2 + top / 2, top / 2 - bottom / 2 + wider))
        first, second = bands
        is_first = first[2] <= second[2]
        slope, offset, radius = (
            torch.where(is_first, a, b) for a, b in zip(first, second, strict=True)
        )
        return cls(slope, offset, radius)

    def pushed(self, directions: Tensor) -> Tensor:
        return directions * self.slope[:, None]

    def spread(self, radii: Tensor) -> Tensor:
        return radii * self.slope.abs()


class Relaxation(ABC):
    """All lines of one layer that may be chosen, over each of several regions."""

    @property
    @abstractmethod
    def start(self) -> Tensor | None:
        """The choices of CROWN, (2, regions, 1, units): below and above; None if there are none."""

    @property
    @abstractmethod
    def is_loose(self) -> Tensor:
        """(regions, arguments): where tighter bounds of the argument give a tighter relaxation."""

    @abstractmethod
    def taken(self, index: Tensor) -> Relaxation:
        """The same for some of the regions."""

    @abstractmethod
    def lines(self, choices: Tensor | None = None) -> Lines:
        """The lines of these choices (2, regions, rows, units); without any, those of `start`."""

    def band(self, arguments: Interval) -> LinearBand | None:
        """A band around the values, narrow if there is one, for arguments in these intervals; None
        where only bounds of the values are known."""
        lines = self.lines()
        return UnitBand.between(lines, arguments) if isinstance(lines, UnitLines) else None


@dataclass(frozen=True, slots=True, eq=False)
class Constants(Relaxation):
    """Values between two numbers, whatever the arguments: for operators without lines."""

    low: Tensor
    high: Tensor

    @property
    def start(self) -> None:
        return None

    @property
    def is_loose(self) -> Tensor:
        return self.low < self.high

    def taken(self, index: Tensor) -> Constants:
        return Constants(self.low[index], self.high[index])

    def lines(self, choices: Tensor | None = None) -> Lines:
        return _ConstantLines(self.low[:, None], self.high[:, None])


@dataclass(frozen=True, slots=True, eq=False)
class FixedLines(Relaxation):
    """One line below and one above each unit, slope * argument + offset, with nothing to choose.

    All are (regions, units). For operators of other packages.
    """

    lower_slope: Tensor
    lower_offset: Tensor
    upper_slope: Tensor
    upper_offset: Tensor

    @property
    def start(self) -> None:
        return None

    @property
    def is_loose(self) -> Tensor:
        is_one = (self.lower_slope == self.upper_slope) & (self.lower_offset == self.upper_offset)
        return ~is_one

    def taken(self, index: Tensor) -> FixedLines:
        return FixedLines(*(getattr(self, f.name)[index] for f in fields(self)))

    def lines(self, choices: Tensor | None = None) -> Lines:
        return UnitLines(*(getattr(self, f.name)[:, None] for f in fields(self)))


@dataclass(frozen=True, slots=True, eq=False)
class FirstEntries(Relaxation):
    """A relaxation that is about the first entries of the argument, and ignores `others` behind."""

    relaxation: Relaxation
    others: int

    @property
    def start(self) -> Tensor | None:
        return self.relaxation.start

    @property
    def is_loose(self) -> Tensor:
        own = self.relaxation.is_loose
        return torch.cat([own, own.new_zeros(len(own), self.others)], 1)

    def taken(self, index: Tensor) -> FirstEntries:
        return FirstEntries(self.relaxation.taken(index), self.others)

    def lines(self, choices: Tensor | None = None) -> Lines:
        return _LinesOfFirst(self.relaxation.lines(choices), self.others)


@dataclass(frozen=True, slots=True, eq=False)
class _LinesOfFirst(Lines):
    lines: Lines
    others: int

    def pulled(self, rows: Tensor) -> PulledRows:
        own = self.lines.pulled(rows)
        if own.rows is None:
            return own
        nothing = own.rows.new_zeros(*own.rows.shape[:2], self.others)
        return PulledRows(torch.cat([own.rows, nothing], 2), own.constant, own.size)

    def taken(self, index: Tensor) -> _LinesOfFirst:
        return _LinesOfFirst(self.lines.taken(index), self.others)

    def turned(self, directions: Tensor) -> Tensor:
        return self.lines.turned(directions[..., : directions.shape[2] - self.others])

    def gaps(self, arguments: Tensor) -> Tensor:
        return self.lines.gaps(arguments[:, : arguments.shape[1] - self.others])


@dataclass(frozen=True, slots=True, eq=False)
class _ConstantLines(Lines):
    low: Tensor
    high: Tensor

    def pulled(self, rows: Tensor) -> PulledRows:
        constants = torch.where(rows > 0, rows * self.low, rows * self.high)
        return PulledRows(None, constants.sum(2), constants.abs().sum(2))

    def taken(self, index: Tensor) -> _ConstantLines:
        return _ConstantLines(self.low[index], self.high[index])

    def turned(self, directions: Tensor) -> Tensor:
        """These operators mix entries: the entry itself stands for them, or where there are fewer
        values, as of ArgMax, all entries for each value."""
        values = self.low.shape[2]
        if directions.shape[2] == values:
            return directions
        return directions.abs().sum(2, keepdim=True).expand(-1, -1, values)

    def gaps(self, arguments: Tensor) -> Tensor:
        return (self.high - self.low).squeeze(1)


@dataclass(frozen=True, slots=True, eq=False)
class Pencil:
    """Lines with slope `slope + choice * slope_span` and offset `offset + choice * offset_span`."""

    slope: Tensor
    slope_span: Tensor
    offset: Tensor
    offset_span: Tensor

    @classmethod
    def through(cls, x: Tensor, y: Tensor, first: Tensor, last: Tensor) -> Self:
        """All lines through one point with slopes from `first` to `last`."""
        span = last - first
        return cls(first, span, y - first * x, -span * x)

    @classmethod
    def fixed(cls, slope: Tensor, offset: Tensor) -> Self:
        return cls(slope, torch.zeros_like(slope), offset, torch.zeros_like(slope))

    def where(self, condition: Tensor, other: Pencil) -> Pencil:
        """The other's lines where the condition holds."""
        pairs = ((getattr(other, f.name), getattr(self, f.name)) for f in fields(self))
        return Pencil(*(torch.where(condition, theirs, own) for theirs, own in pairs))

    def taken(self, index: Tensor) -> Pencil:
        return Pencil(*(getattr(self, f.name)[index] for f in fields(self)))

    def at(self, choice: Tensor) -> tuple[Tensor, Tensor]:
        slope = self.slope[:, None] + choice * self.slope_span[:, None]
        return slope, self.offset[:, None] + choice * self.offset_span[:, None]
