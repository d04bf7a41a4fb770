"""How far outputs break a property, in torch: batched, differentiable, of either sign.

A row is one output. Its violation is above 0 where the property is broken, 0 on the boundary and
below 0 where it holds: an attack climbs it, and training lowers it where it is above 0, which is
the differentiable logic of DL2, in which a <= b becomes max(a - b, 0).

Bounds on probabilities are compared in log-odds, log(p / (1 - p)), which do not flatten where a
probability is near 0 or 1. With `literal` they are differences of probabilities, as the papers
write them. Both have the same sign.
"""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

from radii.attacks._geometry import geometry
from radii.errors import UnsupportedQuery
from radii.problem import (
    RESOLUTION,
    Anchor,
    Become,
    LinearRequirement,
    LipschitzRobustness,
    OneToAny,
    OneToOne,
    PredictionStays,
    Property,
    StandardRobustness,
    StrongClassification,
)


def violation(
    asked: Property,
    outputs: Tensor,
    references: Tensor,
    labels: Tensor,
    distances: Tensor,
    *,
    probabilities: bool = False,
    literal: bool = False,
) -> Tensor:
    """How far each output breaks the property, a number a row.

    `references` are the outputs at the inputs themselves, `distances` how far each point is from
    its input. `probabilities` says that the network itself ends in a softmax.
    """
    match asked:
        case OneToAny():
            return _class_violation(outputs, labels)
        case PredictionStays():
            return _class_violation(outputs, references.argmax(dim=1))
        case OneToOne(target=target):
            return outputs[:, target] - outputs.gather(1, labels[:, None])[:, 0]
        case Become(target=target):
            return -_class_violation(outputs, torch.full_like(labels, target))
        case StrongClassification(eta=eta):
            return _confidence_violation(outputs, labels, eta, probabilities, literal)
        case StandardRobustness(delta=delta, on_probabilities=True):
            return _share_violation(outputs, references, delta, probabilities, literal)
        case StandardRobustness(delta=delta, metric=metric):
            return geometry(metric).lengths(outputs - references) - delta
        case LipschitzRobustness(constant=constant, metric=metric):
            tau = RESOLUTION * references.detach().abs().amax(dim=1).clamp(min=1.0)
            return geometry(metric).lengths(outputs - references) - constant * distances - tau
    return _linear_violation(asked, outputs, references, labels, probabilities)


def _linear_violation(
    asked: Property, outputs: Tensor, references: Tensor, labels: Tensor, probabilities: bool
) -> Tensor:
    """For a property of another package: how deep each output is in its polyhedra."""
    if not issubclass(asked.kind(probabilities), LinearRequirement):
        raise UnsupportedQuery(
            f"property '{asked.spec}' has no violation that can be differentiated"
        )
    rows = []
    for output, reference, label in zip(outputs, references, labels.tolist(), strict=True):
        anchor = Anchor(label, reference.detach().cpu().numpy().astype(np.float64), probabilities)
        polyhedra = asked.at(anchor).violations or ()
        depths = [
            (
                outputs.new_tensor(polyhedron.matrix) @ output
                + outputs.new_tensor(polyhedron.offset)
            ).amax()
            for polyhedron in polyhedra
        ]
        rows.append(-torch.stack(depths).amin() if depths else outputs.new_tensor(-math.inf))
    return torch.stack(rows)


def _class_violation(outputs: Tensor, labels: Tensor) -> Tensor:
    """The largest other output less that of the label."""
    own = outputs.gather(1, labels[:, None])
    others = outputs.scatter(1, labels[:, None], -math.inf)
    return others.amax(dim=1) - own[:, 0]


def _confidence_violation(
    outputs: Tensor, labels: Tensor, eta: float, probabilities: bool, literal: bool
) -> Tensor:
    """How far the label's probability is below eta."""
    if literal:
        return eta - _shares(outputs, probabilities).gather(1, labels[:, None])[:, 0]
    odds = _odds(outputs, probabilities).gather(1, labels[:, None])[:, 0]
    return math.log(eta / (1 - eta)) - odds


def _share_violation(
    outputs: Tensor, references: Tensor, delta: float, probabilities: bool, literal: bool
) -> Tensor:
    """How far the largest change of a probability is above delta."""
    before = _shares(references, probabilities)
    if literal:
        return (_shares(outputs, probabilities) - before).abs().amax(dim=1) - delta
    odds = _odds(outputs, probabilities)
    above, below = before + delta, before - delta
    can_rise, can_fall = above < 1, below > 0
    risen = odds - torch.logit(torch.where(can_rise, above, 0.5))
    fallen = torch.logit(torch.where(can_fall, below, 0.5)) - odds
    return torch.maximum(
        risen.masked_fill(~can_rise, -math.inf), fallen.masked_fill(~can_fall, -math.inf)
    ).amax(dim=1)


def softmax_log_odds(scores: Tensor) -> Tensor:
    """log(p / (1 - p)) for the softmax p of each row, exact also where p is near 1.

    Only the largest p can be above 1/2: its complement is summed from the other scores.
    """
    top = scores.argmax(dim=1, keepdim=True)
    logarithms = torch.log_softmax(scores, dim=1)
    of_others = logarithms.scatter(1, top, -1.0)
    odds = of_others - torch.log1p(-of_others.exp())
    rest = scores.scatter(1, top, -math.inf).logsumexp(dim=1, keepdim=True)
    return odds.scatter(1, top, scores.gather(1, top) - rest)


def _shares(outputs: Tensor, probabilities: bool) -> Tensor:
    return outputs if probabilities else torch.softmax(outputs, dim=1)


def _odds(outputs: Tensor, probabilities: bool) -> Tensor:
    return torch.logit(outputs) if probabilities else softmax_log_odds(outputs)
