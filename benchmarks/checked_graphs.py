"""Random graphs of all operators, run into results and checked: does `radii check` say the truth?

Every proof must be checked, refused for a reason, or counted as one that the checker cannot read.
What is refused is attacked: a refused proof that no attack breaks is a fault of the checker or of
the writer, and is listed. `--seed A:B` are the graphs (0:1000), `--budget` the wall seconds for the
proofs of one input (1), `--out` keeps what is known.
"""

from __future__ import annotations

import json
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import torch

from benchmarks.records import Options, Record
from benchmarks.soundness.random_graphs import RandomGraph, random_graph
from benchmarks.tables import show
from radii import robustness_distribution
from radii.attacks import Apgd, Attack, MinimumNorm, Pgd, RandomSearch, attack_specification
from radii.errors import InputError, UnsupportedOperator, UnsupportedQuery
from radii.networks import Network, load_network
from radii.problem import Instance, Norm, Query, Witness, check_witness
from radii.runs import EvidenceKind, StoreCheck, check_store
from radii.store import Store

SEEDS, BUDGET, INPUTS = range(1000), 1.0, 2
METHOD = "check"
GRID = (0.0005, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.4)
DOMAINS = ((0, 1), (-1, 1))
ARITHMETICS = ("float", "float", "float", "real")
MILP_EACH = 9
"""Every one of so many is proven by an integer solver, and by the tree once more."""
SAMPLES = 4000
"""Random points of a claimed ball, half of them corners."""


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked about a graph."""

    property: str
    norm: str
    arithmetic: str
    domain: tuple[int, int]
    verifier: str


@dataclass(slots=True)
class GraphOutcome:
    """What became of one graph. `stopped` says why nothing could be asked about it.

    `unbroken` are refused proofs that no attack breaks, `wrong` everything else that must not be.
    """

    style: str
    opset: int
    operators: list[str]
    question: dict[str, Any]
    stopped: str = ""
    proofs: int = 0
    checked: int = 0
    believed: int = 0
    refused: list[str] = field(default_factory=list)
    unreadable: list[str] = field(default_factory=list)
    witnesses: int = 0
    replayed: int = 0
    unbroken: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)


def main(options: Options) -> None:
    torch.set_num_threads(1)
    seeds, budget = options.seeds or SEEDS, options.budget or BUDGET
    outcomes = []
    for seed in seeds:
        outcomes.append(_known(seed, budget, options) or _measured(seed, budget, options))
        if (seed + 1) % 50 == 0:
            print(f"  to seed {seed}", flush=True)
    _show(seeds, outcomes)


def _known(seed: int, budget: float, options: Options) -> GraphOutcome | None:
    record = options.log.find("random graph", seed, METHOD, budget)
    return None if record is None else GraphOutcome(**json.loads(record.answer))


def _measured(seed: int, budget: float, options: Options) -> GraphOutcome:
    started = time.perf_counter()
    found = graph_outcome(seed, budget)
    for line in (*found.unbroken, *found.wrong):
        print(f"  seed {seed}: {line}", flush=True)
    options.log.add(
        Record(
            network="random graph",
            case=str(seed),
            method=METHOD,
            budget=budget,
            seconds=time.perf_counter() - started,
            answer=json.dumps(asdict(found)),
        )
    )
    return found


def graph_outcome(seed: int, budget: float = BUDGET) -> GraphOutcome:
    """Run a graph into results of its own, check them, and attack what is refused."""
    rng = np.random.default_rng([32, seed])
    graph = random_graph(seed)
    opset = graph.model.opset_import[0].version
    found = GraphOutcome(graph.style, opset, graph.operators, {})
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        onnx.save(graph.model, place / "net.onnx")
        question = _question(graph, place, rng)
        found.question = asdict(question)
        try:
            if not _is_run(question, place, budget, found):
                return found
            outcome = check_store(place / "results")
            _count(outcome, found)
            broken = [one for one in outcome.failed if one.kind is EvidenceKind.PROOF]
            found.wrong += [str(one) for one in outcome.failed if one not in broken]
            for one in broken:
                found.refused.append(one.reason)
                assert one.place.eps is not None
                instance, network = _instance(place, one.place.input, one.place.target)
                if break_within(network, instance, one.place.eps, seed) is None:
                    found.unbroken.append(str(one))
        except Exception:
            found.wrong.append(traceback.format_exc())
    return found


def _question(graph: RandomGraph, place: Path, rng: np.random.Generator) -> Question:
    """What is asked. Inputs and labels, mostly as the network predicts, are put into a file."""
    low, high = DOMAINS[rng.integers(2)]
    points = rng.uniform(low, high, (INPUTS, *graph.shape)).astype(graph.dtype)
    try:
        network = load_network(place / "net.onnx", domain=(low, high))
        outputs = network.replay(points).astype(np.float64)
    except InputError:
        outputs = np.zeros((INPUTS, graph.classes))
    labels = outputs.argmax(1)
    if rng.random() < 0.1:
        labels[0] = rng.integers(graph.classes)
    np.savez(place / "points.npz", images=points, labels=labels)
    spread = float(np.ptp(outputs)) + 0.01
    shares = np.exp(outputs - outputs.max(1, keepdims=True))
    likely = float((shares / shares.sum(1, keepdims=True)).max(1).min())
    names = [
        *("one-to-any", "one-to-any", "one-to-any", "cr:of=prediction"),
        *(f"one-to-one:{rng.integers(graph.classes)}", "one-to-one", "become"),
        *(f"become:{rng.integers(graph.classes)}", f"scr:eta={0.9 * likely:.3g}"),
        *(f"sr:delta={rng.choice([0.1, 0.3]) * spread:.3g}",) * 3,
        *("sr:delta=0.1,on=probabilities",),
    ]
    norm = str(rng.choice(["linf", "linf", "l2", "l1"]))
    return Question(
        property=names[rng.integers(len(names))],
        norm=norm,
        arithmetic=ARITHMETICS[rng.integers(len(ARITHMETICS))],
        domain=(low, high),
        verifier="milp" if norm == "linf" and rng.integers(MILP_EACH) == 0 else "native",
    )


def _is_run(question: Question, place: Path, budget: float, found: GraphOutcome) -> bool:
    """Measure it into results; False with a reason where radii does not read or decide it."""
    try:
        robustness_distribution(
            place / "net.onnx",
            place / "points.npz",
            domain=question.domain,
            property=question.property,
            norm=Norm(question.norm),
            arithmetic=question.arithmetic,
            verifier=question.verifier,
            grid=GRID,
            timeout=budget,
            out=place / "results",
            jobs=0,
            progress=False,
        )
    except (UnsupportedOperator, UnsupportedQuery) as error:
        found.stopped = str(error)
        return False
    except InputError as error:
        found.stopped = f"refused: {error}"
        return False
    return True


def _count(outcome: StoreCheck, found: GraphOutcome) -> None:
    """The counts of a check, which must add up."""
    found.proofs, found.checked = outcome.proofs, outcome.checked
    found.believed = outcome.without_certificate
    found.unreadable = [one.reason for one in outcome.unreadable]
    found.witnesses, found.replayed = outcome.witnesses, outcome.replayed
    refused = sum(one.kind is EvidenceKind.PROOF for one in outcome.failed)
    parts = found.checked + found.believed + len(found.unreadable) + refused
    if parts != found.proofs:
        found.wrong.append(f"{found.proofs} proofs, of which {parts} are counted")
    if found.replayed != found.witnesses:
        found.wrong.append(f"{found.witnesses} witnesses, of which {found.replayed} replay")
    if outcome.instances != outcome.compared:
        found.wrong.append(f"{outcome.instances} inputs, of which {outcome.compared} are compared")


def _instance(place: Path, index: int | None, target: int | None) -> tuple[Instance, Network]:
    with Store.open(place / "results") as store:
        for record in store.all_records():
            facts = record.facts
            instance = store.instance(record.key)
            if instance is not None and (facts.input, facts.target) == (index, target):
                network = load_network(place / "net.onnx", domain=instance.domain)
                probable = network.outputs_are_probabilities
                return replace(instance, outputs_are_probabilities=probable), network
    raise LookupError(f"no input {index} in the results")


def break_within(network: Network, instance: Instance, eps: float, seed: int) -> Witness | None:
    """A counterexample in the claimed ball, by several attacks, corners and samples."""
    query = Query(instance, eps)
    for attack in _attacks(instance.norm):
        try:
            (result,) = attack.attack(network, [query], seed=seed)
        except UnsupportedQuery:
            continue
        if result.witness is not None:
            return result.witness
    specification = query.specification
    points = _points(instance, eps, np.random.default_rng([33, seed]))
    candidates = [attack_specification(network, specification, seed=seed, seconds=5.0)]
    found = [each.input for each in candidates if each is not None]
    for point in (*found, *points):
        witness = check_witness(network, specification, point)
        if witness is not None:
            return witness
    return None


def _attacks(norm: Norm) -> Iterator[Attack]:
    yield from (MinimumNorm(), RandomSearch())
    if norm is Norm.LINF:
        yield from (Pgd(), Apgd())


def _points(instance: Instance, eps: float, rng: np.random.Generator) -> Iterator[Any]:
    """Corners of the ball, and points in it, uniform along each axis or on a few axes."""
    shape, centre = instance.input.shape, instance.input.astype(np.float64)
    for number in range(SAMPLES):
        step = rng.choice([-1.0, 1.0], shape) if number % 2 else rng.uniform(-1, 1, shape)
        if number % 4 > 1:
            step = step * (rng.random(shape) < 0.5)
        if instance.norm is not Norm.LINF:
            order = 1 if instance.norm is Norm.L1 else 2
            step = step / max(1e-12, float(np.linalg.norm(step.ravel(), order)))
        yield centre + eps * step


# --- the tables


def _show(seeds: range, outcomes: list[GraphOutcome]) -> None:
    asked = [each for each in outcomes if not each.stopped]
    proofs = sum(each.proofs for each in outcomes)
    refused = sum(len(each.refused) for each in outcomes)
    unbroken = sum(len(each.unbroken) for each in outcomes)
    show(
        f"radii check on random graphs, seeds {seeds.start} to {seeds.stop - 1}",
        ("outcome", "proofs", "graphs"),
        [
            ("graphs", "-", len(outcomes)),
            ("not read or not decided by radii", "-", len(outcomes) - len(asked)),
            ("with a proof", proofs, sum(each.proofs > 0 for each in outcomes)),
            _row("checked", outcomes, lambda each: each.checked),
            _row("FAILED", outcomes, lambda each: len(each.refused)),
            _row("unreadable", outcomes, lambda each: len(each.unreadable)),
            _row("without a certificate", outcomes, lambda each: each.believed),
            ("FAILED that an attack breaks", refused - unbroken, "-"),
            ("FAILED that no attack breaks", unbroken, "-"),
            _row("counterexamples", outcomes, lambda each: each.witnesses),
            _row("counterexamples replayed", outcomes, lambda each: each.replayed),
            _row("anything else wrong", outcomes, lambda each: len(each.wrong)),
        ],
    )
    _show_reasons("unreadable, by reason", [each.unreadable for each in outcomes])
    _show_reasons("FAILED, by reason", [each.refused for each in outcomes])
    _show_reasons("not asked, by reason", [[each.stopped] for each in outcomes if each.stopped])
    for seed, each in zip(seeds, outcomes, strict=True):
        for line in (*each.unbroken, *each.wrong):
            print(f"  seed {seed}: {line}", flush=True)


def _row(name: str, outcomes: list[GraphOutcome], count: Any) -> tuple[str, int, int]:
    counts = [count(each) for each in outcomes]
    return name, sum(counts), sum(number > 0 for number in counts)


def _show_reasons(title: str, reasons: list[list[str]]) -> None:
    every = Counter(_without_names(reason) for each in reasons for reason in each)
    graphs = Counter(kind for each in reasons for kind in set(map(_without_names, each)))
    rows = [(reason[:110], count, graphs[reason]) for reason, count in every.most_common()]
    show(title, ("reason", "proofs", "graphs"), rows)


def _without_names(reason: str) -> str:
    """Without numbers and names of nodes, so that equal reasons are counted together."""
    words = reason.replace("'", " ").split()
    return " ".join("*" if any(letter.isdigit() for letter in word) else word for word in words)
