"""Random small networks whose exact radius is known: `native` must contradict none of them.

Half of them in the form that it chooses itself, half of them (those of ReLU units) on the network's
own maps, which it would choose for large networks only. What the integer program proves and where
it finds a witness is compared with native's verdicts on both sides, and with a climb past them.
`--seed A:B` are the networks, the first half of them as they come.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from benchmarks.records import Options
from benchmarks.tables import show
from radii.bounds import Fusion, HeldValues
from radii.networks import Network, Relu
from radii.problem import Instance, Norm, Query, Verdict
from radii.testing import NetworkFamily, random_instance, random_network
from radii.verifiers import BranchAndBound, Limits, Milp, RadiusAnswer
from radii.verifiers.native import _form
from radii.verifiers.native._settings import ProofSettings, RootSettings

SEEDS, UNITS, BUDGET = range(2000), 20, 20.0
"""Wall seconds for each question."""

ON_MAPS = (
    NetworkFamily.DENSE,
    NetworkFamily.CONVOLUTIONAL,
    NetworkFamily.RESIDUAL,
    NetworkFamily.POOLING,
)
WITHIN, BEYOND = (0.9, 0.999), (1.001, 1.1)
"""Parts of what is proven, multiples of where the witness is."""
CLIMB_VALUES, CLIMB_REACH = 40, 1.3


def main(options: Options) -> None:
    seeds = options.seeds or SEEDS
    half = seeds.start + len(seeds) // 2
    forms = {"its own": range(seeds.start, half), "forced maps": range(half, seeds.stop)}
    counts = {form: Counter[str]() for form in forms}
    for form, own in forms.items():
        for seed in own:
            counts[form].update(_outcomes(seed, form == "forced maps", options))
            if (seed + 1) % 100 == 0:
                print(f"  {form}, to seed {seed}: {dict(counts[form])}", flush=True)
    words = sorted({word for found in counts.values() for word in found})
    rows = [[form, *(found[word] for word in words)] for form, found in counts.items()]
    show(f"Networks of up to {UNITS} units beside exact radii", ["form", *words], rows)


def _outcomes(seed: int, is_mapped: bool, options: Options) -> Counter[str]:
    families = ON_MAPS if is_mapped else tuple(NetworkFamily)
    family = families[seed % len(families)]
    network = random_network(family, seed, units=UNITS)
    norm = Norm.L1 if seed % 5 == 0 else Norm.LINF
    instance = random_instance(network, seed, norm=norm)
    started, found = time.process_time(), Counter({"networks": 1})
    budget = options.budget or BUDGET
    exact = Milp().radius(network, instance, Limits(budget))
    answer = RadiusAnswer(exact.lower, exact.witness)
    if not answer.lower > 0:
        return found + Counter({"nothing to compare": 1})
    with _forced() if is_mapped else _as_it_is():
        for problem in _problems(network, instance, answer, budget, found):
            found["CONTRADICTIONS"] += 1
            print(
                f"  CONTRADICTION: {family}, seed {seed}, maps {is_mapped}: {problem}", flush=True
            )
    found["CPU s, rounded"] += round(time.process_time() - started)
    return found


def _problems(
    network: Network, instance: Instance, exact: RadiusAnswer, budget: float, found: Counter[str]
) -> Iterator[str]:
    native = BranchAndBound()
    for factor in WITHIN:
        eps = factor * exact.lower
        verdict = native.verify(network, Query(instance, eps), Limits(budget)).verdict
        found[f"{verdict} within"] += 1
        if verdict is Verdict.NOT_ROBUST:
            yield f"a witness within {eps}, but {exact.lower} is proven"
    for factor in BEYOND if exact.witness is not None else ():
        eps = factor * exact.upper
        verdict = native.verify(network, Query(instance, eps), Limits(budget)).verdict
        found[f"{verdict} beyond"] += 1
        if verdict is Verdict.ROBUST:
            yield f"robust at {eps}, but there is a witness at {exact.upper}"
    far = CLIMB_REACH * (exact.upper if exact.witness is not None else exact.lower)
    values = [far * (place + 1) / CLIMB_VALUES for place in range(CLIMB_VALUES)]
    climbed = native.certify(network, instance, values, Limits(budget))
    lower = 0.0 if climbed.proof is None else climbed.proof.eps
    found["climbs"] += 1
    found["climbs that prove something"] += lower > 0
    if exact.witness is not None and lower >= exact.upper:
        yield f"{lower} proven by a climb, but there is a witness at {exact.upper}"
    if climbed.witness is not None and climbed.witness.distance <= exact.lower:
        yield f"a climb's witness at {climbed.witness.distance}, but {exact.lower} is proven"


@contextmanager
def _as_it_is() -> Iterator[None]:
    yield


@contextmanager
def _forced() -> Iterator[None]:
    """Every network of ReLU units keeps its maps, whatever their size, and units are split."""
    changes = (
        (_form, "keeps_structure", _is_plain),
        (
            BranchAndBound,
            "settings",
            ProofSettings(splittable_inputs=0, root=RootSettings(dense_gain=0.0)),
        ),
    )
    before = [(owner, name, getattr(owner, name)) for owner, name, _ in changes]
    try:
        for owner, name, value in changes:
            setattr(owner, name, value)
        yield
    finally:
        for owner, name, value in before:
            setattr(owner, name, value)


def _is_plain(fusion: Fusion) -> bool:
    return all(isinstance(stage.operator, Relu | HeldValues) for stage in fusion.stages)
