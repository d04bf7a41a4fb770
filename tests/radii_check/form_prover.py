"""A small prover that writes certificates, on radii's ReLU form of a network: CROWN and splits.

It knows nothing of the checker but the format, and numbers units as radii does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from handmade import digest, packed

from radii.bounds import ReluForm, box_of, fuse, relu_form, without_softmax
from radii.networks import Network
from radii.problem import Arithmetic, Ball, Box, Halfspaces
from radii.verifiers.native._form import unwrapped

Array = np.ndarray[Any, Any]


@dataclass
class Prover:
    """Proves by at most `depth` splits; `slack` is what its bounds are off to the safe side."""

    network: Network
    region: Ball | Box
    violations: Sequence[Halfspaces]
    arithmetic: str = "float"
    slack: float = 1e-4
    depth: int = 3
    form: ReluForm = field(init=False)
    specs: Sequence[Halfspaces] = field(init=False)

    def __post_init__(self) -> None:
        arithmetic = Arithmetic.parse(self.arithmetic)
        bare, moved = without_softmax(fuse(self.network), self.violations, arithmetic)
        fusion, self.specs = unwrapped(bare, moved)
        self.form = relu_form(fusion)
        self.layers = [layer.toarray() for layer in self.form.layers]
        self.sizes = [len(layer) for layer in self.layers]
        self.output = self.form.output.toarray()
        low, high = box_of(self.region)
        self.low, self.high = low, high
        self.nodes: list[tuple[int, int, int, int]] = []
        self.lemmas: list[tuple[int, int, int, float]] = []
        self.gamma: list[float] = []
        self.slopes: list[int] = []
        self.beta: list[float] = []

    def least(self, row: Array, lower: Array, upper: Array) -> float:
        """A lower bound of a row over the columns, with CROWN's slopes."""
        total, end = 0.0, len(lower)
        ends = np.cumsum(self.sizes)
        for layer in reversed(
            [layer for layer, e in zip(self.layers, ends, strict=True) if e <= end]
        ):
            start = end - len(layer)
            c = row[self.form.inputs + 1 + start : self.form.inputs + 1 + end]
            low, high = lower[start:end], upper[start:end]
            is_open = (low < 0) & (high > 0)
            is_on = (low >= 0) & (high > 0)
            above = np.where(is_open, high / np.where(is_open, high - low, 1), is_on)
            below = np.where(is_open, high > -low, is_on)
            on = np.where(c > 0, c * below, c * above)
            total += np.where(is_open & (c < 0), -c * above * low, 0.0).sum()
            row = row[: self.form.inputs + 1 + start]
            row = row + on @ layer
            end = start
        c = row[:-1]
        return float(total + row[-1] + np.minimum(c * self.low, c * self.high).sum())

    def ground(self) -> tuple[Array, Array]:
        lower = upper = np.zeros(0)
        for layer in self.layers:
            each = [(self.least(r, lower, upper), -self.least(-r, lower, upper)) for r in layer]
            low, high = (np.array([pair[side] for pair in each]) for side in (0, 1))
            size = self.slack * (1 + abs(low) + abs(high))
            lower = np.concatenate([lower, np.float32(low - size).astype(float)])
            upper = np.concatenate([upper, np.float32(high + size).astype(float)])
        return lower, upper

    def proven(self) -> bool:
        """Whether all violations are excluded; what is recorded on the way is the certificate."""
        self.lower, self.upper = self.ground()
        return all(self.close(spec, -1, -1, 0, [], 0) for spec in range(len(self.specs)))

    def close(
        self, spec: int, parent: int, unit: int, sign: int, path: list[tuple[int, int]], depth: int
    ) -> bool:
        number = len(self.nodes)
        self.nodes.append((parent, unit, sign, spec))
        lower, upper = self.lower.copy(), self.upper.copy()
        for split, side in path:
            if side > 0:
                lower[split] = max(lower[split], 0.0)
            else:
                upper[split] = min(upper[split], 0.0)
        held = self.specs[spec]
        gamma, value = self.best(held, lower, upper)
        is_open = (lower < 0) & (upper > 0)
        if value > self.slack:
            self.lemmas.append((number, -1, 0, 0.0))
            self.gamma.extend(gamma)
            self.slopes.extend(255 * (upper > -lower)[is_open])
            self.beta.extend([0.0] * len(path))
            return True
        if depth == self.depth or not is_open.any():
            return False
        split = int(np.argmax(np.where(is_open, np.minimum(-lower, upper), -1.0)))
        both = [(split, 1), (split, -1)]
        return all(self.close(spec, number, *each, [*path, each], depth + 1) for each in both)

    def best(self, held: Halfspaces, lower: Array, upper: Array) -> tuple[Array, float]:
        """The one row of a violation that is bounded away furthest."""
        rows = held.matrix @ self.output
        rows[:, self.form.inputs] += held.offset
        values = [self.least(row, lower, upper) for row in rows]
        chosen = int(np.argmax(values))
        return np.eye(len(rows))[chosen], values[chosen]

    def certificate(self, requirement: dict[str, Any] | None = None, **changed: Any) -> bytes:
        """To be asked for once it is proven."""
        region = self.region
        arrays: dict[str, Any] = {"lower": self.lower[None], "upper": self.upper[None]}
        claim: dict[str, Any] = {
            "network": digest(self.network.onnx_bytes),
            "norm": "box",
            "arithmetic": self.arithmetic,
            "requirement": requirement,
        }
        if isinstance(region, Ball):
            low, high = region.domain.box(region.shape)
            claim |= {"norm": region.norm.value, "eps": region.eps}
            arrays |= {"input": region.center.ravel(), "eps": [region.eps]}
        else:
            low, high = region.box()
            arrays["eps"] = [0.0]
        arrays |= {"low": np.ravel(low), "high": np.ravel(high)}
        if requirement is None:
            rows = [len(held.offset) for held in self.violations]
            claim["requirement"] = {"kind": "violations", "rows": rows}
            arrays["violation_matrix"] = np.concatenate([h.matrix for h in self.violations])
            arrays["violation_offset"] = np.concatenate([h.offset for h in self.violations])
        names = ("parent", "split_unit", "split_sign", "spec")
        arrays |= dict(zip(names, np.array(self.nodes).T, strict=True))
        node, unit, side, bound = zip(*self.lemmas, strict=True)
        arrays |= {"node": node, "unit": unit, "side": side, "bound": bound}
        arrays |= {"part": [0] * len(node), "round": [0] * len(node)}
        arrays |= {"gamma": self.gamma, "slopes": self.slopes, "beta": self.beta}
        return packed(claim | changed, "units", arrays)
