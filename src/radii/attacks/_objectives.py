"""What attacks minimise: how far outputs are from breaking a requirement, with useful gradients.

A task is one query and one way to break it; its depth is the largest of some linear functions of
the point's features, and where that is 0 or below, the requirement is broken. A final ReLU, sigmoid
or softmax flattens the depth where it saturates. So what is differentiated is another function, the
guide, which reads the values before that last step (scores) wherever this leads to the same place;
see `radii.attacks._tasks`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from radii.attacks._geometry import Geometry, joint_steps
from radii.attacks._secants import secant_graph, secants
from radii.attacks._tasks import (
    AttackTask,
    Feature,
    FeatureHalfspaces,
    StackedHalfspaces,
    find_head,
)
from radii.attacks._violations import softmax_log_odds
from radii.networks import Graph, Network
from radii.problem import Halfspaces

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

        With `widths` the gradients are those of secants (`radii.attacks._secants`), which do not
        vanish where the network is flat.
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
        chunked = (points, tasks) if widths is None else (points, tasks, widths)
        values = self._guides.count * points.shape[1]
        parts = []
        for some, chosen, *wide in self._chunks(*chunked, values=values):
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
