"""Replays the witnesses of an audit in plain onnxruntime: python replay.py AUDIT NETWORKS

Needs numpy and onnxruntime, and nothing of radii. Each witness lies within the claimed radius of
the published image and within [0, 1], and another class has a larger output there (refuted) or as
large a one (tie). Exit code 1 if one does not.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime

REFUTED, TIE, WRONG = "refuted", "tie", "does not replay"


def replay(witness: Path, networks: Path, sessions: dict[Path, Any] | None = None) -> str:
    """One of REFUTED, TIE and WRONG. `networks` may hold the file in any folder of its own;
    `sessions` keeps networks that are loaded."""
    saved = np.load(witness)
    path = sorted(networks.rglob(str(saved["network"])))[0]
    sessions = {} if sessions is None else sessions
    if path not in sessions:
        sessions[path] = onnxruntime.InferenceSession(path)
    session, point = sessions[path], saved["witness"]
    scores = session.run(None, {session.get_inputs()[0].name: point})[0].ravel()
    distance = np.abs(point.astype(np.float64) - saved["image"]).max()
    is_inside = distance <= saved["claimed"] and point.min() >= 0 and point.max() <= 1
    label = int(saved["label"])
    lead = np.delete(scores, label).max() - scores[label]
    if not is_inside or not lead >= 0:
        return WRONG
    return REFUTED if lead > 0 else TIE


def main(audit: Path, networks: Path) -> int:
    outcomes: dict[str, int] = {}
    sessions: dict[Path, Any] = {}
    for witness in sorted(audit.rglob("witnesses/*.npz")):
        outcome = replay(witness, networks, sessions)
        outcomes[outcome] = outcomes.get(outcome, 0) + 1
        if outcome == WRONG:
            sys.stdout.write(f"{witness}: {outcome}\n")
    sys.stdout.write(f"{outcomes}\n")
    return int(WRONG in outcomes)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), Path(sys.argv[2])))
