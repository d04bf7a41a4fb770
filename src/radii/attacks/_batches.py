"""Queries as tensors: what one pass of an attack works on."""

from __future__ import annotations

import functools
import hashlib
import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from radii.attacks._geometry import DomainRows, Geometry, geometry
from radii.attacks._objectives import Objective, Origins
from radii.attacks._tasks import AttackTask, tasks_of
from radii.networks import Network
from radii.problem import Instance, Norm, Query

STATE_BYTES = 256 * 2**20
"""Memory for the points, gradients and momenta of all rows of a batch."""
STATE_TENSORS = 12
"""Tensors of points that an attack holds at once."""
SEGMENT_HALVINGS = 12
"""Halvings of the segment between an input and a counterexample."""


@dataclass(frozen=True, slots=True)
class Clock:
    """When to stop: asked between steps, so an attack overruns by one step at most."""

    end: float = math.inf

    @classmethod
    def of(cls, seconds: float) -> Clock:
        return cls(time.monotonic() + seconds)

    @property
    def is_over(self) -> bool:
        return time.monotonic() >= self.end

    @property
    def left(self) -> float:
        """Seconds."""
        return self.end - time.monotonic()

    def share(self, parts: int) -> Clock:
        """A clock that leaves an equal part of the time to each of `parts`, this one first."""
        if self.end == math.inf:
            return self
        now = time.monotonic()
        return Clock(now + (self.end - now) / max(1, parts))


@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """Queries in one norm and one domain, as tensors; row i of `centers` is query i's input.

    A task is one query and one way to break it; a row of an attack is a point on its way to do so.
    `members` are the queries' places in the list they came from.
    """

    members: tuple[int, ...]
    queries: tuple[Query, ...]
    objective: Objective
    geometry: Geometry
    room: DomainRows
    centers: Tensor
    radii: Tensor

    @property
    def owners(self) -> Tensor:
        """The query of each task."""
        return self.objective.owners

    def radii_of(self, tasks: Tensor) -> Tensor:
        """How far from its input each task is looked for."""
        return self.radii[self.owners[tasks]] * self.objective.reaches[tasks]

    def projected(self, points: Tensor, tasks: Tensor) -> Tensor:
        """The closest points in the balls and the domain where their tasks are looked for."""
        centers = self.centers[self.owners[tasks]]
        return self.geometry.project(points, centers, self.radii_of(tasks), self.room)

    def noise(self, tasks: Tensor, seed: int, purpose: str) -> Tensor:
        """Uniform noise in [-1, 1], a row a task.

        It depends on the query's instance, the seed, the purpose and the order of tasks within the
        query alone, so that the other queries of a batch change nothing.
        """
        owners, rows = self.owners[tasks], torch.empty(len(tasks), self.centers.shape[1])
        for owner in sorted(set(owners.tolist())):
            mine = owners == owner
            key = f"{self.queries[owner].instance.key}:{seed}:{purpose}"
            digest = hashlib.sha256(key.encode()).digest()
            generator = torch.Generator().manual_seed(int.from_bytes(digest[:8]) >> 1)
            rows[mine] = torch.rand(int(mine.sum()), rows.shape[1], generator=generator) * 2 - 1
        return rows.to(self.centers.dtype)

    def shrunk(self, points: Tensor, tasks: Tensor) -> Tensor:
        """Points that break their tasks, drawn to the input along the segment as far as they do."""
        depths = functools.partial(self.objective.depths, tasks=tasks)
        return self.shrunk_by(points, self.owners[tasks], depths)

    def shrunk_by(
        self, points: Tensor, owners: Tensor, depths: Callable[[Tensor], Tensor]
    ) -> Tensor:
        """The same by any depths of points, which are 0 or below where a point is broken."""
        centers = self.centers[owners]
        offsets = points - centers

        def along(parts: Tensor) -> Tensor:
            return centers + parts[:, None] * offsets

        return _closest_along(along, depths, points.new_ones(len(points)))

    def trimmed_by(
        self, points: Tensor, owners: Tensor, depths: Callable[[Tensor], Tensor]
    ) -> Tensor:
        """Broken points whose largest moves are cut to one length, the others left as they are.

        What a point owes to features with little room is kept where it is all that is needed.
        """
        centers = self.centers[owners]
        offsets = points - centers
        lengths = self.geometry.lengths(offsets)[:, None]

        def along(parts: Tensor) -> Tensor:
            reach = self.geometry.units((parts[:, None] * lengths).expand_as(offsets))
            return centers + torch.clamp(offsets, -reach, reach)

        return _closest_along(along, depths, points.new_ones(len(points)))

    def closest(
        self, points: Tensor, owners: Tensor, depths: Callable[[Tensor], Tensor]
    ) -> dict[int, tuple[float, Tensor]]:
        """Broken points, drawn to their inputs: the distance and the point of each query's
        closest."""
        points = self.shrunk_by(points, owners, depths)
        points = self.trimmed_by(points, owners, depths)
        lengths = self.geometry.lengths(points - self.centers[owners])
        farthest_first = lengths.argsort(descending=True).tolist()
        return {int(owners[row]): (float(lengths[row]), points[row]) for row in farthest_first}

    def points(self, rows: Tensor) -> list[np.ndarray]:
        """Rows as arrays of the network's input shape."""
        shape = self.queries[0].instance.input.shape
        return [row.reshape(shape) for row in rows.numpy()]


def _closest_along(
    along: Callable[[Tensor], Tensor], depths: Callable[[Tensor], Tensor], broken: Tensor
) -> Tensor:
    """Broken points of paths that begin intact at 0; `broken` are places where they are broken."""
    intact = torch.zeros_like(broken)
    for _ in range(SEGMENT_HALVINGS):
        middle = (intact + broken) / 2
        is_broken = depths(along(middle)) <= 0
        broken = torch.where(is_broken, middle, broken)
        intact = torch.where(is_broken, intact, middle)
    return along(broken)


def batches(network: Network, queries: Sequence[Query], *, rows: int) -> list[Batch]:
    """Queries grouped by norm and domain and cut so that memory stays bounded.

    `rows` is how many points the attack moves at once for each task.
    """
    groups: dict[tuple[str, ...], list[int]] = {}
    for place, query in enumerate(queries):
        instance = query.instance
        groups.setdefault(_kind(instance), []).append(place)
    made = []
    for places in groups.values():
        tasks = tasks_of(network, [queries[place].instance.requirement for place in places])
        sizes = [
            (len(own) + 1) * rows * STATE_TENSORS * queries[place].instance.input.nbytes
            for place, own in zip(places, tasks, strict=True)
        ]
        for start, stop in _cuts(sizes):
            made.append(_batch(network, queries, places[start:stop], tasks[start:stop]))
    return made


def _kind(instance: Instance) -> tuple[str, ...]:
    """Instances of the same kind share geometry and room."""
    kind = (instance.norm.value, instance.domain.key())
    if instance.features is None:
        return kind
    # In L1 and L2 it is the room that keeps features where they are, and every input has its own.
    is_shared = instance.norm is Norm.LINF or bool((instance.features.scale > 0).all())
    alone = () if is_shared else (instance.key,)
    return (*kind, instance.features.key(), *alone)


def _room(instance: Instance) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    low, high = (side.ravel() for side in instance.domain.box(instance.input.shape))
    if instance.features is None or instance.norm is Norm.LINF:
        return low, high
    stays, own = instance.features.scale == 0, instance.input.ravel().astype(np.float64)
    return np.where(stays, own, low), np.where(stays, own, high)


def _cuts(sizes: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Where to cut a list into stretches of at most STATE_BYTES, or of one entry."""
    start, total = 0, 0
    for index, size in enumerate(sizes):
        if index > start and total + size > STATE_BYTES:
            yield start, index
            start, total = index, 0
        total += size
    yield start, len(sizes)


def _batch(
    network: Network,
    queries: Sequence[Query],
    places: Sequence[int],
    tasks: Sequence[Sequence[AttackTask]],
) -> Batch:
    chosen = tuple(queries[place] for place in places)
    first = chosen[0].instance
    low, high = _room(first)
    inputs = np.stack([query.instance.input.ravel() for query in chosen])

    def tensor(values: npt.ArrayLike) -> Tensor:
        return torch.from_numpy(np.array(values, network.input_dtype))

    origins = Origins(tensor(inputs), geometry(first.norm, first.features, network.torch_dtype))
    return Batch(
        members=tuple(places),
        queries=chosen,
        objective=Objective(network, tasks, origins=origins),
        geometry=origins.geometry,
        room=DomainRows(tensor(low), tensor(high)),
        centers=origins.centers,
        radii=tensor([query.eps for query in chosen]),
    )


def objective_depths(
    network: Network, query: Query, points: npt.NDArray[np.floating]
) -> npt.NDArray[np.floating]:
    """How far points are from breaking a query's requirement, as attacks see it.

    Above 0 where it holds, 0 or below where it is broken: the least depth over all ways to break
    it. Points are rows, in the network's input shape or flat.
    """
    (batch,) = batches(network, [query], rows=len(points))
    rows = torch.from_numpy(points.reshape(len(points), -1)).to(batch.centers.dtype)
    depths = [
        batch.objective.depths(rows, torch.full((len(rows),), task))
        for task in range(len(batch.owners))
    ]
    return np.asarray(torch.stack(depths).amin(dim=0).numpy())
