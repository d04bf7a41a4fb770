"""What every search must do, as a class of tests.

A plugin's author writes

    class TestMine(SearchConformance):
        def make(self, grid: Grid) -> Search:
            return Mine(grid)

and runs pytest. Nothing is verified: answers come from `SimulatedInstance`, which knows its radius.
"""

from __future__ import annotations

import math
import random
from collections.abc import Collection, Iterable
from itertools import pairwise

import numpy as np
import pytest

from radii.problem import Grid, Proof, Result, Verdict, Witness
from radii.strategy import Question, QuestionKind, Search


def simulated_witness(distance: float) -> Witness:
    """A witness at this distance, of no network in particular."""
    return Witness(np.zeros(1), distance, 1, np.zeros(2), "simulated")


class SimulatedInstance:
    """Answers about an instance of known radius, as a sound verifier and an attack would.

    At the eps in `missing` a proof times out. The attack finds a witness at `luck` times the
    radius; none if that is beyond the eps it is asked for. So does a probe, which proves besides
    whatever can be proven if `is_easy`, and else nothing. `questions` are all that were asked.
    """

    def __init__(
        self,
        radius: float,
        grid: Grid,
        *,
        missing: Collection[float] = (),
        luck: float = 1.0,
        is_easy: bool = False,
    ) -> None:
        self.radius = radius
        self.grid = grid
        self.missing = frozenset(missing)
        self.luck = luck
        self.is_easy = is_easy
        self.questions: list[Question] = []

    def answer(self, question: Question) -> Result:
        self.questions.append(question)
        eps = question.eps
        if question.kind is QuestionKind.ATTACK or (
            question.kind is QuestionKind.PROBE and not self.is_easy
        ):
            distance = self.radius * self.luck
            if distance <= eps:
                return _result(Verdict.NOT_ROBUST, eps, witness=simulated_witness(distance))
            return _result(Verdict.UNKNOWN, eps)
        if question.kind is QuestionKind.RADIUS or (
            question.kind is QuestionKind.PROBE and self.is_easy
        ):
            return self._climb(eps)
        if eps in self.missing:
            return _result(Verdict.TIMEOUT, eps)
        if eps < self.radius:
            return _result(Verdict.ROBUST, eps, proof=Proof(eps, 1e-6))
        return _result(Verdict.NOT_ROBUST, eps, witness=simulated_witness(eps))

    def _climb(self, eps: float) -> Result:
        """The largest value it can prove, and a witness at the smallest that it can refute."""
        values = [value for value in self.grid if value <= eps and value not in self.missing]
        lower = max((value for value in values if value < self.radius), default=0.0)
        upper = min((value for value in values if value >= self.radius), default=None)
        return _result(
            Verdict.ROBUST if lower else Verdict.UNKNOWN,
            lower or eps,
            proof=Proof(lower, 1e-6) if lower else None,
            witness=None if upper is None else simulated_witness(upper),
        )

    def finish(self, search: Search) -> None:
        """Answer whatever the search asks, one question after the other, until it is done."""
        while (question := search.ask()) is not None:
            search.tell(question, self.answer(question))
        assert search.done


def _result(
    verdict: Verdict, eps: float, *, proof: Proof | None = None, witness: Witness | None = None
) -> Result:
    return Result(verdict, eps, "simulated", "1", 0.0, proof=proof, witness=witness)


class SearchConformance:
    """Subclass it, name it Test..., and return a search from `make`."""

    grid = Grid("0.001", "0.129", "0.002")  # 64 values
    is_exact = True
    """Where every proof gets an answer, the bracket is as narrow as the grid allows."""
    is_quick = True
    """The number of proofs grows with the logarithm of the grid's length."""

    def make(self, grid: Grid) -> Search:
        raise NotImplementedError

    def finished(self, instance: SimulatedInstance) -> Search:
        """A search that has come to its end, after every check that holds for all searches."""
        search = self.make(self.grid)
        while (question := search.ask()) is not None:
            self.check_question(search, question)
            search.tell(question, instance.answer(question))
        assert search.done
        assert not search.outstanding
        assert search.bracket.lower <= instance.radius <= search.bracket.upper
        return search

    def check_question(self, search: Search, question: Question) -> None:
        """It is one that the search may ask, and the bracket does not answer it already."""
        assert question.eps in search.values
        assert question not in search.answers
        if question.kind is QuestionKind.PROVE:
            assert search.bracket.lower < question.eps < search.bracket.upper
        needed = {
            QuestionKind.ATTACK: search.needs_attack,
            QuestionKind.PROBE: search.needs_attack and search.needs_radius,
            QuestionKind.PROVE: search.needs_verifier,
            QuestionKind.RADIUS: search.needs_verifier and search.needs_radius,
        }
        assert needed.get(question.kind, False), f"it asked {question} and did not say that it may"

    def most_proofs(self) -> float:
        """A search that needs more proofs than this is not quick."""
        return 2 * math.log2(len(self.grid)) + 2

    def radii(self) -> Iterable[float]:
        """Below, between and above all values of the grid."""
        values = self.grid.values
        between = [(low + high) / 2 for low, high in pairwise(values)]
        return (values[0] / 2, *between, 2 * values[-1])

    def test_it_says_who_it_is(self) -> None:
        search = self.make(self.grid)
        assert search.name and search.name == search.name.lower()
        assert search.needs_attack or search.needs_verifier
        assert search.default_k is None or search.default_k >= 1

    @pytest.mark.parametrize("luck", [1.0, 1.1, 2.0, math.inf])
    def test_every_radius_is_bracketed(self, luck: float) -> None:
        for radius in self.radii():
            instance = SimulatedInstance(radius, self.grid, luck=luck)
            search = self.finished(instance)
            proofs = [q for q in instance.questions if not q.kind.begins_with_attack]
            assert len(proofs) <= (self.most_proofs() if self.is_quick else len(self.grid))
            if self.is_exact and search.needs_verifier:
                below = self.grid.count_below(radius)
                assert search.bracket.lower == (self.grid[below - 1] if below else 0.0)
                assert below == len(self.grid) or search.bracket.upper <= self.grid[below]

    @pytest.mark.parametrize("seed", range(40))
    def test_missing_answers_move_no_bracket_and_do_not_stop_it(self, seed: int) -> None:
        rng = random.Random(seed)
        missing = set(rng.sample(self.grid.values, rng.randrange(min(20, len(self.grid)))))
        instance = SimulatedInstance(
            rng.uniform(0.0, 1.2) * self.grid.values[-1],
            self.grid,
            missing=missing,
            luck=rng.choice([1.0, 1.05, 1.5, math.inf]),
        )
        self.finished(instance)
        assert len(set(instance.questions)) == len(instance.questions)
        lost = [q for q in instance.questions if q.kind is QuestionKind.PROVE and q.eps in missing]
        assert not self.is_quick or len(lost) <= self.most_proofs()

    def test_without_any_answer_it_ends_and_says_nothing(self) -> None:
        instance = SimulatedInstance(
            self.grid[len(self.grid) // 2], self.grid, missing=self.grid.values, luck=math.inf
        )
        search = self.finished(instance)
        assert (search.bracket.lower, search.bracket.upper) == (0.0, math.inf)
        assert not self.is_quick or len(instance.questions) <= self.most_proofs()

    def test_what_nobody_answered_is_asked_once_more(self) -> None:
        search = self.make(self.grid)
        question = search.ask()
        assert question is not None
        error = _result(Verdict.ERROR, question.eps)
        search.tell(question, error)
        instance = SimulatedInstance(self.grid[3], self.grid)
        questions = []
        while (asked := search.ask()) is not None:
            questions.append(asked)
            search.tell(asked, error if asked == question else instance.answer(asked))
        assert questions.count(question) == 1
        assert search.done

    @pytest.mark.parametrize("seed", range(5))
    def test_a_resumed_search_goes_on_where_it_was(self, seed: int) -> None:
        """Results from before it was killed, in any order, leave the rest to ask."""
        rng = random.Random(seed)
        radius = rng.uniform(0.1, 0.9) * self.grid.values[-1]
        missing = rng.sample(self.grid.values, 3)
        whole = SimulatedInstance(radius, self.grid, missing=missing, luck=1.3)
        bracket = self.finished(whole).bracket
        for cut in range(len(whole.questions) + 1):
            resumed = self.make(self.grid)
            rest = SimulatedInstance(radius, self.grid, missing=missing, luck=1.3)
            for question in rng.sample(whole.questions[:cut], cut):
                resumed.tell(question, rest.answer(question))
            rest.questions.clear()
            rest.finish(resumed)
            assert resumed.bracket == bracket
            assert rest.questions == whole.questions[cut:]

    @pytest.mark.parametrize("seed", range(20))
    def test_answers_may_come_late_and_in_any_order(self, seed: int) -> None:
        """As many questions as it asks run side by side; some are cancelled and asked again."""
        rng = random.Random(seed)
        radius = rng.uniform(0.0, 1.1) * self.grid.values[-1]
        instance = SimulatedInstance(radius, self.grid, luck=rng.choice([1.0, 1.5, math.inf]))
        search, cancelled = self.make(self.grid), 0
        while not search.done:
            while (question := search.ask()) is not None:
                self.check_question(search, question)
            assert search.outstanding, "it is not done, asks nothing and waits for nothing"
            chosen = rng.choice(sorted(search.outstanding, key=lambda q: q.eps))
            is_cancelled = chosen in search.settled() or (cancelled < 3 and rng.random() < 0.2)
            cancelled += is_cancelled
            result = (
                _result(Verdict.CANCELLED, chosen.eps) if is_cancelled else instance.answer(chosen)
            )
            search.tell(chosen, result)
        alone = SimulatedInstance(radius, self.grid, luck=instance.luck)
        assert search.bracket.lower == self.finished(alone).bracket.lower

    def test_the_same_answers_lead_to_the_same_questions(self) -> None:
        first, again = (SimulatedInstance(self.grid[5], self.grid, luck=1.2) for _ in range(2))
        self.finished(first)
        self.finished(again)
        assert first.questions == again.questions

    def test_more_time_opens_what_was_cut_short(self) -> None:
        search = self.make(self.grid)
        if not search.needs_verifier:
            pytest.skip("it proves nothing")
        search.allow(1.0)
        while (question := search.ask()) is not None:
            verdict = Verdict.UNKNOWN if question.kind.begins_with_attack else Verdict.TIMEOUT
            result = Result(verdict, question.eps, "simulated", "1", 1.0, allowed_seconds=1.0)
            search.tell(question, result)
        assert search.done
        assert search.gains_from_time()
        search.allow(10.0)
        assert not search.done

    def test_an_input_that_is_misclassified_asks_nothing(self) -> None:
        search = self.make(self.grid)
        replay = _result(Verdict.NOT_ROBUST, 0.0, witness=simulated_witness(0.0))
        search.tell(Question(QuestionKind.REPLAY, 0.0), replay)
        assert search.done
        assert (search.bracket.lower, search.bracket.upper) == (0.0, 0.0)

    def test_a_contradicted_claim_is_never_used(self) -> None:
        search = self.make(self.grid)
        claimed, distance = self.grid[10], self.grid[2]
        claim = _result(Verdict.ROBUST, claimed, proof=Proof(claimed, 0.0))
        search.tell(Question(QuestionKind.PROVE, claimed), claim)
        closer = _result(Verdict.NOT_ROBUST, claimed, witness=simulated_witness(distance))
        search.tell(Question(QuestionKind.ATTACK, claimed), closer)
        assert (search.bracket.lower, search.bracket.upper) == (0.0, distance)
        assert len(search.disagreements) == 1

    def test_one_value_is_grid_enough(self) -> None:
        only = Grid("0.1", "0.2", "0.1")
        for radius in (0.05, 0.15):
            search, instance = self.make(only), SimulatedInstance(radius, only)
            instance.finish(search)
            assert search.bracket.lower <= radius <= search.bracket.upper
