"""`radii audit`: try to refute published lower bounds with witnesses that anybody can replay."""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from radii.cli._options import JOBS, OUT, add_json_flag, add_options
from radii.cli._output import interruptible, print_json, write_csv, writing
from radii.errors import StoreError
from radii.terminal import note

if TYPE_CHECKING:
    import pandas as pd
    from rich.table import Table

    from radii.runs import Audit, ClaimStatus, Finding
    from radii.store import Store


SHOWN_CLAIMS = 20
"""How many refuted claims a terminal shows; the table in the folder has all."""

DESCRIPTION = (
    "Attack every input that published results call proven, and report each claim "
    "that a counterexample within the claimed radius refutes. A claim that stands is not "
    "thereby proven."
)

EPILOG = """examples:
  radii audit published.csv --networks networks/ --data digits:test --domain 0:1
  radii audit published.csv --networks a.onnx b.onnx --data images.npz --domain 0:1 --out audit
  radii audit published.csv --networks nets/ --data digits:test --split test --domain 0:1 --json
  radii audit results --networks net.onnx --data digits:test --domain 0:1    the --out of a run

The folder --out then holds audit.csv with a row for each claim, and witnesses/*.npz with a file for
each refuted one; docs/audit.md has a plain script that replays them. Run again to continue.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "results", type=Path, metavar="RESULTS.csv", help="what radii import reads, or wrote"
    )
    parser.add_argument(
        "--networks",
        "--network",
        type=Path,
        nargs="+",
        action="extend",
        required=True,
        metavar="DIR",
        help="where the ONNX files are, or the files (may be repeated); named as in the results",
    )
    add_options(
        parser,
        "mean",
        "std",
        data={"required": True, "help": "the published images: mnist:train, file.npz"},
        domain={"required": True, "help": "valid inputs: 0:1"},
        layout="chw or hwc, for flat coloured inputs",
        norm={"default": "linf"},
        attack={"default": "minimum-norm", "help": "as of radii attack (minimum-norm)"},
        seed={"default": 0, "help": "of the attack (0)"},
    )
    parser.add_argument("--split", metavar="NAME", help="audit the results' rows of this split")
    JOBS.add_to(parser)
    OUT.add_to(parser, default=Path("audit"), help="where findings go (./audit)")
    add_json_flag(parser)


def run(args: argparse.Namespace) -> int:
    from radii.cli._progress import ProgressBar
    from radii.runs import default_jobs, prepare_audit
    from radii.statistics import read
    from radii.store import Store

    if not args.results.exists():
        raise StoreError(f"{args.results}: no such file or directory")
    published = read(args.results)
    names = ("domain", "mean", "std", "layout", "norm", "split", "attack", "seed")
    audit = prepare_audit(
        zip(published.measurements, published.columns["split"].tolist(), strict=True),
        args.networks,
        args.data,
        **{name: getattr(args, name) for name in names},
    )
    for sentence in (*published.notes, *audit.notes):
        note(sentence)
    with Store.create_or_open(args.out) as store:
        with interruptible(f"what was found is in {args.out}"), ProgressBar() as bar:
            audit.plan.run(store, jobs=args.jobs or default_jobs(), observer=bar)
        _report(audit, store, args.out, as_json=args.json)
    return 0


def _report(audit: Audit, store: Store, out: Path, *, as_json: bool) -> None:
    from radii.runs import AUDIT_FILE, findings, findings_frame, save_witnesses

    results = findings(audit, store)
    save_witnesses(audit, results, out)
    frame = findings_frame(results)
    with writing(out):
        write_csv(frame, out / AUDIT_FILE)
    if as_json:
        _print_audit_json(frame)
    else:
        _print_tables(results, out)


def _print_audit_json(frame: pd.DataFrame) -> None:
    import pandas as pd

    plain = frame.astype(object).where(frame.notna(), None)
    counts = pd.crosstab(frame["network"], frame["status"])
    networks = [
        {"network": name, "claims": int(row.sum()), **{str(k): int(v) for k, v in row.items()}}
        for name, row in counts.iterrows()
    ]
    print_json({"networks": networks, "claims": plain.to_dict("records")})


def _print_tables(results: Sequence[Finding], out: Path) -> None:
    from radii.cli._tables import Console
    from radii.runs import ClaimStatus

    console = Console()
    refuted = _with_status(results, ClaimStatus.REFUTED)
    if refuted:
        console.print(_refuted_table(refuted))
    console.print(_audit_table(results))
    console.print(
        f"{len(refuted)} of {len(results)} claims are refuted. Every claim: {out / 'audit.csv'}; "
        f"witnesses: {out / 'witnesses'}",
        highlight=False,
        soft_wrap=True,
    )


def _audit_table(results: Sequence[Finding]) -> Table:
    """For each network its claims, what became of them, and what the refuted ones had cost."""
    from radii.cli._tables import table
    from radii.runs import ClaimStatus

    has_seconds = any(not math.isnan(finding.claim.seconds) for finding in results)
    others = [
        status
        for status in (ClaimStatus.MISCLASSIFIED, ClaimStatus.NOT_TRIED)
        if _with_status(results, status)
    ]
    rows = []
    for network in dict.fromkeys(finding.claim.network for finding in results):
        mine = [finding for finding in results if finding.claim.network == network]
        refuted = _with_status(mine, ClaimStatus.REFUTED)
        standing = _with_status(mine, ClaimStatus.STANDS)
        closest = min((finding.ratio for finding in refuted), default=math.nan)
        rows.append(
            [
                network,
                str(len(mine)),
                str(len(refuted)),
                "" if math.isnan(closest) else f"{100 * closest:.0f} %",
                *(str(len(_with_status(mine, status))) for status in others),
                *([_seconds_range(refuted), _seconds_range(standing)] if has_seconds else []),
            ]
        )
    caption = "closest: the witness nearest to its input, as a part of the claimed radius"
    if has_seconds:
        caption += "; s: published seconds, fewest–most"
    columns = ["network", "claims", "refuted", "closest", *(status.value for status in others)]
    columns += ["s refuted", "s standing"] if has_seconds else []
    return table("Audit", columns, rows, name_width=16, caption=caption, no_wrap=False)


def _refuted_table(refuted: Sequence[Finding]) -> Table:
    """The claims that are off by the most, first."""
    from radii.cli._tables import table

    targets = ["target"] if any(f.claim.target is not None for f in refuted) else []
    worst = sorted(refuted, key=lambda finding: finding.ratio)
    rows = [
        [
            finding.claim.network,
            str(finding.claim.input),
            str(finding.instance.label),
            *(str(finding.claim.target) for _ in targets),
            f"{finding.claim.eps:.4g}",
            f"{finding.closest:.4g}",
            "" if finding.witness is None else str(finding.witness.predicted),
            f"{finding.margin:.2g}",
        ]
        for finding in worst[:SHOWN_CLAIMS]
    ]
    columns = ["network", "input", "label", *targets, "claimed", "broken at", "becomes", "margin"]
    caption = None
    if len(worst) > SHOWN_CLAIMS:
        caption = f"the {SHOWN_CLAIMS} that are off by the most, of {len(worst)}"
    return table("Refuted claims", columns, rows, name_width=16, caption=caption)


def _with_status(results: Sequence[Finding], status: ClaimStatus) -> list[Finding]:
    return [finding for finding in results if finding.status is status]


def _seconds_range(results: Sequence[Finding]) -> str:
    times = [f.claim.seconds for f in results if not math.isnan(f.claim.seconds)]
    return f"{min(times):,.0f}–{max(times):,.0f}" if times else ""
