"""`radii study`: a paper's tables and figures again, or many networks made and measured."""

from __future__ import annotations

import argparse
import dataclasses
import math
import statistics
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from radii.cli import JOBS, interruptible, print_json
from radii.errors import DataError, ExperimentError, StoreError
from radii.runs import SECONDS, Option
from radii.terminal import note, say

if TYPE_CHECKING:
    from radii_papers.tradeoff import Correlation, Effect, Study, StudyMember


FIGURE_FORMATS = ("png", "pdf", "svg")

DESCRIPTION = (
    "Make the tables and figures of a paper again, beside its own numbers (by the paper's name); "
    "or make and measure many networks, and say what they have in common (tradeoff, show)."
)

EPILOG = """examples:
  radii study distributions --data jair --out distributions
  radii study distributions --data jair --out distributions --only table-5,figure-2
  radii study claims distributions --page holds.md       each claim, and what was found of it
  radii study tradeoff --data digits:train[0:300] --test digits:test --eps 0.05 --samples 20 \\
      --proof-inputs 5 --grid "deterministic width=8,16 activation=relu,tanh epochs=3" \\
      --grid "pruned width=16 strength=0.5 epochs=2" --out small
  radii study show small --measure 1-D --csv networks.csv --figures figures
  radii study show small --least-accuracy 0.1            without those that learned nothing

The same command again continues a study that was cut off; `show` also reads a trade-off study that
still runs. The folder of a paper has index.md, tables (CSV, Markdown, LaTeX) and figures.
"""

PAPER_EPILOG = """examples:
  radii study {name} --out {name}
  radii study {name} --out {name} --scale machine --jobs 2

The same command again continues a study that was cut off. The folder has index.md, tables (CSV,
Markdown, LaTeX) and figures.
"""

TRADEOFF_EPILOG = f"""{EPILOG}
presets:  {{mnist,fashion,cifar10}}-small: below an hour each; -paper: the literature's grids, days
grids:    deterministic, pruned, bayesian, each with depth, width, activation (relu, tanh,
          sigmoid), convolutions or (VGG's) blocks, filters, kernel, seed; rate, epochs, images;
          strength, rounds (pruned); step, steps, samples (bayesian); or count=N of them
"""

_PROOF_TIMEOUT = Option(
    name="proof_timeout", form=SECONDS, help="seconds of the verifier an input (1)"
)
_STUDY_SETTINGS: dict[str, tuple[Callable[[str], Any], str, str]] = {
    "data": (str, "SPEC", "images to train on, such as mnist:train[0:5000]"),
    "test": (str, "SPEC", "images to measure on, such as mnist:test"),
    "eps": (str, "EPS", "radius of the balls, such as 0.05 or 8/255"),
    "gamma": (float, "G", "of R(gamma): the change of a probability that breaks (0.5)"),
    "error": (float, "E", "of R and D as attacked (0.05)"),
    "samples": (int, "N", "inputs attacked, in place of an error"),
    "confidence": (float, "C", "of all intervals (0.95)"),
    "attack": (str, "NAME", "fgsm (default) or pgd"),
    "proof_inputs": (int, "N", "inputs given to the verifier (50); 0: no proofs"),
    "proof_timeout": (_PROOF_TIMEOUT.parse, "S", _PROOF_TIMEOUT.help),
    "verifier": (str, "NAME", "native"),
    "seed": (int, "N", "of all that is drawn (0)"),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for name, (title, _) in _papers().items():
        _add_paper(commands, name, title)
    _add_claims(commands)
    _add_baseline(commands)
    _add_training(commands)
    _add_tradeoff(commands)
    show = commands.add_parser(
        "show",
        help="tables and figures of a study, finished or not",
        epilog=EPILOG,
    )
    show.add_argument("directory", type=Path, metavar="DIR", help="where a study is kept")
    show.add_argument("--confidence", type=float, metavar="C", help="of correlations (0.95)")
    show.add_argument(
        "--least-accuracy", type=float, metavar="A", help="leave out networks that learned less"
    )
    _add_output(show)
    show.set_defaults(run=_show)


def _papers() -> dict[str, tuple[str, str]]:
    from radii_papers._registry import PAPERS

    return PAPERS


def _add_claims(commands: Any) -> None:
    claims = commands.add_parser(
        "claims",
        help="what holds of the papers' claims, from their studies",
        description=(
            "Every claim of the papers, with its verdict and the evidence for it. Verdicts are "
            "made anew from the evidence, by the rules on the page."
        ),
        epilog=EPILOG,
    )
    claims.add_argument(
        "studies", nargs="+", type=Path, metavar="DIR|PAGE.md", help="of radii study PAPER"
    )
    claims.add_argument("--page", type=Path, metavar="FILE.md", help="write the page here")
    claims.set_defaults(run=_claims)


def _add_baseline(commands: Any) -> None:
    from radii_papers import _baseline_command as command

    purpose = "the literature's methods for ensembles of classifiers"
    baseline = commands.add_parser(
        "baseline",
        help=purpose,
        description=f"{purpose[0].upper()}{purpose[1:]}, for comparison with radii ensemble.",
        epilog=command.EPILOG,
    )
    command.add_arguments(baseline)
    baseline.set_defaults(run=command.run)


def _add_training(commands: Any) -> None:
    from radii_papers import _training_commands as command

    prune = commands.add_parser(
        "prune",
        help="train a network and prune it by magnitude, in rounds",
        epilog=command.PRUNE_EPILOG,
    )
    command.add_prune_arguments(prune)
    prune.set_defaults(run=command.run_prune)
    bayesian = commands.add_parser(
        "bayesian",
        help="sample the posterior of a network's weights",
        epilog=command.BAYESIAN_EPILOG,
    )
    command.add_bayesian_arguments(bayesian)
    bayesian.set_defaults(run=command.run_bayesian)


def _claims(args: argparse.Namespace) -> int:
    from radii_papers._claims import claims_lines, read_claims, write_claims

    papers = read_claims(args.studies)
    if args.page is None:
        say(*claims_lines(papers))
    else:
        write_claims(papers, args.page)
        say(f"{sum(len(each.claims) for each in papers)} claims: {args.page}")
    return 0


def _add_paper(commands: Any, name: str, title: str) -> None:
    paper = commands.add_parser(
        name,
        help=title,
        description=f"Make the tables and figures of the paper again: {title}.",
        epilog=PAPER_EPILOG.format(name=name),
    )
    paper.add_argument("--out", required=True, type=Path, metavar="DIR", help="where it is kept")
    paper.add_argument(
        "--scale",
        choices=("small", "machine", "full"),
        default="small",
        help="from published files (small), as much as this machine can, or as the paper",
    )
    paper.add_argument("--data", type=Path, metavar="FOLDER", help="the paper's published files")
    paper.add_argument(
        "--only", metavar="NAME,...", help="of these steps alone, such as table-5,figure-2"
    )
    paper.add_argument(
        "--page", type=Path, metavar="FILE.md", help="write the page here as well, with figures"
    )
    JOBS.add_to(paper)
    paper.set_defaults(run=_paper, paper=name)


def _paper(args: argparse.Namespace) -> int:
    from radii.runs import default_jobs
    from radii_papers._page import paper_agreement, write_pages
    from radii_papers._progress import StudyBar
    from radii_papers._registry import paper_study
    from radii_papers._running import run_paper
    from radii_papers._steps import StudyScale, StudySettings

    study, scale = paper_study(args.paper), StudyScale(args.scale)
    only = [name.strip() for name in (args.only or "").split(",") if name.strip()]
    with interruptible(f"{args.out} keeps it"), StudyBar() as bar:
        settings = StudySettings(scale, args.data, args.out, args.jobs or default_jobs(), bar)
        records = run_paper(study, args.out, settings, only)
    page = write_pages(study, records, scale, args.out, args.page)
    agreeing, compared = paper_agreement(records)
    say(f"{len(records)} of {len(study.steps)} steps are made: {page}")
    say(f"{agreeing} of {compared} numbers agree with the paper as far as it prints digits")
    return 0


def _add_tradeoff(commands: Any) -> None:
    tradeoff = commands.add_parser(
        "tradeoff",
        help="robustness against accuracy",
        description="Train the networks of a grid and measure accuracy, R and D of each.",
        epilog=TRADEOFF_EPILOG,
    )
    tradeoff.add_argument("--preset", metavar="NAME", help="such as mnist-small; see below")
    tradeoff.add_argument("--description", type=Path, metavar="FILE", help="a study in TOML")
    tradeoff.add_argument(
        "--grid", action="append", default=[], metavar="GRID", help="networks to add; see below"
    )
    for name, (kind, metavar, text) in _STUDY_SETTINGS.items():
        flag = f"--{name.replace('_', '-')}"
        tradeoff.add_argument(flag, type=kind, metavar=metavar, help=text)
    tradeoff.add_argument("--jobs", type=int, metavar="N", help="networks at once (all cores)")
    tradeoff.add_argument("--out", required=True, type=Path, metavar="DIR", help="where it is kept")
    _add_output(tradeoff)
    tradeoff.set_defaults(run=_tradeoff)


def _add_output(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--measure", metavar="NAME", default="R", help="of effects: R (default), 'R(gamma)', ..."
    )
    parser.add_argument("--csv", type=Path, metavar="FILE", help="a line for each network")
    parser.add_argument("--figures", type=Path, metavar="DIR", help="draw all figures there")
    parser.add_argument("--format", default="png", metavar="SUFFIX", help="png (default), pdf, svg")
    parser.add_argument("--json", action="store_true", help="print everything as JSON")


def _tradeoff(args: argparse.Namespace) -> int:
    from radii.processes import usable_cores
    from radii.runs import ProgressBar
    from radii_papers.tradeoff import Study, run_study

    _check_output(args)
    study = Study.from_tables(_tables(args))
    jobs = usable_cores() if args.jobs is None else args.jobs
    with interruptible(f"{args.out} keeps it"), ProgressBar() as bar:
        members = run_study(study, args.out, jobs=jobs, progress=bar.counted)
    _show_study(args, study, members, study.confidence)
    return 0


def _show(args: argparse.Namespace) -> int:
    from radii_papers.tradeoff import Study, read_members

    _check_output(args)
    study = Study.read(args.directory)
    confidence = study.confidence if args.confidence is None else args.confidence
    members = _accurate_members(read_members(args.directory), args.least_accuracy)
    _show_study(args, study, members, confidence)
    return 0


def _accurate_members(members: Sequence[StudyMember], least: float | None) -> Sequence[StudyMember]:
    """Those with this accuracy; how many are left out is said."""
    if least is None:
        return members
    if not 0 <= least <= 1:
        raise DataError(f"--least-accuracy {least:g} must be between 0 and 1")
    kept = [member for member in members if (member.accuracy or 0.0) >= least]
    if not kept:
        raise DataError(f"no network of the study has an accuracy of {least:g}")
    if len(kept) < len(members):
        left = len(members) - len(kept)
        note(f"{left} networks below accuracy {least:g} are left out")
    return kept


def _tables(args: argparse.Namespace) -> dict[str, Any]:
    """A preset or a file, with flags in place of its settings and beside its grids."""
    from radii_papers.tradeoff import preset_tables, read_tables

    if args.preset is not None and args.description is not None:
        raise ExperimentError("--preset and --description: a study is one of them")
    tables: dict[str, Any] = {}
    if args.preset is not None:
        tables = preset_tables(args.preset)
    elif args.description is not None:
        tables = read_tables(args.description)
    for name in _STUDY_SETTINGS:
        if getattr(args, name) is not None:
            tables[name] = getattr(args, name)
    for text in args.grid:
        kind, grid = _grid(text)
        held = tables.setdefault(kind, [])
        if not isinstance(held, list):
            raise ExperimentError(f"'{kind}' must be a list of tables: [[{kind}]]")
        held.append(grid)
    return tables


def _grid(text: str) -> tuple[str, dict[str, Any]]:
    """`KIND name=value,value ...`."""
    from radii_papers.tradeoff import RECIPE_KINDS

    kind, *words = text.split() or [""]
    if kind not in RECIPE_KINDS:
        raise ExperimentError(f"--grid '{text}' must begin with one of {', '.join(RECIPE_KINDS)}")
    grid: dict[str, Any] = {}
    for word in words:
        name, equals, values = word.partition("=")
        if not equals or not values or name in grid:
            raise ExperimentError(
                f"--grid '{text}': '{word}' is not of the form name=value,value, once for a name"
            )
        parsed = [_parse_value(value) for value in values.split(",")]
        grid[name] = parsed[0] if name == "count" and len(parsed) == 1 else parsed
    return kind, grid


def _parse_value(text: str) -> int | float | str:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def _check_output(args: argparse.Namespace) -> None:
    """Refuse what could not be shown, before hours of work."""
    from radii_papers.tradeoff import STUDY_MEASURES

    if args.measure not in STUDY_MEASURES:
        raise DataError(f"measure '{args.measure}' is not one of {', '.join(STUDY_MEASURES)}")
    if args.format not in FIGURE_FORMATS:
        raise DataError(f"format '{args.format}' is not one of {', '.join(FIGURE_FORMATS)}")


def _show_study(
    args: argparse.Namespace, study: Study, members: Sequence[StudyMember], confidence: float
) -> None:
    """Tables or JSON on standard output; files where asked for."""
    from radii_papers.tradeoff import correlations, effects, write_csv

    correlated = correlations(members, confidence=confidence, seed=study.seed)
    caused = effects(members, args.measure, seed=study.seed)
    if args.csv is not None:
        write_csv(members, args.csv)
    if args.figures is not None:
        _draw(args.figures, args.format, members, args.measure, caused)
    if args.json:
        print_json(
            {
                "study": study.identity,
                "networks": [member.row() for member in members],
                "correlations": [
                    {**dataclasses.asdict(each), "sign": each.sign} for each in correlated
                ],
                "effects": [_effect_row(effect) for effect in caused],
            }
        )
        return
    _print_study_head(study, members)
    _print_networks(members)
    _print_correlations(correlated, confidence)
    _print_effects(caused, args.measure)


def _effect_row(effect: Effect) -> dict[str, Any]:
    groups = [{"value": name, "networks": list(values)} for name, values in effect.groups]
    return {**dataclasses.asdict(effect), "groups": groups}


def _print_study_head(study: Study, members: Sequence[StudyMember]) -> None:
    kinds = Counter(member.recipe.kind for member in members)
    counts = ", ".join(f"{count} {kind}" for kind, count in kinds.items()) or "none"
    say(f"{len(members)} of {len(study.recipes)} networks are finished: {counts}")
    converged = [m.converged for m in members if m.converged is not None]
    if converged:
        say(f"{sum(converged)} of {len(converged)} Bayesian networks converged; others do not "
            "count")  # fmt: skip
    for member in members:
        if member.failure:
            say(f"{member.recipe.name} failed: {member.failure}")
    measured = [member.robustness for member in members if member.robustness is not None]
    if measured:
        say(
            f"trained on {study.data}; R and D of {study.test} within Linf {study.eps}, by "
            f"{study.attack} on {measured[0].inputs} inputs without replacement, "
            f"{100 * study.confidence:g} % confidence (finite-population statement, each network "
            "by itself); R is at most what the attack sees, D at least"
        )


def _print_networks(members: Sequence[StudyMember]) -> None:
    width = max((len(member.recipe.name) for member in members), default=7)
    say("", f"{'network':{width}}  accuracy  R attacked           D attacked           "
        "proven R  not refuted  R, interval     gap")  # fmt: skip
    for member in members:
        if member.accuracy is None:
            continue
        mark = " (not converged)" if member.converged is False else ""
        say(
            f"{member.recipe.name:{width}}  {member.accuracy:8.4f}  "
            f"{_value_text(member.robustness)}  "
            f"{_value_text(member.change)}  {_proven(member)}{mark}")  # fmt: skip


def _value_text(value: Any) -> str:
    if value is None:
        return " " * 19
    return f"{value.most:.3f} [{value.low:.3f}, {value.high:.3f}]"[:22].ljust(19)


def _proven(member: StudyMember) -> str:
    value, gap = member.proven_robustness, member.gap
    if value is None or gap is None:
        return f"{'-':>8}  {'-':>11}  {'-':<14}  {'-':>5}"
    return (
        f"{value.least:8.3f}  {value.most:11.3f}  [{value.low:.3f}, {value.high:.3f}]  {gap:5.3f}"
    )


def _print_correlations(correlated: Sequence[Correlation], confidence: float) -> None:
    if not correlated:
        say("", "too few networks of any kind for a correlation")
        return
    say("", f"correlation over networks; {100 * confidence:g} % intervals by bootstrap and by "
        "Fisher's transformation; p by permutation")  # fmt: skip
    say(f"{'kind':13}  {'measure':8}  {'with':8}  {'method':8}  {'n':>3}  {'value':>6}  "
        f"{'bootstrap':16}  {'Fisher':16}  {'p':>6}  sign")  # fmt: skip
    for each in correlated:
        say(f"{each.kind:13}  {each.measure:8}  {each.along:8}  {each.method:8}  "
            f"{each.networks:3}  {_signed(each.value):>6}  "
            f"{_signed_interval(each.low, each.high)}  "
            f"{_signed_interval(each.fisher_low, each.fisher_high)}  {each.p_value:6.4f}  "
            f"{each.sign}")  # fmt: skip


def _signed(value: float) -> str:
    return "-" if math.isnan(value) else f"{value:+.2f}"


def _signed_interval(low: float, high: float) -> str:
    return f"[{_signed(low)}, {_signed(high)}]".ljust(16)


def _print_effects(caused: Sequence[Effect], measure: str) -> None:
    if not caused:
        return
    say("", f"median {measure} by hyper-parameter; p of Kruskal and Wallis' test by permutation, "
        "and Holm's within a kind")  # fmt: skip
    for effect in caused:
        medians = ", ".join(
            f"{name}: {statistics.median(values):.3f}" for name, values in effect.groups
        )
        say(f"{effect.kind:13}  {effect.parameter:12}  p {effect.p_value:.4f}  Holm "
            f"{effect.adjusted:.4f}  {medians}")  # fmt: skip


def _draw(
    directory: Path,
    suffix: str,
    members: Sequence[StudyMember],
    measure: str,
    caused: Sequence[Effect],
) -> None:
    """The scatter, the boxes of each kind, and the gaps to proofs; those that there are."""
    from radii.views import save_figure
    from radii_papers.figures import (
        TradeoffPoint,
        draw_hyper_parameters,
        draw_proof_gaps,
        draw_tradeoff,
    )
    from radii_papers.tradeoff import RECIPE_KINDS, STUDY_MEASURES, measure_ends

    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StoreError(f"{directory}: cannot be made ({error.strerror})") from None
    series = {
        _series(kind, is_counted): [
            TradeoffPoint(member.accuracy or 0.0, *ends)
            for member in members
            if member.recipe.kind == kind
            and member.accuracy is not None
            and member.is_counted is is_counted
            and (ends := measure_ends(member, measure)) is not None
        ]
        for kind in RECIPE_KINDS
        for is_counted in (True, False)
    }
    shown = {name: points for name, points in series.items() if points}
    figure = draw_tradeoff(shown, STUDY_MEASURES[measure])
    save_figure(figure, directory / f"tradeoff.{suffix}")
    for kind in RECIPE_KINDS:
        boxes = {effect.parameter: dict(effect.groups) for effect in caused if effect.kind == kind}
        if boxes:
            figure = draw_hyper_parameters(boxes, measure)
            save_figure(figure, directory / f"effects-{kind}.{suffix}")
    gaps = {
        kind: [
            (member.proven_robustness.least, member.unbroken)
            for member in members
            if member.recipe.kind == kind
            and member.proven_robustness is not None
            and member.unbroken is not None
        ]
        for kind in RECIPE_KINDS
    }
    if any(gaps.values()):
        figure = draw_proof_gaps({kind: pairs for kind, pairs in gaps.items() if pairs})
        save_figure(figure, directory / f"proof-gaps.{suffix}")


def _series(kind: str, is_counted: bool) -> str:
    return kind if is_counted else f"{kind}, not converged"
