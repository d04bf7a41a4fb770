"""Proofs by splits of inputs: CROWN over boxes, for few inputs and for smooth networks."""

from __future__ import annotations

import numpy as np

from radii_check._bounds import Bounds, Regions
from radii_check._format import Array, hold, need
from radii_check._proof import Proof
from radii_check._rows import Row
from radii_check._trees import leaves_of

MOST_BOXES = 64


class BoxProof(Proof):
    """A proof by splits of inputs: nothing is stated but boxes."""

    def run(self) -> None:
        a, claim, inputs = self.arrays, self.certificate.claim, self.network.size(0)
        need(claim["norm"] in ("linf", "box"), "boxes are for regions in linf, and boxes")
        self.is_leaf = leaves_of(a, "parent", "axis", "cut", "side")
        is_root = a["parent"] < 0
        hold(is_root.sum() == 1, "there is not one root")
        hold(is_root | ((a["axis"] >= 0) & (a["axis"] < inputs)), "a split is of no input")
        whole = Regions.of(self.certificate, np.array([claim.get("eps", 0.0)]), self.num)
        leaves, at_once = np.flatnonzero(self.is_leaf), max(1, min(MOST_BOXES, self.most_regions))
        for first in range(0, len(leaves), at_once):
            some = leaves[first : first + at_once]
            low, high = (np.repeat(side, len(some), axis=1) for side in (whole.low, whole.high))
            for column, leaf in enumerate(some):
                for node in self.path(leaf)[1:]:
                    place, cut = (a["axis"][node], column), a["cut"][node]
                    if a["side"][node] > 0:
                        low[place] = np.maximum(low[place], cut)
                    else:
                        high[place] = np.minimum(high[place], cut)
            kept = np.flatnonzero((low <= high).all(0))
            if len(kept):
                self.boxes(some[kept], Regions(low[:, kept], high[:, kept]))

    def boxes(self, leaves: Array, regions: Regions) -> None:
        """CROWN over some boxes: no violation may be possible in any."""
        self.bounds = Bounds(self.network, regions, self.certificate.widening, self.num)
        self.bounds.forward(self.tighten)
        states = self.columns(self.bounds.lower, self.bounds.upper)
        for violation in self.violations:
            best = np.full(len(leaves), -np.inf)
            for gamma in np.eye(len(violation[1])):
                rows = [Row(i, *state, [], violation, gamma) for i, state in enumerate(states)]
                best = np.maximum(best, self.evaluated(rows))
            told = f"node {leaves[best.argmin()]}: a violation is possible in its box"
            hold(best > 0, f"{told}: it fails by {-best.min():.3g}")
            self.margin = min(self.margin, best.min())

    def tighten(self, mine: slice, low: Array, high: Array) -> None:
        """Units that intervals leave open, by rows."""
        lower, upper = self.bounds.lower, self.bounds.upper
        lower[mine], upper[mine] = self.num.below(low), -self.num.below(-high)
        states = self.columns(lower, upper)
        unit, box = np.nonzero((lower[mine] < 0) & (upper[mine] > 0))
        at = (mine.start + unit, box)
        pairs = list(zip(at[0].tolist(), box.tolist(), strict=True))
        found = [
            self.evaluated([Row(i, *states[i], [(u, s)]) for u, i in pairs]) for s in (1.0, -1.0)
        ]
        lower[at], upper[at] = np.maximum(lower[at], found[0]), np.minimum(upper[at], -found[1])
