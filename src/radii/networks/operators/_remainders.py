"""What a product leaves beside its tangent plane where both values vary with the same inputs.

Within a region, an argument is z = c + G e + d: e are steps of the inputs, in [-1, 1] each, and |d|
is at most a radius (linear bounds below and above it say so). A product of deviations is then

    (G e) (H e)  +  terms with d,

and its first part is a quadratic form e' M e of low rank. Intervals of G e and H e see each alone:
|G|_1 |H|_1, for every product of a sum. But for any D > 0, sum of e_a^2 D_a is at most the sum of
D_a, so that e' M e is at most that sum times the largest eigenvalue of D^-1/2 M D^-1/2 (a dual
solution of the semidefinite relaxation of Shor). In a sum of many products, whose largest values no
step of the inputs attains together, it is several times less.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

EIGENVALUE_SLACK = 1e-5
"""What eigenvalues may be off, as a share of the trace: that of a root of a matrix that is itself
off by some 1e-12 of it."""

SUM_SLACK = 1e-9
"""What sums over inputs may be off in float64, as a share of the absolute values they add up."""

ENTRIES_AT_ONCE = 1 << 22
"""Of scaled coefficients: 32 MB in float64."""


@dataclass(frozen=True, slots=True, eq=False)
class AffineForms:
    """Arguments as their centre plus `steps` (regions, arguments, inputs) times steps in [-1, 1],
    off by at most `radius` (regions, arguments)."""

    steps: Tensor
    radius: Tensor

    @property
    def reach(self) -> Tensor:
        """How far the affine part alone goes."""
        return self.steps.abs().sum(2) * (1 + SUM_SLACK)


def quadratic_range(
    left: Tensor, right: Tensor, pairs: tuple[Tensor, Tensor]
) -> tuple[Tensor, Tensor]:
    """Between which sum over k of (left_k e) (right_k e) is, for e in [-1, 1]^inputs.

    Both are (sums, terms, inputs) in float64; `pairs` are the numbers of those that belong
    together. The results have one entry for each pair.
    """
    count = max(1, ENTRIES_AT_ONCE // max(1, 2 * left[0].numel()))
    chunks = zip(*(numbers.split(count) for numbers in pairs), strict=True)
    parts = [_range_of_pairs(left[first], right[second]) for first, second in chunks]
    low, high = (torch.cat(side) for side in zip(*parts, strict=True))
    return low, high


def _range_of_pairs(left: Tensor, right: Tensor) -> tuple[Tensor, Tensor]:
    known = torch.isfinite(left).all(2).all(1) & torch.isfinite(right).all(2).all(1)
    factors, scaled = [], []
    for held in (left, right):
        factor = held.abs().amax((1, 2)).clamp_min(1e-150)
        factors.append(factor)
        scaled.append(torch.where(known[:, None, None], held / factor[:, None, None], 0.0))
    low, high = _scaled_range(*scaled)
    product = factors[0] * factors[1]
    return (
        torch.where(known, low * product, -torch.inf),
        torch.where(known, high * product, torch.inf),
    )


def _scaled_range(left: Tensor, right: Tensor) -> tuple[Tensor, Tensor]:
    squares = [held.square() for held in (left, right)]
    shares = [each.sum(1) / each.sum((1, 2)).clamp_min(1e-300)[:, None] for each in squares]
    weights = (shares[0] + shares[1]).sqrt()
    roots = torch.where(weights > 0, weights, 1.0).rsqrt()[:, None]
    both = torch.cat([left * roots, right * roots], 1)
    gram = both @ both.mT
    trace = gram.diagonal(dim1=1, dim2=2).sum(1)
    terms = left.shape[1]
    if terms == 1:
        mixed, sizes = gram[:, 0, 1], (gram[:, 0, 0] * gram[:, 1, 1]).clamp_min(0).sqrt()
        least, most = mixed - sizes, mixed + sizes
    else:
        values, vectors = torch.linalg.eigh(gram)
        root = vectors * values.clamp_min(0).sqrt()[:, None]
        first, second = root[:, :terms], root[:, terms:]
        cross = first.mT @ second
        found = torch.linalg.eigvalsh(cross + cross.mT)
        least, most = found[:, 0], found[:, -1]
    slack = EIGENVALUE_SLACK * trace
    total = weights.sum(1) * (1 + SUM_SLACK) / 2
    return (least - slack).clamp_max(0) * total, (most + slack).clamp_min(0) * total
