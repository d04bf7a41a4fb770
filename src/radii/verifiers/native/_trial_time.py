"""How much time cheap nodes get beside rich ones, by what each has closed lately.

A rich node has its units bounded again, round by round, under the assumption of a violation; a
cheap one keeps its parent's bounds, and only its own multipliers are improved, hundreds of them at
once. Rich nodes win in deep dense networks, cheap ones in convolutions and where little is missing.
So before nodes are split the rich way, a tree of cheap nodes is tried below them. Time spent on
rich nodes earns time for such trials: the more, the more of the tree they closed a second.
"""

from __future__ import annotations

from dataclasses import dataclass

FIRST_SHARE = 0.25
LEAST_SHARE, LARGEST_SHARE = 1 / 32, 16.0
"""Of the time of rich nodes, what trials get: at first, at least and at most. The least is what a
network where they never help pays for them."""
FADING = 0.7
"""What earlier batches of rich nodes weigh against the latest."""


@dataclass(slots=True)
class TrialTime:
    """Seconds that trials may take; shares of the tree are of the whole tree."""

    share: float = FIRST_SHARE
    seconds: float = 0.0
    rich_seconds: float = 0.0
    rich_closed: float = 0.0

    def earn(self, seconds: float, closed: float) -> None:
        """Rich nodes took so long, and closed this share."""
        self.seconds += self.share * seconds
        self.rich_seconds = FADING * self.rich_seconds + seconds
        self.rich_closed = FADING * self.rich_closed + closed

    def spend(self, seconds: float, closed: float) -> None:
        """A trial took so long, and closed this share: it pays if rich nodes close no more."""
        self.seconds -= seconds
        is_better = closed * self.rich_seconds > self.rich_closed * seconds
        factor = 2.0 if is_better else 0.5
        self.share = min(max(factor * self.share, LEAST_SHARE), LARGEST_SHARE)
