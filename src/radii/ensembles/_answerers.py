"""Who answers questions about sets of classifiers: this process, or several with hard limits."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Self

from radii.ensembles._ensemble import Ensemble, Point
from radii.ensembles._proofs import JointQuestion, JointResult, decide_jointly
from radii.networks import Network
from radii.problem import FLOAT, Arithmetic, Norm, Verdict
from radii.processes import ProcessPool, Request, StoppedCall
from radii.verifiers import Limits, Verifier


def make_answerer(
    networks: Sequence[Network],
    points: Sequence[Point],
    norm: Norm,
    verifier: Verifier,
    memory_bytes: int | None,
    arithmetic: Arithmetic,
) -> Callable[[JointQuestion], JointResult]:
    """What answers one question after another, in a process of its own or here."""
    ensemble = Ensemble(networks)

    def answer(question: JointQuestion) -> JointResult:
        point = points[question.place]
        return decide_jointly(
            ensemble,
            point,
            ensemble.ball(point, norm, question.eps),
            question.classifiers,
            verifier,
            Limits(question.seconds, memory_bytes),
            arithmetic=arithmetic,
        )

    return answer


class Answerer:
    """Answers in `jobs` processes; one that overruns its time or memory is killed.

    `jobs` 0: in this process, where limits hold as far as the verifier cooperates.
    """

    def __init__(
        self,
        ensemble: Ensemble,
        points: Sequence[Point],
        norm: Norm,
        verifier: Verifier,
        *,
        jobs: int,
        memory_bytes: int | None = None,
        arithmetic: Arithmetic = FLOAT,
    ) -> None:
        self.jobs = max(1, jobs)
        self._verifier = verifier
        self._pool = ProcessPool(
            make_answerer,
            ensemble.networks,
            tuple(points),
            norm,
            verifier,
            memory_bytes,
            arithmetic,
            jobs=jobs,
            memory_bytes=memory_bytes,
        )

    def ask(
        self, questions: Sequence[JointQuestion]
    ) -> Iterator[tuple[JointQuestion, JointResult]]:
        requests = [Request((question,), question.seconds) for question in questions]
        for request, answer in self._pool.answers(requests):
            (question,) = request.arguments
            if isinstance(answer, StoppedCall):
                answer = JointResult(
                    question.classifiers,
                    question.eps,
                    Verdict.of(answer.ending),
                    self._verifier.name,
                    self._verifier.version,
                    question.seconds,
                    message=answer.message,
                )
            yield question, answer

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self._pool.close()
