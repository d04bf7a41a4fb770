"""Assertions for tests: a model is robust enough, or the test fails and says why.

`from radii.testing import assert_robust`, or the pytest fixture `assert_robust`.
"""

from __future__ import annotations

from typing import Any

import numpy.typing as npt

from radii.assertions.checks import Check, Decision, check_robustness
from radii.assertions.messages import failure_text
from radii.balls import Domain
from radii.datasets import as_dataset
from radii.networks import as_network

__all__ = ["Check", "Decision", "RobustnessFailure", "assert_robust", "check_robustness"]


class RobustnessFailure(AssertionError):
    """A model is not robust enough, or that could not be decided; `check` says which."""

    def __init__(self, check: Check) -> None:
        super().__init__(failure_text(check))
        self.check = check


def assert_robust(
    model: Any,
    data: Any,
    *,
    eps: float | str,
    at_least: float = 1.0,
    confidence: float | None = None,
    among: int = 1,
    domain: Domain | tuple[npt.ArrayLike, npt.ArrayLike] | None = None,
    mean: npt.ArrayLike | None = None,
    std: npt.ArrayLike | None = None,
    input_shape: tuple[int, ...] | None = None,
    name: str | None = None,
    **options: Any,
) -> Check:
    """At least this share of the inputs are right, and proven to stay so within eps.

    `model` is a radii `Network`, the path of an ONNX file, a torch module (then with `domain`, the
    valid inputs, such as (0, 1)) or a foolbox model. `data` is a data set, a spec, a pair of arrays
    (inputs, labels) or a torch data set. Without `confidence` the statement is about these inputs;
    with it, about all inputs they were drawn from, and this check's own: of several checks that are
    to hold together with it, say `among` how many, and they share the error that it permits.
    `options` are those of `check_robustness`: property, norm, timeout, arithmetic, jobs, seed, out,
    layout, ...

    Raises a RobustnessFailure, an AssertionError, if the opposite is shown by counterexamples, and
    also if neither is shown: what was not decided never passes.
    """
    __tracebackhide__ = True
    dataset = as_dataset(data)
    network = as_network(
        model,
        input_shape=input_shape or dataset.shape,
        domain=domain,
        mean=mean,
        std=std,
        name=name,
    )
    check = check_robustness(
        network,
        dataset,
        eps=eps,
        at_least=at_least,
        confidence=confidence,
        among=among,
        **options,
    )
    if check.decision is not Decision.ROBUST:
        raise RobustnessFailure(check)
    return check
