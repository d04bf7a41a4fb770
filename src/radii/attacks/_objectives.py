"""Into several halfspaces at once: the steps towards a violation that is a conjunction.

Following the worst row alone zigzags between rows, and jumps over a region that is thin. Here all
rows are linearised at the point, and the step is the shortest that brings every one of them down.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from radii.attacks._geometry import Geometry
from radii.attacks._tasks import (
    AttackTask,
    Feature,
    FeatureHalfspaces,
    StackedHalfspaces,
    find_head,
)
from radii.attacks._violations import softmax_log_odds
from radii.networks import Graph, Network, Node, Operator, OperatorKind
from radii.problem import Halfspaces

SWEEPS = 20
"""Rounds over the rows; each makes one row hold after the other, which is Hildreth's method."""
OVERSHOOT = 0.01
"""How far below 0 rows are aimed, as a part of the largest row's size: steps that end on a boundary
never cross it."""


def joint_steps(rows: Tensor, slopes: Tensor) -> Tensor:
    """For each point the shortest step, in L2, with rows + slopes @ step below 0; at least nearly.

    Slopes and steps are those per unit of each feature's scale. `rows` is (points, rows), -inf
    where a point has fewer; `slopes` is (points, rows, features).
    """
    is_row = rows.isfinite()
    size = rows.abs().masked_fill(~is_row, 0.0).amax(dim=1, keepdim=True)
    needed = torch.where(is_row, rows + OVERSHOOT * size, 0.0)
    products = slopes @ slopes.transpose(1, 2)
    squares = products.diagonal(dim1=1, dim2=2)
    is_steep = is_row & (squares > torch.finfo(rows.dtype).tiny)
    multipliers = torch.zeros_like(needed)
    for _ in range(SWEEPS):
        for row in range(rows.shape[1]):
            missing = needed[:, row] - (products[:, row] * multipliers).sum(dim=1)
            change = missing / torch.where(is_steep[:, row], squares[:, row], 1.0)
            raised = (multipliers[:, row] + change).clamp(min=0.0)
            multipliers[:, row] = torch.where(is_steep[:, row], raised, 0.0)
    return -(multipliers[:, None] @ slopes)[:, 0]


# The same network with gradients that look further than a point.
#
# Many a network is flat around its inputs: the units that would break it are off, or saturated,
# and
# the gradient does not know of them. Here every activation f still computes f(x), but passes on
# the
# slope of its secant over [x - r, x + r] in place of its derivative. A descent that begins with
# wide
# secants and narrows them is led towards units that can be switched, and ends on true gradients.


LEAST_WIDTH = 1e-3
"""Narrower secants are rounding errors in float32."""

_SECANT_WIDTHS: ContextVar[Tensor] = ContextVar("widths")


@contextlib.contextmanager
def secants(widths: Tensor) -> Iterator[None]:
    """While this holds, a `secant_graph` is called with a batch as long as `widths`.

    A row's r is its width times the root mean square of the activation's own inputs.
    """
    token = _SECANT_WIDTHS.set(widths)
    try:
        yield
    finally:
        _SECANT_WIDTHS.reset(token)


def secant_graph(graph: Graph) -> Graph:
    """A graph with the same values whose activations pass on slopes of secants."""
    nodes = [
        Node(node.name, _Secant(node.operator), node.inputs, node.shape)
        if node.operator.is_activation
        else node
        for node in graph.nodes
    ]
    return Graph(nodes, graph.output)


class _Secant(Operator):
    kind = OperatorKind.SMOOTH

    def __init__(self, activation: Operator) -> None:
        super().__init__()
        self.activation = activation

    def forward(self, x: Tensor) -> Tensor:
        axes = tuple(range(1, x.dim()))
        with torch.no_grad():
            scale = x.square().mean(dim=axes, keepdim=True).sqrt()
            widths = _SECANT_WIDTHS.get().clamp(min=LEAST_WIDTH).reshape(-1, *(1 for _ in axes))
            radii = widths * scale + torch.finfo(x.dtype).tiny
        result: Tensor = _SecantFunction.apply(x, radii, self.activation)  # type: ignore[no-untyped-call]
        return result


class _SecantFunction(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, radii: Tensor, activation: Operator) -> Tensor:
        ctx.save_for_backward(x, radii)
        ctx.activation = activation
        result: Tensor = activation(x)
        return result

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None]:
        x, radii = ctx.saved_tensors
        rise = ctx.activation(x + radii) - ctx.activation(x - radii)
        return gradients[0] * rise / (2 * radii), None, None


# What attacks minimise: how far outputs are from breaking a requirement, with useful gradients.
#
# A task is one query and one way to break it; its depth is the largest of some linear functions of
# the point's features, and where that is 0 or below, the requirement is broken. A final ReLU,
# sigmoid or softmax flattens the depth where it saturates. So what is differentiated is another
# function, the guide, which reads the values before that last step (scores) wherever this leads to
# the same place; see `radii.attacks._tasks` and `radii.attacks._tasks`.


PointLoss = Callable[[Tensor, Tensor, Tensor], Tensor]
"""From the guide of each point's own task, the guides of all tasks of its query (inf: no task), and
the scores, to what is minimised."""

CHUNK_BYTES = 64 * 2**20
"""Values of the network that are held at once; more rows than that run one after the other."""


@dataclass(frozen=True, slots=True, eq=False)
class Origins:
    """The input of each query, a row each, and how distances to it are measured."""

    centers: Tensor
    geometry: Geometry


class Objective:
    """Depths and guides of points, each for one task; `owners` is the query of each task.

    `reaches` is the part of the query's radius in which each task is looked for; `turn` and `turns`
    say which starts it takes. `conjunctions` are the tasks with several rows.
    """

    def __init__(
        self,
        network: Network,
        tasks: Sequence[Sequence[AttackTask]],
        inputs: Halfspaces | None = None,
        origins: Origins | None = None,
    ) -> None:
        """`tasks` are those of each query; `inputs` must hold as well, for all.

        Without `origins` every distance is 0.
        """
        self._shape, self.dtype = network.input_shape, network.torch_dtype
        self._head = find_head(network.graph)
        self._body = self._head.body if self._head else network.graph
        self._secants = secant_graph(self._body)
        self._origins = origins
        owners, reaches, exact, guides = [], [], [], []
        for owner, own in enumerate(tasks):
            for task in own:
                owners.append(owner)
                reaches.append(task.reach)
                exact.append(_with_inputs(task.exact, inputs))
                guides.append(_with_inputs(task.guide, inputs))
        self.owners = torch.tensor(owners, dtype=torch.long)
        self.reaches = torch.tensor(reaches, dtype=self.dtype)
        self.turn = torch.tensor([task.turn for own in tasks for task in own])
        self.turns = torch.tensor([task.turns for own in tasks for task in own])
        several = [len(rows.offset) > 1 for rows in guides]
        self.conjunctions = torch.tensor(several, dtype=torch.bool).nonzero()[:, 0]
        self._exact = StackedHalfspaces(exact, self.dtype)
        is_exact = all(task.guide is task.exact for own in tasks for task in own)
        self._guides = self._exact if is_exact else StackedHalfspaces(guides, self.dtype)
        self._values = sum(node.size for node in self._body.nodes)

    def depths(self, points: Tensor, tasks: Tensor) -> Tensor:
        """The depth of each point for its task: broken where it is 0 or below."""
        with torch.no_grad():
            return torch.cat(
                [
                    self._exact.largest(
                        self._features(some, chosen, self._body, self._exact.features), chosen
                    )
                    for some, chosen in self._chunks(points, tasks)
                ]
            )

    def least_depths(self, points: Tensor, owners: Tensor) -> Tensor:
        """How far each point is from breaking its query's requirement in whichever way is nearest;
        the network is asked once for each point."""
        found = []
        with torch.no_grad():
            for some, own in self._chunks(points, owners):
                tasks = self._all_tasks(own)
                features = self._features(some, tasks[:, 0], self._body, self._exact.features)
                found.append(self._of_all(self._exact, features, tasks).amin(dim=1))
        return torch.cat(found)

    def _all_tasks(self, owners: Tensor) -> Tensor:
        """The tasks of each query, a row each; one with fewer has its last one again."""
        counts = torch.bincount(self.owners)
        first = (counts.cumsum(0) - counts)[owners]
        places = torch.arange(int(counts[owners].max()))
        return first[:, None] + torch.minimum(places, counts[owners][:, None] - 1)

    @staticmethod
    def _of_all(
        halfspaces: StackedHalfspaces, features: Mapping[Feature, Tensor], tasks: Tensor
    ) -> Tensor:
        """The largest row of each of several tasks of a point: (points, tasks)."""
        return torch.stack([halfspaces.largest(features, own) for own in tasks.unbind(1)], dim=1)

    def losses(
        self, points: Tensor, tasks: Tensor, loss: PointLoss
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Least depths over all tasks of the points' queries, any loss, and its gradients."""
        parts = [self._losses(some, chosen, loss) for some, chosen in self._chunks(points, tasks)]
        depths, values, gradients = zip(*parts, strict=True)
        return torch.cat(depths), torch.cat(values), torch.cat(gradients)

    def _losses(
        self, points: Tensor, tasks: Tensor, loss: PointLoss
    ) -> tuple[Tensor, Tensor, Tensor]:
        leaves = points.detach().requires_grad_()
        wanted = {*self._guides.features, *self._exact.features}
        features = self._features(leaves, tasks, self._body, wanted)
        every = self._all_tasks(self.owners[tasks])
        is_again = torch.zeros_like(every, dtype=torch.bool)
        is_again[:, 1:] = every[:, 1:] == every[:, :-1]
        guides = self._of_all(self._guides, features, every)
        own = guides.gather(1, (tasks - every[:, 0])[:, None])[:, 0]
        values = loss(own, guides.masked_fill(is_again, torch.inf), features[Feature.SCORES])
        (gradients,) = torch.autograd.grad(values.sum(), leaves)
        depths = self._of_all(self._exact, features, every).amin(dim=1)
        return depths.detach(), values.detach(), torch.nan_to_num(gradients)

    def gradients(
        self, points: Tensor, tasks: Tensor, widths: Tensor | None = None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Depths, guides, and the guides' gradients, a row for each point.

        With `widths` the gradients are those of `radii.attacks._objectives`, which do not vanish
        where the network is flat.
        """
        parts = []
        for some, chosen, *wide in self._chunks(
            points, tasks, *(() if widths is None else (widths,))
        ):
            with secants(wide[0]) if wide else contextlib.nullcontext():
                parts.append(self._gradients(some, chosen, self._secants if wide else self._body))
        depths, guides, gradients = zip(*parts, strict=True)
        return torch.cat(depths), torch.cat(guides), torch.cat(gradients)

    def joint_steps(
        self, points: Tensor, tasks: Tensor, widths: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Depths, and the steps that lower all rows of the guides at once, a row for each point.

        `widths` as for `gradients`.
        """
        told = (points, tasks) if widths is None else (points, tasks, widths)
        values = self._guides.count * points.shape[1]
        parts = []
        for some, chosen, *wide in self._chunks(*told, values=values):
            with secants(wide[0]) if wide else contextlib.nullcontext():
                parts.append(self._joint_steps(some, chosen, self._secants if wide else self._body))
        depths, steps = zip(*parts, strict=True)
        return torch.cat(depths), torch.cat(steps)

    def _joint_steps(self, points: Tensor, tasks: Tensor, body: Graph) -> tuple[Tensor, Tensor]:
        leaves = points.detach().requires_grad_()
        wanted = {*self._guides.features, *self._exact.features}
        features = self._features(leaves, tasks, body, wanted)
        rows = self._guides.rows(features, tasks)
        found = [
            torch.autograd.grad(row.sum(), leaves, retain_graph=True)[0] for row in rows.unbind(1)
        ]
        slopes = torch.nan_to_num(torch.stack(found, dim=1))
        steps = joint_steps(rows.detach(), self._units(slopes))
        return self._exact.largest(features, tasks).detach(), self._units(steps)

    def _units(self, values: Tensor) -> Tensor:
        """Multiples of the features' scales in the features' own units; for slopes the reverse."""
        return values if self._origins is None else self._origins.geometry.units(values)

    def _gradients(
        self, points: Tensor, tasks: Tensor, body: Graph
    ) -> tuple[Tensor, Tensor, Tensor]:
        leaves = points.detach().requires_grad_()
        wanted = {*self._guides.features, *self._exact.features}
        features = self._features(leaves, tasks, body, wanted)
        guides = self._guides.largest(features, tasks)
        (gradients,) = torch.autograd.grad(guides.sum(), leaves)
        is_exact = self._guides is self._exact
        depths = guides if is_exact else self._exact.largest(features, tasks)
        return depths.detach(), guides.detach(), torch.nan_to_num(gradients)

    def _chunks(self, *rows: Tensor, values: int = 0) -> Iterator[tuple[Tensor, ...]]:
        """Tensors of equal length, cut alike; `values` more than the network's own are held."""
        length = max(1, CHUNK_BYTES // (8 * (self._values + values)))
        if len(rows[0]) <= length:
            return iter([rows])
        return zip(*(torch.split(each, length) for each in rows), strict=True)

    def _features(
        self, points: Tensor, tasks: Tensor, body: Graph, wanted: Collection[Feature]
    ) -> dict[Feature, Tensor]:
        """What is wanted of each point."""
        scores = body(points.reshape(-1, *self._shape)).reshape(len(points), -1)
        outputs = self._head.saturation.function(scores) if self._head else scores
        found = {Feature.INPUTS: points, Feature.OUTPUTS: outputs, Feature.SCORES: scores}
        if Feature.FLOORED in wanted or Feature.CEILED in wanted:
            assert self._head is not None
            assert self._head.limits is not None
            low, high = self._head.limits
            found[Feature.FLOORED] = scores.clamp(min=low)
            found[Feature.CEILED] = scores.clamp(max=high)
        if Feature.ODDS in wanted:
            found[Feature.ODDS] = softmax_log_odds(outputs)
        if Feature.SCORE_ODDS in wanted:
            found[Feature.SCORE_ODDS] = softmax_log_odds(scores)
        if Feature.DISTANCE in wanted:
            found[Feature.DISTANCE] = self._distances(points, tasks)[:, None]
        return found

    def _distances(self, points: Tensor, tasks: Tensor) -> Tensor:
        if self._origins is None:
            return points.new_zeros(len(points))
        centers = self._origins.centers[self.owners[tasks]]
        return self._origins.geometry.lengths(points - centers)


def _with_inputs(rows: FeatureHalfspaces, inputs: Halfspaces | None) -> FeatureHalfspaces:
    """Rows about the inputs as well."""
    return rows if inputs is None else FeatureHalfspaces.of(inputs, Feature.INPUTS).and_also(rows)
