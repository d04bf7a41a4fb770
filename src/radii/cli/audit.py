"""`radii audit`: try to refute published lower bounds with witnesses that anybody can replay."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from radii.cli.options import add_json_flag
from radii.errors import ExperimentError, StoreError
from radii.terminal import say

if TYPE_CHECKING:
    import pandas as pd

    from radii.experiments import Audit, Finding
    from radii.store import Store


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

The folder --out then holds audit.csv, a row a claim, and witnesses/*.npz, one a refuted claim;
docs/audit.md has a plain script that replays them. Run again to continue.
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
    parser.add_argument(
        "--data", required=True, metavar="SPEC", help="the published images: mnist:train, file.npz"
    )
    parser.add_argument("--domain", required=True, metavar="LOW:HIGH", help="valid inputs: 0:1")
    parser.add_argument("--mean", metavar="M[,M...]", help="normalisation: subtracted, per channel")
    parser.add_argument("--std", metavar="S[,S...]", help="normalisation: divided by, per channel")
    parser.add_argument("--layout", metavar="ORDER", help="chw or hwc, for flat coloured inputs")
    parser.add_argument("--norm", default="linf", metavar="NAME", help="linf (default), l2 or l1")
    parser.add_argument("--split", metavar="NAME", help="audit the results' rows of this split")
    parser.add_argument(
        "--attack", default="minimum-norm", metavar="NAME", help="as of radii attack (minimum-norm)"
    )
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="of the attack (0)")
    parser.add_argument("--jobs", type=int, metavar="N", help="worker processes (one a core)")
    parser.add_argument(
        "--out", type=Path, default=Path("audit"), metavar="DIR", help="where findings go (./audit)"
    )
    add_json_flag(parser)


def run(args: argparse.Namespace) -> int:
    from radii.cli.progress import ProgressBar
    from radii.experiments import default_jobs, prepare_audit
    from radii.results import read
    from radii.store import Store

    if args.jobs is not None and args.jobs < 1:
        raise ExperimentError(f"--jobs {args.jobs} must be at least 1")
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
    for note in (*published.notes, *audit.notes):
        say(f"radii: {note}", file=sys.stderr)
    with Store.create_or_open(args.out) as store:
        try:
            with ProgressBar() as bar:
                audit.plan.run(store, jobs=args.jobs or default_jobs(), observer=bar)
        except KeyboardInterrupt:
            say(
                f"radii: interrupted; what was found is in {args.out}, run again to continue",
                file=sys.stderr,
            )
            return 130
        _report(audit, store, args.out, as_json=args.json)
    return 0


def _report(audit: Audit, store: Store, out: Path, *, as_json: bool) -> None:
    from radii.cli.csv_output import write_csv
    from radii.experiments import AUDIT_FILE, findings, findings_frame, save_witnesses

    found = findings(audit, store)
    save_witnesses(audit, found, out)
    frame = findings_frame(found)
    try:
        write_csv(frame, out / AUDIT_FILE)
    except OSError as error:
        raise StoreError(f"{out}: cannot be written ({error.strerror or error})") from None
    if as_json:
        _print_audit_json(frame)
    else:
        _print_tables(frame, found, out)


def _print_audit_json(frame: pd.DataFrame) -> None:
    import pandas as pd

    from radii.cli.json_output import print_json

    plain = frame.astype(object).where(frame.notna(), None)
    counts = pd.crosstab(frame["network"], frame["status"])
    networks = [
        {"network": name, "claims": int(row.sum()), **{str(k): int(v) for k, v in row.items()}}
        for name, row in counts.iterrows()
    ]
    print_json({"networks": networks, "claims": plain.to_dict("records")})


def _print_tables(frame: pd.DataFrame, found: list[Finding], out: Path) -> None:
    from radii.cli.audit_tables import audit_table, refuted_table
    from radii.cli.console import Console
    from radii.experiments import ClaimStatus

    console = Console()
    refuted = [finding for finding in found if finding.status is ClaimStatus.REFUTED]
    if refuted:
        console.print(refuted_table(refuted))
    console.print(audit_table(found))
    console.print(
        f"{len(refuted)} of {len(frame)} claims are refuted. Every claim: {out / 'audit.csv'}; "
        f"witnesses: {out / 'witnesses'}",
        highlight=False,
        soft_wrap=True,
    )
