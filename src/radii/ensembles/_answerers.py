"""Who answers questions about sets of classifiers: this process, or several with hard limits."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Self

from radii.ensembles._ensemble import Ensemble, Point
from radii.ensembles._proofs import JointResult, decide_jointly
from radii.ensembles._value import JointQuestion
from radii.errors import RadiiError
from radii.networks import Network
from radii.problem import FLOAT, Arithmetic, Norm, Verdict
from radii.processes import Ending, ProcessPool, Request, StoppedCall, is_out_of_memory
from radii.verifiers import Limits, Verifier


@dataclass(frozen=True, slots=True, eq=False)
class InlineAnswerer:
    """Answers in this process. Limits hold as far as the verifier cooperates."""

    ensemble: Ensemble
    points: Sequence[Point]
    norm: Norm
    verifier: Verifier
    memory_bytes: int | None = None
    jobs: int = 1
    arithmetic: Arithmetic = FLOAT

    def ask(
        self, questions: Sequence[JointQuestion]
    ) -> Iterator[tuple[JointQuestion, JointResult]]:
        for question in questions:
            yield question, self.answer(question)

    def answer(self, question: JointQuestion) -> JointResult:
        """One question's answer."""
        point = self.points[question.place]
        ball = self.ensemble.ball(point, self.norm, question.eps)
        limits = Limits(question.seconds, self.memory_bytes)
        try:
            return decide_jointly(
                self.ensemble,
                point,
                ball,
                question.classifiers,
                self.verifier,
                limits,
                arithmetic=self.arithmetic,
            )
        except RadiiError:
            raise
        except Exception as error:  # a missing answer, as from a worker that died
            ending = Ending.MEMORY_LIMIT if is_out_of_memory(error) else Ending.FAILED
            stopped = StoppedCall(ending, f"{type(error).__name__}: {error}")
            return _missing(question, stopped, self.verifier)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        return None


def make_answerer(
    networks: Sequence[Network],
    points: Sequence[Point],
    norm: Norm,
    verifier: Verifier,
    memory_bytes: int | None,
    arithmetic: Arithmetic,
) -> Callable[[JointQuestion], JointResult]:
    """What a worker process answers questions with."""
    import torch

    torch.set_num_threads(1)
    ensemble = Ensemble(networks)
    return InlineAnswerer(
        ensemble, points, norm, verifier, memory_bytes, arithmetic=arithmetic
    ).answer


def _missing(question: JointQuestion, stopped: StoppedCall, verifier: Verifier) -> JointResult:
    return JointResult(
        question.classifiers,
        question.eps,
        Verdict.of(stopped.ending),
        verifier.name,
        verifier.version,
        question.seconds,
        message=stopped.message,
    )


class ProcessAnswerer:
    """Answers in `jobs` processes; one that overruns its time or memory is killed."""

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
        self.jobs = jobs
        self._verifier = verifier
        self._staff = ProcessPool(
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
        for request, answer in self._staff.answers(requests):
            question: JointQuestion = request.arguments[0]
            if isinstance(answer, StoppedCall):
                yield question, _missing(question, answer, self._verifier)
            else:
                yield question, answer

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self._staff.close()
