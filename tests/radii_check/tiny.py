"""Tiny dense networks with proofs, and the truth about any claim on them by exact enumeration."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np
from handmade import dense_model, digest, packed
from scipy.optimize import linprog

from radii_check import Certificate

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Tiny:
    """Two or three inputs, one hidden layer of few ReLU units, two or three outputs; weights are
    whole multiples of 1/8, so that they are the same in every number type."""

    hidden: Array
    hidden_bias: Array
    last: Array
    last_bias: Array

    @classmethod
    def random(cls, seed: int, inputs: int = 2, units: int = 4, outputs: int = 3) -> Tiny:
        rng = np.random.default_rng(seed)

        def drawn(*shape: int) -> Array:
            return rng.integers(-16, 17, shape) / 8

        return cls(drawn(units, inputs), drawn(units), drawn(outputs, units), drawn(outputs))

    @property
    def model(self) -> bytes:
        return dense_model([(self.hidden, self.hidden_bias), (self.last, self.last_bias)])

    def outputs(self, x: Array) -> Array:
        hidden = np.maximum(self.hidden @ x + self.hidden_bias, 0)
        return np.asarray(self.last @ hidden + self.last_bias)

    def worst(self, certificate: Certificate) -> float:
        """How far the claim's region is from its violations: above 0 if the claim is true in real
        arithmetic. By a linear program for each pattern of active units; linf and boxes only."""
        low, high = _box(certificate)
        worst = np.inf
        if not np.all(low <= high):
            return worst
        violations = certificate.violations(len(self.last))
        for signs in itertools.product((0.0, 1.0), repeat=len(self.hidden)):
            active = np.array(signs)[:, None]
            gradient = self.last @ (active * self.hidden)
            constant = self.last @ (active[:, 0] * self.hidden_bias) + self.last_bias
            side = np.where(active == 1, -self.hidden, self.hidden)
            limit = np.where(active[:, 0] == 1, self.hidden_bias, -self.hidden_bias)
            for matrix, offset in violations:
                # Least t with matrix y + offset <= t in this piece of the region.
                rows = np.hstack([matrix @ gradient, -np.ones((len(matrix), 1))])
                pieces = np.hstack([side, np.zeros((len(side), 1))])
                found = linprog(
                    [0.0] * len(low) + [1.0],
                    A_ub=np.vstack([rows, pieces]),
                    b_ub=np.concatenate([-matrix @ constant - offset, limit]),
                    bounds=[*zip(low, high, strict=True), (None, None)],
                )
                if found.status == 0:
                    worst = min(worst, float(found.fun))
        return worst


def _box(certificate: Certificate) -> tuple[Array, Array]:
    arrays, claim = certificate.arrays, certificate.claim
    if claim["norm"] == "box":
        return arrays["low"], arrays["high"]
    assert claim["norm"] == "linf"
    reach = claim["eps"] * arrays.get("scale", np.ones(len(arrays["low"])))
    return np.maximum(arrays["low"], arrays["input"] - reach), np.minimum(
        arrays["high"], arrays["input"] + reach
    )


def parts_of_proof(tiny: Tiny, x: Array, eps: float, depth: int = 3) -> tuple[Any, Any] | None:
    """Claim and arrays of a proof that x keeps its class within eps, by splits of open units; None
    if none was found with CROWN's slopes, unit lemmas and so many splits."""
    label = int(np.argmax(tiny.outputs(x)))
    rivals = [r for r in range(len(tiny.last)) if r != label]
    centre, radius = tiny.hidden @ x + tiny.hidden_bias, abs(tiny.hidden).sum(1) * eps
    ends = centre - radius - 1e-4, centre + radius + 1e-4
    lower, upper = (np.asarray(end, np.float32) for end in ends)
    names = (
        "parent",
        "split_unit",
        "split_sign",
        "spec",
        "node",
        "unit",
        "gamma",
        "slopes",
        "beta",
    )
    rows: dict[str, list[Any]] = {name: [] for name in names}

    def close(spec: int, parent: int, path: list[tuple[int, int]]) -> bool:
        number = len(rows["parent"])
        unit, sign = path[-1] if path else (-1, 0)
        for name, value in (("parent", parent), ("split_unit", unit), ("split_sign", sign)):
            rows[name].append(value)
        rows["spec"].append(spec)
        low, high = lower.astype(float), upper.astype(float)
        for split, side in path:
            low[split], high[split] = (
                (max(low[split], 0), high[split])
                if side > 0
                else (
                    low[split],
                    min(high[split], 0),
                )
            )
        is_open = (low < 0) & (high > 0)
        c = tiny.last[label] - tiny.last[rivals[spec]]
        above = np.where(is_open, high / np.where(is_open, high - low, 1), low >= 0)
        below = np.where(is_open, high > -low, low >= 0)
        a = np.where(c > 0, c * below, c * above)
        constant = (-a * low)[is_open & (c < 0)].sum() + a @ tiny.hidden_bias
        constant += tiny.last_bias[label] - tiny.last_bias[rivals[spec]]
        slope = a @ tiny.hidden
        if constant + slope @ x - abs(slope).sum() * eps > 1e-3:
            rows["node"].append(number)
            rows["unit"].append(-1)
            rows["gamma"].append(1.0)
            rows["slopes"].extend(255 * below[is_open])
            rows["beta"].extend([0.0] * len(path))
            return True
        if len(path) == depth or not is_open.any():
            return False
        split = int(np.flatnonzero(is_open)[0])
        return all(close(spec, number, [*path, (split, side)]) for side in (1, -1))

    if not all(close(spec, -1, []) for spec in range(len(rivals))):
        return None
    count = len(rows["node"])
    claim = {
        "network": digest(tiny.model),
        "norm": "linf",
        "eps": eps,
        "requirement": {"kind": "one-to-any", "label": label},
        "arithmetic": "real",
    }
    domain = {"input": x, "low": np.full(len(x), -4.0), "high": np.full(len(x), 4.0)}
    stated = {"eps": [eps], "lower": lower[None], "upper": upper[None]}
    zeros = {"part": [0] * count, "round": [0] * count, "side": [0] * count, "bound": [0] * count}
    return claim, {**domain, **stated, **rows, **zeros}


def proven(seed: int, **sizes: int) -> tuple[Tiny, Any, Any]:
    """A tiny network with a proof that has splits, for the first seeds that give one."""
    while True:
        tiny = Tiny.random(seed, **sizes)
        rng = np.random.default_rng(seed)
        x = rng.integers(-16, 17, tiny.hidden.shape[1]) / 16
        for eps in (1.0, 0.5, 0.25, 0.125, 0.0625):
            found = parts_of_proof(tiny, x, eps)
            if found is not None and len(found[1]["parent"]) > len(tiny.last) - 1:
                return tiny, *found
        seed += 1000


def certificate(claim: Any, arrays: Any, mode: str = "units") -> bytes:
    return packed(claim, mode, arrays)
