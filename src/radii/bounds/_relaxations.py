"""Lines below and above nonlinear operators, over each region of a batch.

Each side of a unit's graph has a family of valid lines; a choice in [0, 1] picks one of them. Lines
hold in real arithmetic up to a few roundings of the numbers in them, which the backward pass
subtracts along with its own.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, fields, replace
from typing import Self

import torch
from torch import Tensor

from radii.networks import Hinges, Interval


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
class _ConstantLines(Lines):
    low: Tensor
    high: Tensor

    def pulled(self, rows: Tensor) -> PulledRows:
        constants = torch.where(rows > 0, rows * self.low, rows * self.high)
        return PulledRows(None, constants.sum(2), constants.abs().sum(2))

    def taken(self, index: Tensor) -> _ConstantLines:
        return _ConstantLines(self.low[index], self.high[index])

    def turned(self, directions: Tensor) -> Tensor:
        return directions  # these operators mix entries; the entry itself stands for them

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


@dataclass(frozen=True, slots=True, eq=False)
class PiecewiseLinear(Relaxation):
    """Units with one bend or, for a clip, two: a chord on one side, a pencil through the bend."""

    lower: Pencil
    upper: Pencil
    choices: Tensor
    is_bent: Tensor

    @classmethod
    def of(cls, hinges: Hinges, arguments: Interval) -> PiecewiseLinear:
        pieces = _Pieces.of(hinges, arguments)
        lower, upper, choices, is_bent = _one_bend(pieces, arguments)
        found = cls(lower, upper, choices, is_bent)
        if len(hinges.knee) > 1:
            found = _with_both(found, hinges, arguments)
        return found._apart(_is_exact(hinges, arguments), arguments)

    def _apart(self, is_exact: Tensor, z: Interval) -> PiecewiseLinear:
        """Lines moved outward by what slopes and offsets that underflow lose over the arguments;
        those that are exact are not, chords excepted."""
        numbers = torch.finfo(z.low.dtype)
        reach = torch.where(torch.isfinite(z.magnitude), z.magnitude, 0.0)
        lost = 2 * numbers.tiny * (1 + reach)
        below, above = (
            torch.where(is_exact & ~(self.is_bent & (pencil.slope_span == 0)), 0.0, lost)
            for pencil in (self.lower, self.upper)
        )
        return replace(
            self,
            lower=replace(self.lower, offset=self.lower.offset - below),
            upper=replace(self.upper, offset=self.upper.offset + above),
        )

    @property
    def start(self) -> Tensor:
        return self.choices[:, :, None]

    @property
    def is_loose(self) -> Tensor:
        return self.is_bent

    def taken(self, index: Tensor) -> PiecewiseLinear:
        return PiecewiseLinear(
            self.lower.taken(index),
            self.upper.taken(index),
            self.choices[:, index],
            self.is_bent[index],
        )

    def lines(self, choices: Tensor | None = None) -> Lines:
        below, above = self.start if choices is None else choices
        return UnitLines(*self.lower.at(below), *self.upper.at(above))


@dataclass(frozen=True, slots=True, eq=False)
class _Pieces:
    """The bend that matters of each unit: slopes left and right of it, and where it is."""

    left: Tensor
    right: Tensor
    x: Tensor
    y: Tensor

    @classmethod
    def of(cls, hinges: Hinges, arguments: Interval) -> _Pieces:
        def row(values: object) -> Tensor:
            return torch.as_tensor(values).to(arguments.low).expand_as(arguments.low)

        slope, offset = row(hinges.slope), row(hinges.offset)
        if len(hinges.knee) == 0:
            return cls(slope, slope, torch.zeros_like(slope), offset)
        first = cls(slope, row(hinges.slope + hinges.change[0]), row(hinges.knee[0]), offset)
        first = replace(first, y=slope * first.x + offset)
        if len(hinges.knee) == 1:
            return first
        # A clip: rising between two flat parts. Only units above the upper bend see that one.
        end = row(hinges.knee[1])
        is_high = arguments.high > end
        return cls(
            torch.where(is_high, first.right, first.left),
            torch.where(is_high, first.left, first.right),
            torch.where(is_high, end, first.x),
            torch.where(is_high, end, first.y),
        )


def _is_exact(hinges: Hinges, z: Interval) -> Tensor:
    """Units whose pieces have slopes 0 and 1 and meet at 0, as a ReLU's: nothing is rounded."""
    slopes = (hinges.slope, hinges.slope + hinges.change.sum(0))
    is_exact = (hinges.offset == 0) & (hinges.knee == 0).all(0)
    for slope in slopes:
        is_exact &= (slope == 0) | (slope == 1)
    return torch.as_tensor(is_exact, device=z.low.device).expand_as(z.low)


def _width(z: Interval) -> Tensor:
    """No number where it overflows: divided by infinity, a chord would be flat."""
    width = z.high - z.low
    return torch.where(torch.isfinite(width), width, torch.nan)


def _one_bend(pieces: _Pieces, z: Interval) -> tuple[Pencil, Pencil, Tensor, Tensor]:
    is_right, is_left = z.low >= pieces.x, z.high <= pieces.x
    is_bent = ~(is_right | is_left) & (pieces.left != pieces.right)
    slope = torch.where(is_right, pieces.right, pieces.left)
    straight = Pencil.fixed(slope, pieces.y - slope * pieces.x)
    at_low = pieces.y + pieces.left * (z.low - pieces.x)
    at_high = pieces.y + pieces.right * (z.high - pieces.x)
    rise = (at_high - at_low) / torch.where(is_bent, _width(z), 1.0)
    chord = Pencil.fixed(rise, at_low - rise * z.low)
    pencil = Pencil.through(pieces.x, pieces.y, pieces.left, pieces.right)
    is_convex = pieces.right > pieces.left
    lower = straight.where(is_bent & is_convex, pencil).where(is_bent & ~is_convex, chord)
    upper = straight.where(is_bent & is_convex, chord).where(is_bent & ~is_convex, pencil)
    choice = (z.high - pieces.x >= pieces.x - z.low).to(z.low)
    return lower, upper, torch.stack([choice, choice]), is_bent


def _with_both(one_bend: PiecewiseLinear, hinges: Hinges, z: Interval) -> PiecewiseLinear:
    """Where a clip may bend twice: lines through the bend on either side, up to the far end."""
    low, high = (torch.as_tensor(knee).to(z.low).expand_as(z.low) for knee in hinges.knee)
    is_both = (z.low < low) & (z.high > high)
    zero = torch.zeros_like(low)
    rise = torch.where(is_both, high - low, 0.0)
    below = rise / torch.where(is_both, z.high - low, 1.0)
    above = rise / torch.where(is_both, high - z.low, 1.0)
    starts = torch.stack([(z.high - low > low - z.low), (high - z.low > z.high - high)])
    return PiecewiseLinear(
        one_bend.lower.where(is_both, Pencil.through(low, low, zero, below)),
        one_bend.upper.where(is_both, Pencil.through(high, high, zero, above)),
        torch.where(is_both, starts.to(z.low), one_bend.choices),
        one_bend.is_bent | is_both,
    )
