"""The native radius search on mnist-net_256x2 against binary search with the same verifier."""

from __future__ import annotations

import time

import torch

from benchmarks import published
from radii.attacks import MinimumNorm
from radii.execution import Case, Inline, Toolbox, drive
from radii.queries import Grid, Instance
from radii.search import Binary, Native, Search
from radii.verifiers import BranchAndBound

NETWORK, IMAGES, BUDGET = "mnist-net_256x2", 10, 60.0
GRID = Grid.parse("0.001:0.4:0.002")


def main() -> None:
    if not published.is_here():
        return
    torch.set_num_threads(1)
    net = published.network(NETWORK)
    asked = published.instances(net, 0, IMAGES)
    tools = Toolbox({net.fingerprint: net}, MinimumNorm(), BranchAndBound(), grid=GRID)
    native, fast = measured(tools, asked, Native)
    _, slow = measured(tools, asked, Binary)
    claimed = published.brackets(NETWORK)
    equal = sum(
        abs(search.bracket.lower - claimed[case.index][0]) < 1e-9
        for case, search in zip(asked, native, strict=True)
    )
    print(
        f"{NETWORK}: {equal} of {len(asked)} lower bounds equal the published ones; "
        f"native search {fast / len(asked):.2f} s an instance, binary search with the same "
        f"verifier {slow / len(asked):.2f} s: {slow / fast:.1f} times slower"
    )


def measured(
    tools: Toolbox, asked: list[Instance], kind: type[Search]
) -> tuple[list[Search], float]:
    """All searches, driven to their end in this process, and the wall seconds they took."""
    cases = [Case(instance, kind(GRID), batch=0) for instance in asked]
    started = time.perf_counter()
    with Inline(tools) as executor:
        drive(
            cases,
            executor,
            timeout=BUDGET,
            budget=BUDGET,
            on_results=lambda _: None,
            on_finished=lambda _: None,
        )
    return [case.search for case in cases], time.perf_counter() - started


if __name__ == "__main__":
    main()
