"""Instances, queries, the grid of eps values, and the specification a verifier sees.

`distinct_names` gives networks and experiments names by which every table tells them apart.
"""

from __future__ import annotations

import builtins
import hashlib
import itertools
import math
import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction
from pathlib import Path
from typing import Self

import numpy as np

from radii.errors import SpecificationError
from radii.problem._ball import Ball
from radii.problem._domains import Box, Domain, Norm
from radii.problem._features import Features
from radii.problem._verdicts import Array
from radii.problem.properties._base import Anchor, Halfspaces, Property, Requirement


@dataclass(frozen=True, slots=True, eq=False)
class Specification:
    """Does the requirement hold for every input of the region? What a verifier decides.

    `inputs`, where given, cuts the region further down to a polyhedron of (flattened) inputs.
    """

    region: Ball | Box
    requirement: Requirement
    inputs: Halfspaces | None = None

    def contains(self, point: Array) -> bool:
        """The point is an input that the specification speaks about."""
        if not self.region.contains(point):
            return False
        return self.inputs is None or float(self.inputs.depth(np.ravel(point))) <= 0


@dataclass(frozen=True, slots=True, eq=False)
class Instance:
    """One input of one network, and what must stay true around it.

    `input` is in the data's own units and exact in the network's input type. `network` is the
    network's fingerprint. `outputs` is what ONNX Runtime gives for the input itself;
    `outputs_are_probabilities` where the network ends in a softmax over them. `features` say how
    far each value moves within an eps of 1; None: by 1.
    """

    network: str
    index: int
    input: Array
    label: int
    outputs: Array
    property: Property
    norm: Norm
    domain: Domain
    outputs_are_probabilities: bool = False
    features: Features | None = None

    @builtins.property
    def predicted(self) -> int:
        """The class with the largest output."""
        return int(np.argmax(self.outputs))

    @builtins.property
    def requirement(self) -> Requirement:
        """The property tied to this input."""
        outputs = np.asarray(self.outputs, np.float64)
        return self.property.at(Anchor(self.label, outputs, self.outputs_are_probabilities))

    @builtins.property
    def kind(self) -> type[Requirement]:
        """What kind of requirement the property becomes here."""
        return self.property.kind(self.outputs_are_probabilities)

    @builtins.property
    def correct(self) -> bool:
        """The label's output is strictly the largest: a tie counts as misclassified."""
        rivals = np.delete(self.outputs, self.label)
        return bool(np.all(self.outputs[self.label] > rivals))

    @builtins.property
    def holds(self) -> bool:
        """The property holds at the input itself; if not, the radius is 0."""
        return bool(self.requirement.holds(self.outputs[None], 0.0)[0])

    @builtins.property
    def is_discrete(self) -> bool:
        """Some of its features are whole numbers or categories."""
        return self.features is not None and self.features.is_discrete

    def ball(self, eps: float) -> Ball:
        center = np.asarray(self.input, np.float64)
        return Ball(center, eps, self.norm, self.domain, self.features)

    @builtins.property
    def key(self) -> str:
        """The same for the same question, on any machine: 32 hexadecimal digits."""
        parts = (
            self.network,
            str(self.index),
            str(self.input.dtype),
            str(self.input.shape),
            str(self.label),
            self.property.spec,
            self.norm.value,
            self.domain.key(),
            *(() if self.features is None else (self.features.key(),)),
        )
        digest = hashlib.sha256("\n".join(parts).encode())
        digest.update(np.ascontiguousarray(self.input).tobytes())
        return digest.hexdigest()[:32]


@dataclass(frozen=True, slots=True, eq=False)
class Query:
    """Is the instance robust at this eps?"""

    instance: Instance
    eps: float

    @property
    def specification(self) -> Specification:
        return Specification(self.instance.ball(self.eps), self.instance.requirement)


class Grid:
    """The eps values a search may ask about, in increasing order.

    `Grid(start, stop, step)` holds start, start + step, ... below stop; `of_values` any values that
    increase, and `log` values of equal ratios. Each value is the float nearest to the exact decimal
    (or fraction), so that a grid given as 0.001:0.4:0.002 holds 0.003 and not
    0.0030000000000000001. Grids of the same values are equal, and where there are three or more in
    even steps they have the same text, however they were given.
    """

    __slots__ = ("_text", "values")

    _text: str
    values: tuple[float, ...]

    def __init__(
        self,
        start: str | float | Fraction,
        stop: str | float | Fraction,
        step: str | float | Fraction,
    ) -> None:
        first, end, gap = map(_exact, (start, stop, step))
        self._text = ":".join(map(_shortest, (first, end, gap)))
        if first < 0 or gap <= 0 or end <= first:
            raise SpecificationError(
                f"grid {self} is not increasing: it needs 0 <= start < stop and step > 0"
            )
        count = math.ceil((end - first) / gap)
        self._check_size(count)
        unit = math.lcm(first.denominator, gap.denominator)
        begin, stride = int(first * unit), int(gap * unit)
        # Division of whole numbers gives the float nearest to the exact quotient.
        self.values = tuple((begin + place * stride) / unit for place in range(count))

    @classmethod
    def of_values(cls, values: Iterable[str | float | Fraction]) -> Grid:
        """The grid of these values, which must increase."""
        exact = [_exact(value) for value in values]
        if not exact:
            raise SpecificationError("a grid needs at least one value")
        gaps = {after - before for before, after in itertools.pairwise(exact)}
        if len(gaps) == 1 and len(exact) > 2 and (step := next(iter(gaps))) > 0:
            return cls(exact[0], exact[-1] + step, step)
        if len(exact) == 1:
            return cls.of_one(exact[0]) if exact[0] else cls(0, 1, 1)
        return cls._of(",".join(map(_shortest, exact)), tuple(map(float, exact)))

    @classmethod
    def log(cls, start: str | float | Fraction, stop: str | float | Fraction, count: int) -> Grid:
        """`count` values in equal ratios from start to stop, both included.

        Rounded to six digits, so that they are the same on every machine.
        """
        first, last = _exact(start), _exact(stop)
        text = f"log:{_shortest(first)}:{_shortest(last)}:{count}"
        if not 0 < first < last or count < 2:
            raise SpecificationError(
                f"grid '{text}' needs 0 < start < stop, and at least two values"
            )
        if count > MAX_GRID_VALUES:
            raise SpecificationError(f"grid {text} has {count} values, over {MAX_GRID_VALUES}")
        with localcontext(prec=28):
            low, high = (Decimal(end.numerator) / Decimal(end.denominator) for end in (first, last))
            ratio = (high / low).ln() / (count - 1)
            inner = [float(f"{low * (ratio * place).exp():.5e}") for place in range(1, count - 1)]
        return cls._of(text, (float(first), *inner, float(last)))

    @classmethod
    def _of(cls, text: str, values: tuple[float, ...]) -> Grid:
        made = cls.__new__(cls)
        made._text, made.values = text, values
        if not all(a < b for a, b in itertools.pairwise(values)) or values[0] < 0:
            raise SpecificationError(f"grid {text}: its values must increase, and none be below 0")
        made._check_size(len(values))
        return made

    def _check_size(self, count: int) -> None:
        if count > MAX_GRID_VALUES:
            raise SpecificationError(f"grid {self} has {count} values, over {MAX_GRID_VALUES}")

    @classmethod
    def parse(cls, text: str) -> Grid:
        """`start:stop:step`, stop excluded; values with commas; `log:start:stop:count`; or the name
        of a preset. Numbers may be fractions, as in 0:0.4:1/255.
        """
        known = PRESETS.get(text.strip(), text).strip()
        parts = known.split(":")
        if known.startswith("log:") and len(parts) == 4:
            if not parts[3].strip().isdecimal():
                raise SpecificationError(f"grid '{text}': '{parts[3]}' is not a number of values")
            return cls.log(parts[1], parts[2], int(parts[3]))
        if "," in known and ":" not in known:
            return cls.of_values(known.split(","))
        if len(parts) != 3:
            raise SpecificationError(
                f"grid '{text}' is not of the form start:stop:step, a list such as 0.01,0.02,0.1, "
                f"log:start:stop:count, nor one of {', '.join(PRESETS)}"
            )
        return cls(*parts)

    @classmethod
    def of_one(cls, eps: str | float | Fraction) -> Grid:
        """The grid that holds this value alone."""
        try:
            value = _exact(eps)
        except SpecificationError:
            raise SpecificationError(
                f"eps '{eps}' is not a number, such as 0.05 or 8/255"
            ) from None
        if not value > 0:
            raise SpecificationError(f"eps {eps} must be above 0")
        return cls(value, 2 * value, value)

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return f"Grid.parse({self._text!r})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Grid):
            return NotImplemented
        return self._text == other._text or self.values == other.values

    def __hash__(self) -> int:
        return hash((len(self), self[0], self[len(self) - 1]))

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, index: int) -> float:
        return self.values[index]

    def __iter__(self) -> Iterator[float]:
        return iter(self.values)

    @property
    def finest_step(self) -> float:
        """The smallest difference of neighbours, to 12 digits; of one value, that value."""
        gaps = (after - before for before, after in itertools.pairwise(self))
        return float(f"{min(gaps, default=self[0]):.12g}")

    def count_below(self, eps: float) -> int:
        """How many values are strictly below eps; so `grid[count - 1]` is the largest of them."""
        return bisect_left(self.values, eps)


MAX_GRID_VALUES = 1_000_000

PRESETS = {"mnist": "0.001:0.4:0.002", "pixels": "0:0.4:1/255"}
"""The grids of the robustness distributions paper: 200 values for MNIST; whole steps of a pixel for
CIFAR-10 and GTSRB."""


def _exact(value: str | float | Fraction) -> Fraction:
    try:
        return Fraction(value if isinstance(value, Fraction) else str(value).strip())
    except (ValueError, ZeroDivisionError):
        raise SpecificationError(f"'{value}' is not a number of a grid") from None


def _shortest(value: Fraction) -> str:
    text = repr(float(value)).removesuffix(".0")
    return text if Fraction(text) == value else str(value)


MAX_SHARDS = 10_000

_RANGES = re.compile(r"\d+(-\d+)?(,\d+(-\d+)?)*")


@dataclass(frozen=True, slots=True)
class Shard:
    """Some of `count` parts of equal size of an experiment's inputs. `numbers` begin at 1.

    As text it is 3/20, or 1-4,9/20 for several parts together.
    """

    numbers: tuple[int, ...]
    count: int

    def __post_init__(self) -> None:
        numbers = tuple(sorted(set(self.numbers)))
        if not 1 <= self.count <= MAX_SHARDS:
            raise SpecificationError(f"{self.count} shards must be 1 to {MAX_SHARDS:,}")
        if not numbers or numbers[0] < 1 or numbers[-1] > self.count:
            wrong = next((each for each in numbers if not 1 <= each <= self.count), "none")
            raise SpecificationError(
                f"shard {wrong} of {self.count} does not exist: they are numbered from 1 to "
                f"{self.count}"
            )
        object.__setattr__(self, "numbers", numbers)

    @classmethod
    def parse(cls, text: str) -> Self:
        """As `str` writes it."""
        ranges, slash, count = text.replace(" ", "").partition("/")
        if not (slash and count.isdecimal() and _RANGES.fullmatch(ranges)):
            raise SpecificationError(f"shard '{text}' is not a part of a number, such as 3/20")
        numbers: set[int] = set()
        for part in ranges.split(","):
            first, _, last = part.partition("-")
            end = min(int(last or first), MAX_SHARDS)
            numbers.update(range(int(first), end + 1))
        return cls(tuple(numbers), int(count))

    @property
    def is_whole(self) -> bool:
        """All parts."""
        return len(self.numbers) == self.count

    @property
    def ranges(self) -> str:
        """The numbers in few words, such as 1-4,9."""
        own = set(self.numbers)
        firsts = [n for n in self.numbers if n - 1 not in own]
        lasts = [n for n in self.numbers if n + 1 not in own]
        ends = zip(firsts, lasts, strict=True)
        return ",".join(str(low) if low == high else f"{low}-{high}" for low, high in ends)

    def __contains__(self, place: object) -> bool:
        """Whether the input at this position, counted from 0, is in one of these parts."""
        return isinstance(place, int) and place % self.count + 1 in self.numbers

    def __str__(self) -> str:
        return f"{self.ranges}/{self.count}"


def distinct_names(places: Sequence[str | Path]) -> list[str]:
    """For each file or folder its name, or the end of its path where others are called the same.

    Otherwise tables could not distinguish networks of one name.
    """
    paths = [Path(place).resolve().parts for place in places]
    own = [Path(place).name or path[-1] for place, path in zip(places, paths, strict=True)]
    return [
        name if own.count(name) == 1 else "/".join(path[-_parts_needed(path, paths) :])
        for name, path in zip(own, paths, strict=True)
    ]


def _parts_needed(path: tuple[str, ...], paths: Sequence[tuple[str, ...]]) -> int:
    """How many trailing parts of the path distinguish it from all others."""
    others = [other for other in paths if other != path]
    counts = range(1, len(path) + 1)
    return next(n for n in counts if all(other[-n:] != path[-n:] for other in others))
