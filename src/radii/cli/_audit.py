"""`radii audit`: try to refute published lower bounds with witnesses that anybody can replay."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from radii import views
from radii.cli._options import JOBS, OUT, add_json_flag, add_options
from radii.cli._output import interruptible, print_json, print_parts, write_csv, writing
from radii.errors import StoreError
from radii.terminal import note, say

if TYPE_CHECKING:
    import pandas as pd

    from radii.runs import Audit
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
    from radii.runs import AUDIT_FILE, ClaimStatus, findings, findings_frame, save_witnesses

    results = findings(audit, store)
    save_witnesses(audit, results, out)
    frame = findings_frame(results)
    with writing(out):
        write_csv(frame, out / AUDIT_FILE)
    if as_json:
        _print_audit_json(frame)
    else:
        print_parts(views.audit_tables(results))
        refuted = sum(finding.status is ClaimStatus.REFUTED for finding in results)
        say(
            f"{refuted} of {len(results)} claims are refuted. Every claim: {out / AUDIT_FILE}; "
            f"witnesses: {out / 'witnesses'}"
        )


def _print_audit_json(frame: pd.DataFrame) -> None:
    import pandas as pd

    plain = frame.astype(object).where(frame.notna(), None)
    counts = pd.crosstab(frame["network"], frame["status"])
    networks = [
        {"network": name, "claims": int(row.sum()), **{str(k): int(v) for k, v in row.items()}}
        for name, row in counts.iterrows()
    ]
    print_json({"networks": networks, "claims": plain.to_dict("records")})
