"""`radii global`: what a sample of inputs says of all of them, with a statistical guarantee."""

from __future__ import annotations

import argparse
import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from radii import views
from radii.cli._options import JOBS, OUT, add_json_flag, add_options, check_files, given
from radii.cli._output import print_json, print_parts, write_rows, writing
from radii.errors import ExperimentError
from radii.runs import COUNT, NUMBER, Option, OptionForm
from radii.terminal import say

if TYPE_CHECKING:
    from radii.cli._progress import ProgressBar
    from radii.networks import Network
    from radii.runs import GlobalRobustness, InputSource
    from radii.statistics import Demand, Range, SamplePlan


def _range(value: Any) -> Range:
    from radii.statistics import Range

    return Range.parse(value)


RANGE = Option(
    name="range",
    form=OptionForm("A:B", _range, "str"),
    help="all values that a change can have",
)
SAMPLES = Option(
    name="samples",
    form=COUNT,
    help="number of inputs to sample, instead of planning how many are needed",
)
ERROR = Option(name="error", form=NUMBER, metavar="E", help="tolerance of the estimate (0.05)")
DECIDE = Option(name="decide", form=NUMBER, metavar="X", help="is the measure at least X?")
WITHIN = Option(name="within", form=NUMBER, metavar="W", help="of D: narrow changes to this")

FIRST = "networks data domain eps error confidence sequential decide out json"

DESCRIPTION = (
    "Estimate R, the share of inputs that are robust within eps, or D, the mean of "
    "the largest change of the outputs."
)

EPILOG = """examples:
  radii global --plan --error 0.05 --confidence 0.95
  radii global --network net.onnx --data mnist:test --domain 0:1 --eps 0.02 --error 0.05 --out r
  radii global --network net.onnx --data mnist:test --domain 0:1 --eps 0.02 --by attack
  radii global --network net.onnx --data mnist:test --domain 0:1 --eps 0.02 \\
               --sequential --decide 0.9               stops as soon as it is known
  radii global --network net.onnx --data mnist:test --domain 0:1 --eps 0.02 --measure change
  radii global --network net.onnx --data mnist:test --domain 0:1 --eps 0.02 --arithmetic real
  radii global --curve results --by-class              R at every eps, from a finished run

exit codes:
  0 done (with --decide: it is at least that), 1 with --decide: it is not, or nothing can be said,
  2 bad input
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    _add_statistics_flags(parser.add_argument_group("how sure, how precise"))
    _add_subject_flags(parser.add_argument_group("of what"))
    _add_work_flags(parser.add_argument_group("how to find out"))
    curve = parser.add_argument_group("from a finished run")
    curve.add_argument("--curve", type=Path, metavar="DIR", help="R at every eps at once")
    curve.add_argument("--by-class", action="store_true", help="of each class, all at once")
    parser.add_argument("--csv", type=Path, metavar="FILE", help="write each input's value there")
    add_json_flag(parser)


def _add_statistics_flags(group: Any) -> None:
    group.add_argument("--plan", action="store_true", help="only say how many inputs it needs")
    ERROR.add_to(group)
    group.add_argument(
        "--confidence",
        type=float,
        default=0.95,
        metavar="C",
        help="confidence of the statement (0.95)",
    )
    group.add_argument(
        "--method",
        metavar="NAME",
        default="",
        help="exact (shares only), hoeffding, chernoff, bernstein, tightest",
    )
    RANGE.add_to(group)
    SAMPLES.add_to(group)
    group.add_argument(
        "--sequential", action="store_true", help="stop as soon as the sample suffices"
    )
    DECIDE.add_to(group)


def _add_subject_flags(group: Any) -> None:
    add_options(group, networks="an ONNX file", data="sampled without replacement")
    group.add_argument(
        "--about",
        choices=("set", "source"),
        default="set",
        help="speak of the data set itself (default), or of what it was drawn from",
    )
    group.add_argument("--generator", metavar="FILE.py:NAME", help="makes an input, given a rng")
    add_options(group, "mean", "std", domain="valid inputs, such as 0:1")
    add_options(group, layout="chw or hwc, for flat inputs", norm={"default": "linf"})
    group.add_argument("--eps", metavar="E", help="radius of the ball, such as 0.02 or 8/255")
    group.add_argument(
        "--measure",
        choices=("robustness", "change"),
        default="robustness",
        help="robustness R (default), or mean change D",
    )
    group.add_argument(
        "--property",
        metavar="NAME",
        help="of R: cr:of=prediction (default), cr, sr:delta=G[,on=probabilities], scr:eta=E",
    )
    group.add_argument(
        "--on",
        choices=("outputs", "probabilities"),
        default="probabilities",
        help="of D: whose change (probabilities)",
    )


def _add_work_flags(group: Any) -> None:
    group.add_argument("--by", choices=("attack", "proof", "both"), default="both")
    group.add_argument("--attack", metavar="NAME", help="of R: apgd (default), pgd, fgsm, ...; of "
                       "D: pgd (default), fgsm")  # fmt: skip
    WITHIN.add_to(group)
    add_options(
        group,
        "arithmetic",
        verifier="native (default), milp, ...",
        timeout="seconds for the proof of an input (60)",
        memory="of each worker (its share of nine tenths)",
        seed={"default": 0, "help": "of the sample (0)"},
    )
    JOBS.add_to(group)
    OUT.add_to(group, help="keep the results here; run again to continue")


@dataclass(frozen=True, slots=True)
class Subject:
    """What is measured, on which inputs, and how precisely."""

    network: Network
    source: InputSource
    demand: Demand


def run(args: argparse.Namespace) -> int:
    from radii.cli._progress import ProgressBar

    if args.csv is not None and not args.csv.parent.is_dir():
        raise ExperimentError(f"--csv {args.csv}: there is no such directory")
    if args.curve is not None:
        return _show_curve(args)
    check_files(args)
    _check_reachable(args)
    demand = _demand(args)
    if args.plan:
        return _show_plan(args, demand, _source(args))
    if (source := _source(args)) is None:
        raise ExperimentError("--data is missing: name a data set, or a --generator")
    subject = Subject(_load_network(args), source, demand)
    measure = _change if args.measure == "change" else _robustness
    with ProgressBar() as bar:
        measured = measure(args, subject, bar)
    _show_result(args, measured)
    return 0 if args.decide is None or measured.decision else 1


def _check_reachable(args: argparse.Namespace) -> None:
    """What no amount of work could answer is said before any."""
    from radii.statistics import Range

    if len(args.networks or ()) > 1:
        raise ExperimentError(
            f"--network is given {len(args.networks)} times: an estimate is of one network, so run "
            "the command once for each"
        )
    span = args.range or Range()
    is_open = args.measure == "change" and args.on == "outputs" and args.range is None
    if args.decide is not None and not is_open and not span.low < args.decide <= span.high:
        measure = "R" if args.measure == "robustness" else "D"
        raise ExperimentError(
            f"--decide {args.decide:g}: {measure} lies between {span.low:g} and {span.high:g}; ask "
            f"for a value above {span.low:g} and at most {span.high:g}"
        )


def _demand(args: argparse.Namespace) -> Demand:
    from radii.statistics import Demand

    is_open = args.sequential and args.decide is not None
    error = args.error
    if error is None and (args.plan or (args.samples is None and not is_open)):
        error = 0.05
    return Demand(
        error=error,
        confidence=args.confidence,
        method=args.method,
        samples=args.samples,
        is_sequential=args.sequential,
        threshold=args.decide,
    )


def _source(args: argparse.Namespace) -> InputSource | None:
    if args.data is None and args.generator is None:
        return None
    from radii import datasets
    from radii.runs import DataSource, load_generator

    if args.generator is not None:
        if args.data is not None:
            raise ExperimentError("--data and --generator: inputs come from one of them")
        return load_generator(args.generator)
    dataset = datasets.load_spec(args.data)
    return DataSource(dataset, name=args.data, beyond=args.about == "source")


def _load_network(args: argparse.Namespace) -> Network:
    from radii.networks import load_network
    from radii.runs import Experiment

    if args.eps is None:
        raise ExperimentError("--eps is missing: the radius of the ball, such as 0.02")
    options = given(args, ("domain", "mean", "std"))
    described = Experiment.from_options(
        {"networks": args.networks, "data": args.data or args.generator, **options}
    )
    return load_network(
        described.networks[0],
        domain=described.domain,
        mean=described.mean,
        std=described.std,
    )


def _robustness(args: argparse.Namespace, subject: Subject, bar: ProgressBar) -> GlobalRobustness:
    from radii.runs import default_jobs, estimate_robustness, settings_for
    from radii.store import Store

    for name in given(args, ("range", "within")):
        raise ExperimentError(f"--{name} is for --measure change: R is a share")
    names = "property", "norm", "seed", "attack", "verifier", "timeout", "memory", "arithmetic"
    settings = settings_for(args.eps, args.by, **given(args, names))
    with Store.in_memory() if args.out is None else Store.create_or_open(args.out) as store:
        return estimate_robustness(
            subject.network,
            subject.source,
            settings,
            subject.demand,
            store,
            layout=args.layout,
            path=args.networks[0],
            jobs=args.jobs or default_jobs(),
            observer=bar,
        )


def _change(args: argparse.Namespace, subject: Subject, bar: ProgressBar) -> GlobalRobustness:
    from radii.problem import Grid
    from radii.runs import ChangeSettings, estimate_change
    from radii.verifiers import arithmetic_of

    if args.property is not None:
        raise ExperimentError("--property is for R; D measures the change of --on")
    chosen = given(args, ("attack", "verifier", "timeout", "within", "arithmetic"))
    if args.within is not None:  # all proofs hold in one arithmetic: what the verifier can prove in
        chosen["arithmetic"] = arithmetic_of(args.verifier or "native", args.arithmetic)
    settings = ChangeSettings(
        eps=Grid.of_one(args.eps)[0],
        on=args.on,
        norm=args.norm,
        by=args.by,
        **chosen,
    )
    return estimate_change(
        subject.network,
        subject.source,
        settings,
        subject.demand,
        values=args.range,
        seed=args.seed,
        layout=args.layout,
        out=args.out,
        progress=bar.counted,
    )


def _show_plan(args: argparse.Namespace, demand: Demand, source: InputSource | None) -> int:
    """How many inputs, for any source and for the one that is named."""
    from radii.statistics import Population, Range, plan_samples

    anyone = Population("the data")

    def plan(method: str, population: Population, values: Range | None = None) -> SamplePlan:
        return plan_samples(
            demand.error or 0.0,
            demand.confidence,
            method=method,
            population=population,
            values=values or Range(),
        )

    way = demand.method or "hoeffding"
    plans = [plan(way, anyone, args.range)]
    if not demand.method and args.range is None:
        plans.append(plan("exact", anyone))
    if source is not None and source.available is not None:
        if source.population.size is None:
            plans[0].check_available(source.available, source.population.name)
        else:
            plans.append(plan(way, source.population, args.range))
    if args.json:
        print_json({**plans[0].row(), "alternatives": [one.row() for one in plans[1:]]})
        return 0
    say(plans[0])
    for other in plans[1:]:
        say(f"or {other}")
    if source is not None and source.available is not None:
        _note_available(plans[0], source.available, source.population.name)
    return 0


def _note_available(plan: SamplePlan, available: int, name: str) -> None:
    from radii.statistics import reachable_error

    if plan.samples > available:
        error = reachable_error(
            available, plan.confidence, plan.method, plan.population, plan.values
        )
        say(
            f"{name} has {available} inputs, fewer than {plan.samples}: about what they were drawn "
            f"from they allow ±{error:.3g}; about themselves, all of them leave no error"
        )


def _show_result(args: argparse.Namespace, measured: GlobalRobustness) -> None:
    """One estimate, and where its width comes from."""
    if args.csv is not None:
        columns = ("index", "label", "predicted", "lower", "upper")
        with writing(args.csv):
            write_rows(args.csv, columns, (dataclasses.astuple(row) for row in measured.inputs))
    if args.json:
        print_json(measured.row())
        return
    say(*views.estimate_sentences(measured))


def _show_curve(args: argparse.Namespace) -> int:
    """R at every eps at once, of each network of a finished run."""
    from radii.cli._sources import brackets_of, read_runs
    from radii.statistics import robustness_curve, weakest_arithmetic

    distribution = brackets_of(read_runs([args.curve]))
    curves = {
        name: robustness_curve(part, args.confidence, by_class=args.by_class)
        for name, part in distribution.by_network().items()
    }
    if args.csv is not None:
        rows = ((name, *dataclasses.astuple(p)) for name, curve in curves.items() for p in curve)
        columns = ("network", "eps", "label", "proven", "not_refuted", "low", "high")
        with writing(args.csv):
            write_rows(args.csv, columns, rows)
    if args.json:
        weakest = weakest_arithmetic(distribution)
        arithmetic = None if weakest is None else str(weakest)
        head = {"confidence": args.confidence, "statement": "i.i.d.", "arithmetic": arithmetic}
        print_json({**head, "networks": curves})
        return 0
    print_parts(views.curve_parts(curves, distribution, args.confidence))
    return 0
