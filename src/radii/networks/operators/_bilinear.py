"""Products of two values that both depend on the input, between planes below and above them.

With centres a, b and radii r, s of two intervals, and any k between -1 and 1,

    x y >= (b + k s) x + (a + k r) y - a b - r s - k (a s + r b)
    x y <= (b + k s) x + (a - k r) y - a b + r s - k (a s - r b).

At k = 1 and k = -1 these are the four planes of McCormick (1976); a choice of 0.5 takes the one in
their middle, which is parallel to the tangent plane at the centre. A matrix product is a sum of
products, and so are its planes; the products of one entry share their k.

Beside the tangent plane stands the remainder (x - a) (y - b), between -r s and r s here. Where more
is known of it (`_remainders`), that counts at k = 0, and a share |k| of the planes of McCormick.

A nonlinear operator reads one value, so that the two lie in it one behind the other.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from radii.networks.operators._arrangement import Reshape, joined
from radii.networks.operators._base import (
    NumberType,
    OnnxNode,
    Operator,
    OperatorKind,
    Shape,
    broadcast,
    with_rank,
)
from radii.networks.operators._intervals import Interval, sum_slack
from radii.networks.operators._lines import (
    BAND_ROUNDINGS,
    LinearBand,
    Lines,
    PulledRows,
    Relaxation,
    along,
)
from radii.networks.operators._powers import squared
from radii.networks.operators._remainders import SUM_SLACK, AffineForms, quadratic_range

PRODUCT_EXTRA_TERMS = 4
"""Roundings that a product is granted beyond its sum: a factor that a runtime applies to one of the
values, or to the product, in place of where the file has it."""

TURNED_FROM = 0.25
"""Planes are turned where the remainder is more than this share of what intervals say."""

FACTOR_ROOM = 0.75
"""The share of the exponents that a product may use: a runtime may apply a factor earlier."""


class Bilinear(Operator):
    """A product of two values of the shapes `left` and `right`, flattened one behind the other."""

    kind = OperatorKind.SMOOTH

    def __init__(self, left: Shape, right: Shape) -> None:
        super().__init__()
        self.left, self.right = left, right
        self._sizes = math.prod(left), math.prod(right)
        self._result = self.shape_of_product()

    def shape_of_product(self) -> Shape:
        """A ValueError says that the shapes do not fit."""
        raise NotImplementedError

    def product(self, x: Tensor, y: Tensor) -> Tensor:
        """The product of batches of both values."""
        raise NotImplementedError

    def on_left(self, rows: Tensor, y: Tensor) -> Tensor:
        """Rows (regions, rows, *result) times y (regions, *right): what they are on x, before the
        sum over what was broadcast."""
        raise NotImplementedError

    def on_right(self, rows: Tensor, x: Tensor) -> Tensor:
        """The same on y, for x (regions, *left)."""
        raise NotImplementedError

    def sums(self, left: Tensor, right: Tensor) -> tuple[Tensor, Tensor]:
        """Of forms (regions, *shape, inputs) of both values those that are multiplied and added up
        together, (regions, sums, terms, inputs) each."""
        raise NotImplementedError

    def pairs(self) -> tuple[Tensor, Tensor]:
        """For each entry of the result, flattened, the numbers of its sums on both sides."""
        raise NotImplementedError

    @property
    def terms_added(self) -> int:
        """How many products each entry of the result is a sum of."""
        raise NotImplementedError

    def quadratics(self, forms: AffineForms) -> tuple[Tensor, Tensor]:
        """Between which the affine parts of products of deviations are, (regions, units)."""
        steps = forms.steps
        x, y = steps.split(self._sizes, 1)
        left, right = self.sums(x.unflatten(1, self.left), y.unflatten(1, self.right))
        regions = torch.arange(len(steps), device=steps.device)[:, None]
        first, second = self.pairs()
        pairs = first + regions * left.shape[1], second + regions * right.shape[1]
        low, high = quadratic_range(
            left.flatten(0, 1), right.flatten(0, 1), (pairs[0].flatten(), pairs[1].flatten())
        )
        return low.reshape(len(steps), -1), high.reshape(len(steps), -1)

    def parts(self, values: Tensor) -> tuple[Tensor, Tensor]:
        """Both values of a batch."""
        x, y = values.reshape(len(values), -1).split(self._sizes, 1)
        return x.reshape(-1, *self.left), y.reshape(-1, *self.right)

    def result_shape(self, *shapes: Shape) -> Shape:
        if math.prod(shapes[0]) != sum(self._sizes):
            raise ValueError(f"{shapes[0]} does not hold values {self.left} and {self.right}")
        return self._result

    def forward(self, values: Tensor) -> Tensor:
        return self.product(*self.parts(values))

    def relaxation(self, shape: Shape, arguments: Interval) -> ProductPlanes:
        return ProductPlanes.of(self, arguments)

    @property
    def roundings(self) -> int:
        """ONNX Runtime adds what follows to the first of the products that it adds up."""
        return self.terms_added

    def value_error(
        self, arguments: Interval, values: Interval, number: NumberType, widening: float
    ) -> Tensor:
        """Of a sum of products; nothing is known where a factor in front might overflow."""
        x, y = self.parts(arguments.magnitude)
        terms = self.terms_added + PRODUCT_EXTRA_TERMS
        rounding = terms * number.unit * widening
        gamma = rounding / (1 - rounding) if rounding < 1 else math.inf
        reach = self.product(1 + x, 1 + y)
        underflow = reach * (terms * number.smallest * widening)
        error = self.product(x, y) * (gamma * (1 + 2.0**-30)) + underflow
        return torch.where(reach < number.largest**FACTOR_ROOM, error, torch.inf)

    def summed_to(self, rows: Tensor, shape: Shape) -> Tensor:
        """Rows (regions, rows, *shape), after the sum over axes that were broadcast, flattened."""
        padded = (1,) * (rows.dim() - 2 - len(shape)) + shape
        pairs = enumerate(zip(rows.shape[2:], padded, strict=True), start=2)
        axes = [axis for axis, (size, own) in pairs if own == 1 and size != 1]
        total = rows.sum(axes) if axes else rows
        return total.reshape(*rows.shape[:2], -1)


class Multiply(Bilinear):
    """x * y, elementwise."""

    def shape_of_product(self) -> Shape:
        return broadcast(self.left, self.right)

    def product(self, x: Tensor, y: Tensor) -> Tensor:
        return with_rank(x, len(self.right)) * with_rank(y, len(self.left))

    def on_left(self, rows: Tensor, y: Tensor) -> Tensor:
        return rows * with_rank(y, len(self._result)).unsqueeze(1)

    def on_right(self, rows: Tensor, x: Tensor) -> Tensor:
        return rows * with_rank(x, len(self._result)).unsqueeze(1)

    def sums(self, left: Tensor, right: Tensor) -> tuple[Tensor, Tensor]:
        regions, inputs = len(left), left.shape[-1]
        return left.reshape(regions, -1, 1, inputs), right.reshape(regions, -1, 1, inputs)

    def pairs(self) -> tuple[Tensor, Tensor]:
        return (
            _numbers(self.left).expand(self._result).flatten(),
            _numbers(self.right).expand(self._result).flatten(),
        )

    @property
    def terms_added(self) -> int:
        return 1

    def enclosure(self, *inputs: Interval) -> Interval:
        (x_low, y_low), (x_high, y_high) = self.parts(inputs[0].low), self.parts(inputs[0].high)
        pairs = [(a, b) for a in (x_low, x_high) for b in (y_low, y_high)]
        corners = torch.stack([self.product(a, b) for a, b in pairs])
        # 0 times an unbounded side is taken as unbounded: more than is needed, but never less.
        return Interval(corners.amin(0), corners.amax(0)).widened(1).without_nan()


class MatMul(Bilinear):
    """x @ y, each of at least two axes."""

    def shape_of_product(self) -> Shape:
        if min(len(self.left), len(self.right)) < 2 or self.left[-1] != self.right[-2]:
            raise ValueError(f"shapes {self.left} and {self.right} cannot be multiplied")
        return (*broadcast(self.left[:-2], self.right[:-2]), self.left[-2], self.right[-1])

    def product(self, x: Tensor, y: Tensor) -> Tensor:
        return with_rank(x, len(self.right)) @ with_rank(y, len(self.left))

    def on_left(self, rows: Tensor, y: Tensor) -> Tensor:
        return torch.einsum("rm...ij,r...kj->rm...ik", rows, with_rank(y, len(self._result)))

    def on_right(self, rows: Tensor, x: Tensor) -> Tensor:
        return torch.einsum("rm...ij,r...ik->rm...kj", rows, with_rank(x, len(self._result)))

    def sums(self, left: Tensor, right: Tensor) -> tuple[Tensor, Tensor]:
        return left.flatten(1, -3), right.movedim(-2, -3).flatten(1, -3)

    def pairs(self) -> tuple[Tensor, Tensor]:
        rows = _numbers(self.left[:-1]).unsqueeze(-1)
        columns = _numbers((*self.right[:-2], self.right[-1])).unsqueeze(-2)
        return rows.expand(self._result).flatten(), columns.expand(self._result).flatten()

    @property
    def terms_added(self) -> int:
        return self.left[-1]

    def enclosure(self, *inputs: Interval) -> Interval:
        """With centres a, b and radii r, s: a b, off by |a| s + r |b| + r s and by the rounding."""
        centre, radius = inputs[0].centred()
        (a, b), (r, s) = self.parts(centre), self.parts(radius)
        middle = self.product(a, b)
        spread = self.product(a.abs(), s) + self.product(r, b.abs()) + self.product(r, s)
        size = self.product(a.abs() + r, b.abs() + s)
        spread = spread + sum_slack(size, 4 * self.terms_added)
        return Interval(middle - spread, middle + spread).without_nan()


def _numbers(shape: Shape) -> Tensor:
    """The number of each entry of a flattened value."""
    return torch.arange(math.prod(shape)).reshape(shape)


@dataclass(frozen=True, slots=True, eq=False)
class ProductPlanes(Relaxation):
    """All planes around products over boxes with these centres and radii (regions, arguments).

    `remainder` (regions, units) is what the sums of products of deviations from the centres are
    between.
    """

    operator: Bilinear
    centre: Tensor
    radius: Tensor
    remainder: Interval

    @classmethod
    def of(cls, operator: Bilinear, arguments: Interval) -> ProductPlanes:
        centre, radius = arguments.centred()
        most = operator.product(*operator.parts(radius)).flatten(1) * (1 + SUM_SLACK)
        return cls(operator, centre, radius, Interval(-most, most))

    def with_forms(self, forms: AffineForms) -> ProductPlanes:
        """The same where the arguments are known as affine forms around the same centres."""
        operator = self.operator
        low, high = operator.quadratics(forms)
        (g, h), (d, f) = operator.parts(forms.reach), operator.parts(forms.radius)
        mixed = operator.product(g, f) + operator.product(d, h) + operator.product(d, f)
        spread = mixed.flatten(1) * (1 + SUM_SLACK)
        found = Interval(low - spread, high + spread).without_nan()
        return replace(self, remainder=self.remainder.intersected(found))

    @property
    def start(self) -> Tensor:
        units = math.prod(self.operator.result_shape(self.centre.shape[1:]))
        return self.centre.new_full((2, len(self.centre), 1, units), 0.5)

    @property
    def is_loose(self) -> Tensor:
        """The arguments that vary, and meet some that do."""
        operator = self.operator
        x, y = operator.parts((self.radius > 0).to(self.radius))
        ones = torch.ones_like(operator.product(x, y)).unsqueeze(1)
        met = (
            operator.summed_to(operator.on_left(ones, y), operator.left),
            operator.summed_to(operator.on_right(ones, x), operator.right),
        )
        return (torch.cat(met, 2).squeeze(1) > 0) & (self.radius > 0)

    def taken(self, index: Tensor) -> ProductPlanes:
        left = Interval(self.remainder.low[index], self.remainder.high[index])
        return ProductPlanes(self.operator, self.centre[index], self.radius[index], left)

    def band(self, arguments: Interval) -> LinearBand:
        return _ProductBand.of(self.operator, self.centre, self.radius)

    def lines(self, choices: Tensor | None = None) -> Lines:
        turns = None
        if choices is not None:
            r, s = self.operator.parts(self.radius)
            most = self.operator.product(r, s).flatten(1)
            left = (self.remainder.high - self.remainder.low) / 2
            turns = (2 * choices - 1) * (left > TURNED_FROM * most)[:, None].to(choices)
        low, high = self.remainder.low[:, None], self.remainder.high[:, None]
        return _ChosenPlanes(self.operator, self.centre, self.radius, low, high, turns)


@dataclass(frozen=True, slots=True, eq=False)
class _ChosenPlanes(Lines):
    """As `ProductPlanes`; `turns` are the k, (2, regions, rows, units), or None where all are 0."""

    operator: Bilinear
    centre: Tensor
    radius: Tensor
    least: Tensor
    most: Tensor
    turns: Tensor | None

    def pulled(self, rows: Tensor) -> PulledRows:
        operator = self.operator
        (a, b), (r, s) = operator.parts(self.centre), operator.parts(self.radius)
        shape = operator.product(a, b).shape[1:]
        held, magnitude = rows.unflatten(2, shape), rows.abs()
        on_x, on_y = operator.on_left(held, b), operator.on_right(held, a)
        above, below = rows.clamp_min(0), rows.clamp_max(0)
        constant = -self._along(rows, a, b)
        if self.turns is None:
            constant = constant + along(above, self.least) + along(below, self.most)
        else:
            up, down = above * self.turns[0], below * self.turns[1]
            both, apart = up + down, up - down
            on_x = on_x + operator.on_left(both.unflatten(2, shape), s)
            on_y = on_y + operator.on_right(apart.unflatten(2, shape), r)
            constant = constant - self._along(both, a, s) - self._along(apart, r, b)
            kept, turned = above - up.abs(), below + down.abs()
            constant = constant + along(kept, self.least) + along(turned, self.most)
            constant = constant - self._along(up.abs() + down.abs(), r, s)
        # Coefficients on the arguments are rounded relative to these as well, not to themselves.
        size = self._along(magnitude, a.abs() + r, b.abs() + s) * (4 + operator.terms_added)
        on_arguments = torch.cat(
            [operator.summed_to(on_x, operator.left), operator.summed_to(on_y, operator.right)], 2
        )
        return PulledRows(on_arguments, constant, size)

    def _along(self, rows: Tensor, x: Tensor, y: Tensor) -> Tensor:
        return along(rows, self.operator.product(x, y).flatten(1).unsqueeze(1))

    def taken(self, index: Tensor) -> _ChosenPlanes:
        turns = None if self.turns is None else self.turns[:, index]
        return _ChosenPlanes(
            self.operator,
            self.centre[index],
            self.radius[index],
            self.least[index],
            self.most[index],
            turns,
        )

    def turned(self, directions: Tensor) -> Tensor:
        return _moved(self.operator, self.centre, directions)

    def losses(self, rows: Tensor, arguments: Tensor, values: Tensor) -> Tensor:
        """A plane is at most r s below a product, which either factor's split makes less."""
        operator = self.operator
        r, s = operator.parts(self.radius)
        held = rows.abs().unsqueeze(1).unflatten(2, operator.product(r, s).shape[1:])
        met = (
            operator.summed_to(operator.on_left(held, s), operator.left),
            operator.summed_to(operator.on_right(held, r), operator.right),
        )
        return torch.cat(met, 2).squeeze(1) * self.radius

    def gaps(self, arguments: Tensor) -> Tensor:
        return (self.most - self.least).squeeze(1)


@dataclass(frozen=True, slots=True, eq=False)
class _ProductBand(LinearBand):
    """x y = b x + a y - a b + (x - a) (y - b), of which the last is at most r s."""

    operator: Bilinear
    centre: Tensor
    offset: Tensor
    radius: Tensor
    terms: int

    @classmethod
    def of(cls, operator: Bilinear, centre: Tensor, radius: Tensor) -> _ProductBand:
        product = operator.product(*operator.parts(centre)).flatten(1)
        spread = operator.product(*operator.parts(radius)).flatten(1)
        numbers, terms = torch.finfo(spread.dtype), BAND_ROUNDINGS + operator.terms_added
        spread = spread * (1 + terms * numbers.eps) + terms * numbers.tiny
        return cls(operator, centre, -product, spread, 2 * operator.terms_added)

    def pushed(self, directions: Tensor) -> Tensor:
        return _moved(self.operator, self.centre, directions)

    def spread(self, radii: Tensor) -> Tensor:
        return _moved(self.operator, self.centre.abs(), radii[:, None])[:, 0]


def _moved(operator: Bilinear, centre: Tensor, directions: Tensor) -> Tensor:
    """b dx + a dy of directions (regions, n, arguments)."""
    regions, count = directions.shape[:2]
    repeated = centre.repeat_interleave(count, 0)
    (a, b), (x, y) = operator.parts(repeated), operator.parts(directions.flatten(0, 1))
    moved = operator.product(x, b) + operator.product(a, y)
    return moved.reshape(regions, count, -1)


# For translators.


def multiplied(call: OnnxNode, x: int, y: int) -> int:
    """The node of x * y, elementwise; a value times itself is its square."""
    if x == y:
        return squared(call, x)
    return call.emit(Multiply(call.shape_of(x), call.shape_of(y)), joined(call, x, y))


def matrix_product(call: OnnxNode, x: int, y: int) -> int:
    """The node of x @ y; a vector counts as a row on the left, as a column on the right."""
    left, right = call.shape_of(x), call.shape_of(y)
    rows = left if len(left) > 1 else (1, *left)
    columns = right if len(right) > 1 else (*right, 1)
    product = call.emit(MatMul(rows, columns), joined(call, x, y))
    if rows == left and columns == right:
        return product
    shape = call.shape_of(product)
    kept = shape[:-2] + shape[-2:-1] * (len(left) > 1) + shape[-1:] * (len(right) > 1)
    return call.emit(Reshape(kept), product)
