"""Joint queries: can one perturbation of a point fool all of these classifiers?"""

from __future__ import annotations

import time
from dataclasses import dataclass

from radii import __version__
from radii.balls import Ball
from radii.bounds import crown_bounds
from radii.ensembles.classifiers import Classifier, Float64
from radii.ensembles.ensemble import Ensemble, Fooling, Point
from radii.ensembles.products import Part, Product
from radii.ensembles.sets import is_within, members
from radii.queries import Specification
from radii.verdicts import FLOAT, Arithmetic, Verdict
from radii.verifiers import Limits, Verifier

__all__ = ["CROWN", "Finding", "decide_jointly", "proven_alone"]

CROWN = "crown"
"""The name of who proves that one classifier alone is right in the whole ball, by its bounds."""

REMEMBERED = 1024
"""Rivals that are remembered: of a few classifiers at some hundred points."""


@dataclass(frozen=True, slots=True, eq=False)
class Finding:
    """What is known of a set of classifiers at a point: NOT_ROBUST means that it can be fooled.

    ROBUST: no perturbation within `eps` fools all of `classifiers`; `margin` and `arithmetic` are
    those of the proof. Without a proof, as of a point that was replayed itself, there is none.
    """

    classifiers: int
    eps: float
    verdict: Verdict
    verifier: str
    version: str
    seconds: float
    margin: float = 0.0
    message: str = ""
    fooling: Fooling | None = None
    arithmetic: Arithmetic | None = None


def decide_jointly(
    ensemble: Ensemble,
    point: Point,
    ball: Ball,
    classifiers: int,
    verifier: Verifier,
    limits: Limits | None = None,
    *,
    arithmetic: Arithmetic = FLOAT,
) -> Finding:
    """Can one input of the ball fool all these classifiers?

    Bounds exclude what rivals they can, in `arithmetic`; if none is left of a classifier, the
    finding is about that one alone. The verifier decides the rest on the product network.
    NOT_ROBUST brings a perturbed input that was replayed on every network.
    """
    started = time.perf_counter()
    limits = limits or Limits()
    parts = []
    for place in members(classifiers):
        classifier = ensemble.classifiers[place]
        rivals, slack = possible_rivals(classifier, point.label, ball, arithmetic)
        if not len(rivals):
            return _alone(place, ball, started, arithmetic)
        parts.append(Part(classifier, rivals, slack))
    product = Product(parts)
    region = Ball(ball.center.reshape(product.input_shape), ball.eps, ball.norm, product.domain)
    specification = Specification(region, product.all_fooled)
    answer, witness = verifier.decide(product, specification, limits)
    verdict, message, fooling = answer.verdict, answer.message, None
    if witness is not None:
        fooling = ensemble.replay(point, ball, witness.input)
        if fooling is None or not is_within(classifiers, fooling.fooled):
            verdict = Verdict.UNKNOWN
            message = "its counterexample does not replay on every network"
    name, version = answer.answered_by or (verifier.name, verifier.version)
    return Finding(
        classifiers=classifiers,
        eps=ball.eps,
        verdict=verdict,
        verifier=name,
        version=version,
        seconds=time.perf_counter() - started,
        margin=answer.margin,
        message=message,
        fooling=fooling,
        arithmetic=_weaker(arithmetic, answer.arithmetic or verifier.arithmetic)
        if verdict is Verdict.ROBUST
        else None,
    )


def _weaker(one: Arithmetic, other: Arithmetic) -> Arithmetic:
    """That in which a proof holds of which a part was proven in each."""
    return min(one, other, key=lambda each: each.strength)


def proven_alone(
    ensemble: Ensemble,
    point: Point,
    ball: Ball,
    classifier: int,
    *,
    arithmetic: Arithmetic = FLOAT,
) -> Finding | None:
    """That one classifier is right in the whole ball, if bounds prove it by themselves."""
    started = time.perf_counter()
    chosen = ensemble.classifiers[classifier]
    rivals, _ = possible_rivals(chosen, point.label, ball, arithmetic)
    return None if len(rivals) else _alone(classifier, ball, started, arithmetic)


def _alone(classifier: int, ball: Ball, started: float, arithmetic: Arithmetic) -> Finding:
    return Finding(
        classifiers=1 << classifier,
        eps=ball.eps,
        verdict=Verdict.ROBUST,
        verifier=CROWN,
        version=__version__,
        seconds=time.perf_counter() - started,
        arithmetic=arithmetic,
    )


_rivals: dict[tuple[object, ...], tuple[Float64, float]] = {}


def possible_rivals(
    classifier: Classifier, label: int, ball: Ball, arithmetic: Arithmetic
) -> tuple[Float64, float]:
    """The rivals that bounds do not exclude, and the classifier's slack in the ball.

    The last few are remembered: sets of classifiers share their members.
    """
    scores, behind = classifier.scores, type(classifier.behind)
    of_classifier = scores.fingerprint, classifier.has_floor, behind, label
    of_ball = ball.center.tobytes(), ball.eps, ball.norm, ball.domain.key()
    key = *of_classifier, *of_ball, arithmetic
    known = _rivals.pop(key, None) or _possible_rivals(classifier, label, ball, arithmetic)
    _rivals[key] = known
    while len(_rivals) > REMEMBERED:
        _rivals.pop(next(iter(_rivals)))
    return known


def _possible_rivals(
    classifier: Classifier, label: int, ball: Ball, arithmetic: Arithmetic
) -> tuple[Float64, float]:
    scores = classifier.scores
    rows = classifier.rivals(label)
    own = Ball(ball.center.reshape(scores.input_shape), ball.eps, ball.norm, scores.domain)
    slack = classifier.slack(own, arithmetic)
    highest = crown_bounds(scores, [own], rows, arithmetic=arithmetic).high[0].numpy()
    return rows[~(highest < -slack)], slack  # what is NaN stays possible
