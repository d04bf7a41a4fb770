"""What an audit found, for the terminal."""

from __future__ import annotations

import math
from collections.abc import Sequence

from rich.box import SIMPLE_HEAD
from rich.table import Table

from radii.experiments import ClaimStatus, Finding

SHOWN_CLAIMS = 20
"""How many refuted claims a terminal shows; the table in the folder has all."""


def audit_table(found: Sequence[Finding]) -> Table:
    """One row a network: claims, what became of them, and what the refuted ones had cost."""
    table = Table(box=SIMPLE_HEAD, title="Audit", title_justify="left", caption_justify="left")
    table.add_column("network", overflow="fold", min_width=16)
    has_seconds = any(not math.isnan(finding.claim.seconds) for finding in found)
    others = [s for s in (ClaimStatus.MISCLASSIFIED, ClaimStatus.NOT_TRIED) if _with(found, s)]
    columns = ["claims", "refuted", "closest", *(status.value for status in others)]
    for name in (*columns, *(["s refuted", "s standing"] if has_seconds else [])):
        table.add_column(name, justify="right")
    for network in dict.fromkeys(finding.claim.network for finding in found):
        mine = [finding for finding in found if finding.claim.network == network]
        refuted, standing = _with(mine, ClaimStatus.REFUTED), _with(mine, ClaimStatus.STANDS)
        closest = min((finding.ratio for finding in refuted), default=math.nan)
        times = [_seconds(refuted), _seconds(standing)] if has_seconds else []
        table.add_row(
            network,
            str(len(mine)),
            str(len(refuted)),
            "" if math.isnan(closest) else f"{100 * closest:.0f} %",
            *(str(len(_with(mine, status))) for status in others),
            *times,
        )
    table.caption = "closest: the witness nearest to its input, as a part of the claimed radius"
    if has_seconds:
        table.caption += "; s: published seconds, fewest–most"
    return table


def refuted_table(refuted: Sequence[Finding]) -> Table:
    """The claims that are off by the most, first."""
    table = Table(box=SIMPLE_HEAD, title="Refuted claims", title_justify="left")
    table.caption_justify = "left"
    table.add_column("network", overflow="fold", min_width=16)
    targets = ["target"] if any(f.claim.target is not None for f in refuted) else []
    for name in ("input", "label", *targets, "claimed", "broken at", "becomes", "margin"):
        table.add_column(name, justify="right", no_wrap=True)
    worst = sorted(refuted, key=lambda finding: finding.ratio)
    for finding in worst[:SHOWN_CLAIMS]:
        claim, witness = finding.claim, finding.witness
        table.add_row(
            claim.network,
            str(claim.input),
            str(finding.instance.label),
            *(str(claim.target) for _ in targets),
            f"{claim.eps:.4g}",
            f"{finding.closest:.4g}",
            "" if witness is None else str(witness.predicted),
            f"{finding.margin:.2g}",
        )
    if len(worst) > SHOWN_CLAIMS:
        table.caption = f"the {SHOWN_CLAIMS} that are off by the most, of {len(worst)}"
    return table


def _with(found: Sequence[Finding], status: ClaimStatus) -> list[Finding]:
    return [finding for finding in found if finding.status is status]


def _seconds(found: Sequence[Finding]) -> str:
    times = [f.claim.seconds for f in found if not math.isnan(f.claim.seconds)]
    return f"{min(times):,.0f}–{max(times):,.0f}" if times else ""
