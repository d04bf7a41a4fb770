"""How long a tree is given: an attempt as a whole, and cheap nodes beside rich ones in it.

A rich node has its units bounded again, round by round, under the assumption of a violation; a
cheap one keeps its parent's bounds, and only its own multipliers are improved, hundreds of them at
once. Rich nodes win in deep dense networks, cheap ones in convolutions and where little is missing.
So before nodes are split the rich way, a tree of cheap nodes is tried below them. Time spent on
rich nodes earns time for such trials: the more, the more of the tree they closed a second.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field

from radii.verifiers.native._settings import ClimbSettings, TrialSettings

CLIMB, TRIALS = ClimbSettings(), TrialSettings()


@dataclass(slots=True)
class Patience:
    """Says when an attempt will not end in `seconds`, of which it may spend `share`.

    Easy nodes are closed first, so the closed part of a tree runs ahead of the time it needs:
    attempts that just made it had closed 0.7 after a fifth and 0.9 after half of their time. Behind
    the cube root of the time spent, they are given up.
    """

    seconds: float = math.inf
    share: float = CLIMB.first_attempt_share
    patient_share: float = CLIMB.patient_share
    started: float | None = None

    def is_hopeless(self, closed_share: float) -> bool:
        """Its time begins with the first question: bounding the root does not count."""
        if self.started is None:
            self.started = time.monotonic()
        if math.isinf(self.seconds):
            return False
        spent = (time.monotonic() - self.started) / max(self.seconds, 1e-9)
        is_behind = spent > self.patient_share and closed_share < math.cbrt(spent)
        return spent > self.share or is_behind


@dataclass(slots=True)
class TrialTime:
    """Seconds that trials may take; shares of the tree are of the whole tree."""

    settings: TrialSettings = TRIALS
    share: float = field(init=False)
    seconds: float = 0.0
    rich_seconds: float = 0.0
    rich_closed: float = 0.0

    def __post_init__(self) -> None:
        self.share = self.settings.first_share

    def earn(self, seconds: float, closed: float) -> None:
        """Rich nodes took so long, and closed this share."""
        self.seconds += self.share * seconds
        self.rich_seconds = self.settings.fading * self.rich_seconds + seconds
        self.rich_closed = self.settings.fading * self.rich_closed + closed

    def spend(self, seconds: float, closed: float) -> None:
        """A trial took so long, and closed this share: it pays if rich nodes close no more."""
        self.seconds -= seconds
        is_better = closed * self.rich_seconds > self.rich_closed * seconds
        factor = 2.0 if is_better else 0.5
        least, most = self.settings.least_share, self.settings.largest_share
        self.share = min(max(factor * self.share, least), most)
