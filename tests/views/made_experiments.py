"""Small stores with known contents, made without running anything."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from radii.problem import (
    REAL,
    Arithmetic,
    Domain,
    Instance,
    Norm,
    OneToAny,
    OneToOne,
    Proof,
    Property,
    Result,
    Verdict,
    Witness,
)
from radii.store import Store
from radii.strategy import Question, QuestionKind

CLASSES = 3
HOSTILE = "<img src=x onerror=alert(1)></script><b>&amp;"
EXPERIMENT = {
    "property": "one-to-any",
    "norm": "linf",
    "grid": "0.01:0.5:0.01",
    "search": "attack-guided",
    "verifier": "milp",
    "timeout": 60.0,
    "budget": None,
    "seed": 0,
    "domain": ["0.0:1.0"],
    "source": "digits:test[0:9]",
    "split": "test",
}


@dataclass(frozen=True)
class Known:
    """A bracket that a store is made to hold; `upper` None: no witness, 0: misclassified."""

    lower: float
    upper: float | None
    wrong_claim: float | None = None
    timed_out_at: float | None = None
    arithmetic: Arithmetic = REAL


def outputs_for(winner: int) -> np.ndarray:
    outputs = np.zeros(CLASSES)
    outputs[winner] = 1.0
    return outputs


def picture(place: int, shape: tuple[int, ...]) -> np.ndarray:
    return np.random.default_rng(place).uniform(0.3, 0.7, shape).astype(np.float32)


def instance(
    network: str, place: int, known: Known, shape: tuple[int, ...], what: Property
) -> Instance:
    label = place % CLASSES
    seen = label if known.upper != 0 else (label + 1) % CLASSES
    return Instance(
        network=network,
        index=place,
        input=picture(place, shape),
        label=label,
        outputs=outputs_for(seen),
        property=what,
        norm=Norm.LINF,
        domain=Domain(np.float64(0), np.float64(1)),
    )


def answers(made: Instance, known: Known) -> list[tuple[str, Question, Result]]:
    goal = made.property.target if made.property.target is not None else (made.label + 1) % CLASSES
    found = []
    if known.upper == 0:
        witness = Witness(made.input, 0.0, goal, made.outputs, "onnxruntime 1")
        result = Result(Verdict.NOT_ROBUST, 0.0, "replay", "1", 0.0, witness=witness)
        return [(made.key, Question(QuestionKind.REPLAY, 0.0), result)]
    if known.upper is not None:
        signs = np.sign(np.random.default_rng(made.index + 99).normal(size=made.input.shape))
        broken = (made.input + known.upper * signs).astype(np.float32)
        witness = Witness(broken, known.upper, goal, outputs_for(goal), "onnxruntime 1")
        result = Result(Verdict.NOT_ROBUST, 0.5, "minimum-norm", "1", 0.25, witness=witness)
        found.append((made.key, Question(QuestionKind.ATTACK, 0.5), result))
    if known.timed_out_at is not None:
        result = Result(Verdict.TIMEOUT, known.timed_out_at, "milp", "2", 60.0)
        found.append((made.key, Question(QuestionKind.PROVE, known.timed_out_at), result))
    if known.lower > 0:
        proof = Proof(known.lower, 1e-6, known.arithmetic)
        result = Result(Verdict.ROBUST, known.lower, "milp", "2", 1.5, proof=proof)
        found.append((made.key, Question(QuestionKind.PROVE, known.lower), result))
    if known.wrong_claim is not None:
        proof = Proof(known.wrong_claim, 0.0)
        result = Result(Verdict.ROBUST, known.wrong_claim, "liar", "0", 0.1, proof=proof)
        found.append((made.key, Question(QuestionKind.PROVE, known.wrong_claim), result))
    return found


def write_experiment(
    directory: Path,
    networks: dict[str, list[Known]],
    *,
    shape: tuple[int, ...] = (1, 8, 8),
    targeted: bool = False,
    **experiment: object,
) -> Path:
    """One instance for each `Known` of each network; with `targeted`, one for each other class."""
    made: list[tuple[Instance, Known]] = []
    for place, brackets in enumerate(networks.values()):
        for index, known in enumerate(brackets):
            goals = [t for t in range(CLASSES) if t != index % CLASSES] if targeted else [None]
            for step, goal in enumerate(goals):
                what = OneToAny() if goal is None else OneToOne(goal)
                wider = Known(known.lower + 0.02 * step, known.upper and known.upper + 0.02 * step)
                told = wider if targeted else known
                made.append((instance(f"{place:064d}", index, told, shape, what), told))
    described = {f"{p:064d}": (name, f"/nets/{p}.onnx") for p, name in enumerate(networks)}
    if targeted:
        experiment = {"property": "one-to-one", **experiment}
    with Store.create_or_open(directory) as store:
        store.begin({**EXPERIMENT, **experiment}, described, [one for one, _ in made])
        store.record([answer for one, known in made for answer in answers(one, known)])
    return directory


STANDARD = [
    Known(0.05, 0.055),
    Known(0.10, 0.108),
    Known(0.0, 0.0),
    Known(0.02, 0.06, timed_out_at=0.05),
    Known(0.08, 0.085),
    Known(0.03, 0.034),
]
ROBUST = [
    Known(0.20, 0.205),
    Known(0.30, None),
    Known(0.15, 0.155),
    Known(0.18, 0.188),
    Known(0.25, 0.256),
    Known(0.0, 0.12, wrong_claim=0.13),
]
