"""The closest counterexample: attack, shrink towards the input, attack again just below."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import ClassVar

from radii.attacks._base import Attack
from radii.attacks.batches import Clock, batches
from radii.attacks.pursuits import Pursuit, Stage, Start
from radii.networks import Network
from radii.queries import Query
from radii.verdicts import Array

__all__ = ["STAGES", "MinimumNorm"]

_WIDTHS = (0.25, 0.5, 0.0, 1.0)
_ANYWHERE = tuple(
    Start(kind, 1.0, width)
    for turn in range(4)
    for kind, width in zip(
        ("inner" if turn else "center", "inner", "corner", "half"),
        _WIDTHS[turn:] + _WIDTHS[:turn],
        strict=True,
    )
)
_FROM_OUTSIDE = (
    Start("inner", 1.3, 0.25),
    Start("corner", 1.5, 0.0),
    Start("half", 2.0, 0.5),
    Start("inner", 6.0, 0.25),
)
_REFINE = (Start("inner", 1.0, 0.25), Start("corner"), Start("best", 1.0, 0.25), Start("near"))

STAGES = (
    Stage(_ANYWHERE, ((10, 0.3), (30, 0.3), (60, 1.0))),
    Stage(_FROM_OUTSIDE * 2, ((10, 0.5), (20, 0.3), (30, 1.0))),
    Stage(_REFINE, ((60, 1.0),), share=0.25, sizes=(0.5, 0.003), gaps=(0.01, 0.0002)),
)
"""What each stage found on held-out images, and what it cost, is in docs/attacks.md."""
_SCALES = (1.0, 0.3, 0.1, 0.02)
JOINT = Stage(
    (
        Start("center"),
        Start("center", 1.0, 0.25),
        *(Start("inner", scale, width) for scale in _SCALES for width in (0.0, 0.25)),
        *(Start("corner", scale) for scale in _SCALES),
        Start("inner", 1.0, 0.5),
        Start("inner", 0.3, 0.5),
    ),
    ((12, 0.5), (12, 1.0)),
)
"""Where a violation needs several comparisons at once, before the other stages. The region may be
small or thin, and anywhere in the ball: its starts are of all scales."""
JOINT_REFINE = Stage(
    (*(Start(kind) for kind in ("best", "near", "near", "center", "inner", "corner")),),
    ((15, 1.0),),
    gaps=(0.01, 0.0002),
)
"""The same after them."""
POLISH = 10
"""Steps along the boundary at the end."""


class MinimumNorm(Attack):
    """All targets at once, from many starts, always just below the best counterexample so far.

    `stages` are done one after the other; `seconds` stops early and keeps what was found.
    """

    name: ClassVar[str] = "minimum-norm"

    def __init__(self, *, stages: tuple[Stage, ...] = STAGES, seconds: float = math.inf) -> None:
        self.stages = stages
        self.seconds = seconds

    def run(
        self, network: Network, queries: Sequence[Query], seed: int
    ) -> Sequence[Sequence[Array]]:
        candidates: list[Sequence[Array]] = [()] * len(queries)
        clock = Clock.of(self.seconds)
        todo = batches(network, queries, rows=max(len(stage.starts) for stage in self.stages))
        for done, batch in enumerate(todo):
            pursuit = Pursuit(batch, seed, clock.share(len(todo) - done))
            pursuit.meet(JOINT, len(self.stages))
            for number, stage in enumerate(self.stages):
                pursuit.run(stage, number)
            pursuit.meet(JOINT_REFINE, len(self.stages) + 1)
            pursuit.polish(POLISH)
            points = batch.points(pursuit.points)
            for place, is_found in enumerate(pursuit.is_found.tolist()):
                if is_found:
                    candidates[batch.members[place]] = (points[place],)
        return candidates
