"""Who answers questions about sets of classifiers: this process, or several with hard limits."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Self

from radii.balls import Norm
from radii.ensembles.ensemble import Ensemble, Point
from radii.ensembles.measuring import Question
from radii.ensembles.proving import Finding, decide_jointly
from radii.errors import RadiiError
from radii.execution import Request, Staff, Stopped
from radii.networks import Network
from radii.verdicts import FLOAT, Arithmetic, Verdict
from radii.verifiers import Limits, Verifier

__all__ = ["Inline", "Workers", "make_answerer"]


@dataclass(frozen=True, slots=True, eq=False)
class Inline:
    """Answers in this process. Limits hold as far as the verifier cooperates."""

    ensemble: Ensemble
    points: Sequence[Point]
    norm: Norm
    verifier: Verifier
    memory_bytes: int | None = None
    jobs: int = 1
    arithmetic: Arithmetic = FLOAT

    def ask(self, questions: Sequence[Question]) -> Iterator[tuple[Question, Finding]]:
        for question in questions:
            yield question, self.answer(question)

    def answer(self, question: Question) -> Finding:
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
            stopped = Stopped(Verdict.ERROR, f"{type(error).__name__}: {error}")
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
) -> Callable[[Question], Finding]:
    """What a worker process answers questions with."""
    import torch

    torch.set_num_threads(1)
    ensemble = Ensemble(networks)
    return Inline(ensemble, points, norm, verifier, memory_bytes, arithmetic=arithmetic).answer


def _missing(question: Question, stopped: Stopped, verifier: Verifier) -> Finding:
    return Finding(
        question.classifiers,
        question.eps,
        stopped.verdict,
        verifier.name,
        verifier.version,
        question.seconds,
        message=stopped.message,
    )


class Workers:
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
        self._staff = Staff(
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

    def ask(self, questions: Sequence[Question]) -> Iterator[tuple[Question, Finding]]:
        requests = [Request((question,), question.seconds) for question in questions]
        for request, answer in self._staff.answers(requests):
            question: Question = request.arguments[0]
            if isinstance(answer, Stopped):
                yield question, _missing(question, answer, self._verifier)
            else:
                yield question, answer

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self._staff.close()
