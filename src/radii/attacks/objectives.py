"""What attacks minimise: how far outputs are from breaking a requirement, with useful gradients.

A requirement is broken on a union of polyhedra of outputs. A task is one query and one of its
polyhedra; its depth is the largest row of `matrix @ y + offset`, and where that is 0 or below, the
requirement is broken. A final ReLU, sigmoid or softmax flattens the depth where it saturates.
So what is differentiated is another function, the guide, which reads the values before that last
step (scores) wherever this leads to the same place; see `radii.attacks.guides`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence

import numpy as np
import torch
from torch import Tensor

from radii.attacks.guides import Head, find_head, guide_rows, tied_tasks
from radii.attacks.surrogates import secant_graph, secants
from radii.networks import Graph, Network
from radii.properties import Halfspaces

__all__ = ["Objective"]

CHUNK_BYTES = 64 * 2**20
"""Values of the network that are held at once; more rows than that run one after the other."""


class Objective:
    """Depths and guides of points, each for one task; `owners` is the query of each task."""

    def __init__(
        self,
        network: Network,
        violations: Sequence[Sequence[Halfspaces]],
        inputs: Halfspaces | None = None,
    ) -> None:
        """`violations` are the polyhedra of each query; `inputs` must hold as well, for all."""
        self._shape, self.dtype = network.input_shape, network.torch_dtype
        self._head = find_head(network.graph)
        self._body = self._head.body if self._head else network.graph
        self._secants = secant_graph(self._body)
        self._reads_inputs = inputs is not None
        owners, exact, guides = [], [], []
        for owner, polyhedra in enumerate(violations):
            for breaking, leading in _tasks(polyhedra, self._head):
                owners.append(owner)
                exact.append(_with_inputs(breaking, inputs))
                guides.append(_with_inputs(leading, inputs))
        self.owners = torch.tensor(owners, dtype=torch.long)
        self._exact = _padded(exact, self.dtype)
        self._guides = _padded(guides, self.dtype)
        self._chunk = max(1, CHUNK_BYTES // (8 * sum(node.size for node in self._body.nodes)))

    def depths(self, points: Tensor, tasks: Tensor) -> Tensor:
        """The depth of each point for its task: broken where it is 0 or below."""
        with torch.no_grad():
            return torch.cat(
                [
                    _largest_row(self._exact, self._outputs(some), chosen)
                    for some, chosen in self._chunks(points, tasks)
                ]
            )

    def gradients(
        self, points: Tensor, tasks: Tensor, widths: Tensor | None = None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Depths, guides, and the guides' gradients, a row for each point.

        With `widths` the gradients are those of `radii.attacks.surrogates`, which do not vanish
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

    def _gradients(
        self, points: Tensor, tasks: Tensor, body: Graph
    ) -> tuple[Tensor, Tensor, Tensor]:
        leaves = points.detach().requires_grad_()
        scores = self._scores(leaves, body)
        seen = self._seen(leaves, self._finished(scores))
        features = torch.cat([seen, scores], dim=1) if self._head else seen
        guides = _largest_row(self._guides, features, tasks)
        (gradients,) = torch.autograd.grad(guides.sum(), leaves)
        depths = _largest_row(self._exact, seen, tasks) if self._head else guides
        return depths.detach(), guides.detach(), torch.nan_to_num(gradients)

    def _chunks(self, *rows: Tensor) -> Iterator[tuple[Tensor, ...]]:
        """Tensors of equal length, cut alike."""
        if len(rows[0]) <= self._chunk:
            return iter([rows])
        return zip(*(torch.split(each, self._chunk) for each in rows), strict=True)

    def _scores(self, points: Tensor, body: Graph) -> Tensor:
        return body(points.reshape(-1, *self._shape)).reshape(len(points), -1)

    def _finished(self, scores: Tensor) -> Tensor:
        return self._head.function(scores) if self._head else scores

    def _outputs(self, points: Tensor) -> Tensor:
        return self._seen(points, self._finished(self._scores(points, self._body)))

    def _seen(self, points: Tensor, outputs: Tensor) -> Tensor:
        """What exact rows are about: the outputs, and the inputs if those are constrained too."""
        return torch.cat([points, outputs], dim=1) if self._reads_inputs else outputs


def _tasks(
    polyhedra: Sequence[Halfspaces], head: Head | None
) -> list[tuple[Halfspaces, Halfspaces]]:
    """For each task the polyhedron that breaks the requirement and the one that leads there."""
    if head is None:
        return [(polyhedron, polyhedron) for polyhedron in polyhedra]
    own = [(polyhedron, guide_rows(polyhedron, head)) for polyhedron in polyhedra]
    return own + tied_tasks(polyhedra, head)


def _with_inputs(polyhedron: Halfspaces, inputs: Halfspaces | None) -> Halfspaces:
    """The polyhedron of (inputs, features) that both describe."""
    if inputs is None:
        return polyhedron
    rows, features = inputs.matrix.shape[1], polyhedron.matrix.shape[1]
    above = np.hstack([inputs.matrix, np.zeros((len(inputs.matrix), features))])
    below = np.hstack([np.zeros((len(polyhedron.matrix), rows)), polyhedron.matrix])
    return Halfspaces(np.vstack([above, below]), np.concatenate([inputs.offset, polyhedron.offset]))


def _padded(polyhedra: Sequence[Halfspaces], dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """All polyhedra as one tensor; a row that is only padding is -inf everywhere."""
    rows = max((len(p.offset) for p in polyhedra), default=1)
    features = max((p.matrix.shape[1] for p in polyhedra), default=1)
    matrices = np.zeros((len(polyhedra), rows, features))
    offsets = np.full((len(polyhedra), rows), -np.inf)
    for index, polyhedron in enumerate(polyhedra):
        count = len(polyhedron.offset)
        matrices[index, :count] = polyhedron.matrix
        offsets[index, :count] = polyhedron.offset
    return torch.from_numpy(matrices).to(dtype), torch.from_numpy(offsets).to(dtype)


def _largest_row(polyhedra: tuple[Tensor, Tensor], features: Tensor, tasks: Tensor) -> Tensor:
    matrices, offsets = polyhedra
    rows = torch.bmm(matrices[tasks], features[:, :, None])[:, :, 0] + offsets[tasks]
    return rows.amax(dim=1)
