"""Looking for inputs that break a property on ONNX Runtime, where its rounding is largest.

Rounding is largest where values are: at corners of the ball that the weights of some unit point to.
From there inputs are bred, in batches, towards larger violations and towards larger rounding. What
counts in the end is `Network.replay`, one input at a time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import torch

from benchmarks.soundness.executions import SummationOrder, execute
from radii.networks import Network
from radii.problem import Instance

Float64 = npt.NDArray[np.float64]
Points = npt.NDArray[np.floating]

SLOPE_POINTS = 24
"""Points at which the slopes of units are taken."""
BESIDE = 3
"""Starts beside each corner."""
CHILDREN = 192
SURVIVORS = 24
"""Of each generation, by violation and again by rounding."""
CANDIDATES_REPLAYED = 24
"""Of each generation, one at a time."""
LAST_WALKS = 6
LAST_STEPS = 40


@dataclass(frozen=True, slots=True, eq=False)
class Break:
    """An input of the ball where the runtime's outputs do not satisfy the requirement.

    Unlike a witness its outputs may be NaN or infinite: no proof may cover such an input.
    """

    input: Points
    distance: float
    outputs: Points

    @property
    def is_finite(self) -> bool:
        return bool(np.isfinite(self.outputs).all())


def breaks(network: Network, instance: Instance, eps: float, point: Points) -> Break | None:
    """The point as a break, if it is in the ball and the property fails there on the runtime."""
    ball = instance.ball(eps)
    if not ball.contains(point):
        return None
    with np.errstate(all="ignore"):
        outputs = network.replay(point[None])[0]
        distance = ball.distance(point)
        holds = instance.requirement.holds(outputs[None], distance)[0]
    return None if holds else Break(point, distance, outputs)


def find_break(
    network: Network, instance: Instance, eps: float, *, seed: int = 0, generations: int = 10
) -> Break | None:
    """A break within `eps` in Linf, or None where none was found, which proves nothing."""
    search = _BreakSearch(network, instance, eps, seed)
    with np.errstate(all="ignore"):
        return search.run(generations)


def find_break_in_orders(
    network: Network, instance: Instance, eps: float, *, seed: int = 0, points: int = 4
) -> tuple[SummationOrder, Break] | None:
    """A break in an execution that sums in another order than the runtime does, within `eps`.

    Looked for at the few points that the search on the runtime finds most promising.
    """
    search = _BreakSearch(network, instance, eps, seed)
    with np.errstate(all="ignore"):
        for point in search.most_promising(points):
            for order in SummationOrder:
                outputs = execute(network, point, order, seed=seed).outputs
                distance = instance.ball(eps).distance(point)
                if not instance.requirement.holds(outputs[None], distance)[0]:
                    return order, Break(point, distance, outputs)
    return None


class _BreakSearch:
    def __init__(self, network: Network, instance: Instance, eps: float, seed: int) -> None:
        self.network, self.instance, self.eps = network, instance, eps
        self.rng = np.random.default_rng([seed, 21])
        self.runtime = _Batches(network)
        self.requirement = instance.requirement
        self.low, self.high = _exact_box(instance, eps, network.input_dtype)
        self.centre = np.asarray(instance.input, network.input_dtype)

    def run(self, generations: int) -> Break | None:
        points = self.starts()
        pool = points[:0]
        for _ in range(generations + 1):
            pool, nearest = self.selected(np.concatenate([pool, points]))
            found = self.replayed(nearest)
            if found is not None:
                return found
            points = self.children(pool)
        return self.walks(pool)

    def most_promising(self, count: int) -> Points:
        """Points of a few generations where the margin is least, then where rounding is largest."""
        pool, nearest = self.selected(self.starts())
        for _ in range(3):
            pool, nearest = self.selected(np.concatenate([pool, self.children(pool)]))
        noisy = self.rng.permutation(pool)[: count - count // 2]
        return np.concatenate([nearest[: count // 2], noisy])

    def starts(self) -> Points:
        shape = (CHILDREN, *self.centre.shape)
        sides = np.where(self.rng.random(shape) < 0.5, self.low, self.high)
        inner = self.low + self.rng.random(shape) * (self.high - self.low)
        both = np.stack([np.broadcast_to(self.low, shape[1:]), self.high, self.centre])
        corners = self.inside(np.concatenate([self.corners(), both]))
        # Corners are round numbers, whose sums are exact: the rounding is beside them.
        beside = [self.inward(corners) for _ in range(BESIDE)]
        return self.inside(np.concatenate([corners, *beside, sides, inner]))

    def inward(self, points: Points) -> Points:
        """Each coordinate a random part of the way to the centre, mostly a small one."""
        share = 2.0 ** -self.rng.uniform(1, 20, (len(points), *(1,) * self.centre.ndim))
        step = share * self.rng.random(points.shape) * (self.centre - points)
        return np.asarray(points + step)

    def corners(self) -> Points:
        """The corners where some unit is largest or least, by its slopes at several points."""
        shape = (SLOPE_POINTS, *self.centre.shape)
        start = self.low + self.rng.random(shape) * (self.high - self.low)
        start[0] = self.centre
        x = torch.tensor(np.asarray(start, np.float64), requires_grad=True)
        found = []
        for value in self.network.graph.values(x)[1:]:
            flat = value.flatten(1)
            if not flat.requires_grad:
                continue
            entry = torch.from_numpy(self.rng.integers(flat.shape[1], size=SLOPE_POINTS))
            total = flat[torch.arange(SLOPE_POINTS), entry].sum()
            (slope,) = torch.autograd.grad(total, x, retain_graph=True, allow_unused=True)
            if slope is not None:
                found.append(np.sign(slope.numpy()))
        signs = np.unique(np.concatenate(found or [np.zeros(shape)]), axis=0)
        ups = np.where(signs > 0, self.high, np.where(signs < 0, self.low, start[:1]))
        downs = np.where(signs > 0, self.low, np.where(signs < 0, self.high, start[:1]))
        return np.concatenate([ups, downs])

    def selected(self, points: Points) -> tuple[Points, Points]:
        """The points to breed from, and those that may break the property, the likeliest first."""
        points = np.unique(points, axis=0)
        outputs, guide = self.runtime(points)
        margin = self.requirement.margin(outputs, 0.0)
        margin = np.where(np.isfinite(outputs).all(axis=1), margin, -np.inf)
        guided = self.requirement.margin(guide, 0.0) if guide is not outputs else margin
        guided = np.nan_to_num(guided, nan=-np.inf)
        rounding = np.nan_to_num(np.abs(guide - self.exact(points)).max(axis=1), nan=np.inf)
        likeliest = np.lexsort((guided, margin))
        noisiest = np.argsort(-rounding)
        kept = np.unique(np.concatenate([likeliest[:SURVIVORS], noisiest[:SURVIVORS]]))
        return points[kept], points[likeliest[:CANDIDATES_REPLAYED]]

    def exact(self, points: Points) -> Float64:
        """What the guide's values are in float64."""
        with torch.no_grad():
            values = self.network.graph.values(torch.from_numpy(points.astype(np.float64)))
        return self.runtime.guide_of(values)

    def replayed(self, points: Points) -> Break | None:
        for point in points:
            found = breaks(self.network, self.instance, self.eps, point)
            if found is not None:
                return found
        return None

    def children(self, parents: Points) -> Points:
        """Parents with some coordinates at a side, anywhere, of another parent, or ulps away."""
        rng, shape = self.rng, (CHILDREN, *self.centre.shape)
        one_each = (CHILDREN, *(1,) * self.centre.ndim)
        first, second = (parents[rng.integers(len(parents), size=CHILDREN)] for _ in range(2))
        size = self.centre.size
        chosen = rng.random(shape) < rng.choice([1.0 / size, 2.0 / size, 0.25, 1.0], one_each)
        sides = np.where(rng.random(shape) < 0.5, self.low, self.high)
        anywhere = self.low + rng.random(shape) * (self.high - self.low)
        ulps = first + rng.integers(-4, 5, shape) * np.spacing(first)
        ways = [sides, anywhere, second, ulps, self.inward(first)]
        kind = rng.integers(len(ways), size=one_each)
        moved = np.select([kind == place for place in range(len(ways))], ways)
        return self.inside(np.where(chosen, moved, first))

    def inside(self, points: npt.ArrayLike) -> Points:
        rounded = np.asarray(points).astype(self.centre.dtype)
        return np.asarray(np.clip(rounded, self.low, self.high))

    def walks(self, pool: Points) -> Break | None:
        """Single steps on the replay itself, which may sum in another order than batches do."""
        order = self.rng.permutation(len(pool))[:LAST_WALKS]
        for point in pool[order]:
            best, margin = point, self.margin_of(point)
            for _ in range(LAST_STEPS):
                step = self.children(best[None])[0]
                reached = self.margin_of(step)
                if not reached > 0:
                    return breaks(self.network, self.instance, self.eps, step)
                if reached <= margin:
                    best, margin = step, reached
        return None

    def margin_of(self, point: Points) -> float:
        outputs = self.network.replay(point[None])
        return float(self.requirement.margin(outputs, 0.0)[0])


class _Batches:
    """The runtime on many inputs at once, where the file has a batch axis; else one at a time.

    The guide is what goes into a Softmax at the end, and the outputs elsewhere: where probabilities
    are 1 and 0, logits still say which way to go.
    """

    def __init__(self, network: Network) -> None:
        self.network = network
        model = onnx.load_from_string(network.onnx_bytes)
        first = model.graph.input[0].type.tensor_type.shape.dim
        self.has_batches = bool(first) and first[0].WhichOneof("value") != "dim_value"
        self.has_logits = self._expose_logits(model)
        self.session = session_of(model.SerializeToString())

    def _expose_logits(self, model: onnx.ModelProto) -> bool:
        last = model.graph.node[-1]
        is_softmax = last.op_type in ("Softmax", "LogSoftmax") and self.has_batches
        if is_softmax:
            kind = model.graph.output[0].type.tensor_type.elem_type
            model.graph.output.append(onnx.helper.make_tensor_value_info(last.input[0], kind, None))
        return is_softmax

    def __call__(self, points: Points) -> tuple[Points, Points]:
        """Outputs and guides, a row each."""
        if not self.has_batches:
            outputs = self.network.replay(points)
            return outputs, outputs
        found = self.session.run(None, {self.session.get_inputs()[0].name: points})
        rows = [value.reshape(len(points), -1) for value in found]
        return rows[0], rows[-1]

    def guide_of(self, values: list[torch.Tensor]) -> Float64:
        """The guide among the values of the network's graph."""
        graph = self.network.graph
        node = graph.output
        if self.has_logits:
            node = graph.nodes[node].inputs[0]
        return values[node].flatten(1).numpy()


def session_of(model: bytes) -> Any:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def _exact_box(instance: Instance, eps: float, dtype: np.dtype[Any]) -> tuple[Points, Points]:
    """The lowest and the highest value of each coordinate in the ball that `dtype` holds."""
    ball = instance.ball(eps)
    sides = []
    for bound, inward in zip(ball.box(), (np.inf, -np.inf), strict=True):
        side = bound.astype(dtype)
        for _ in range(4):
            outside = (np.abs(side.astype(np.float64) - ball.center) > eps) | (
                (side.astype(np.float64) - bound) * np.sign(inward) < 0
            )
            side = np.where(outside, np.nextafter(side, dtype.type(inward)), side)
        sides.append(side)
    return sides[0], sides[1]
