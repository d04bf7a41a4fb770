"""`radii plot`: figures for papers."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from radii.cli._options import eps_values
from radii.cli._output import writing
from radii.cli._sources import add_only_flag, add_part_flags, part_choice
from radii.errors import DataError, InputError
from radii.terminal import note, say

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from radii.statistics import Distribution, Run
    from radii.views import FigureSource, Metric


@dataclass(frozen=True, slots=True)
class FigureOptions:
    """What the flags say; a figure takes from it what it has a use for."""

    by: tuple[str, ...] | None
    eps: tuple[float, ...]
    sort: str
    confidence: float | None
    turnbull: bool
    families: tuple[str, ...] | None
    width: float

    @property
    def groups(self) -> tuple[str, ...]:
        return self.by or ("network",)

    @property
    def first_eps(self) -> float | None:
        return self.eps[0] if self.eps else None


def _never(_options: FigureOptions) -> bool:
    return False


def _always(_options: FigureOptions) -> bool:
    return True


def _without_eps(options: FigureOptions) -> bool:
    """With an eps it is a share of inputs, in which every result counts."""
    return not options.eps


@dataclass(frozen=True, slots=True)
class FigureKind:
    """A figure, and what it shows in a few words. Those over eps have lines at --eps.

    A figure that `is_of_values` shows a number of each result, and none of results without any
    answer.
    """

    shows: str
    draw: Callable[[Distribution, FigureOptions], Figure]
    is_over_eps: bool = False
    is_of_values: Callable[[FigureOptions], bool] = _never


def _drawn_by(name: str, **options: str) -> Callable[[Distribution, FigureOptions], Figure]:
    """Draws with a function of `radii.views`: each argument, and the option that gives it."""

    def draw(distribution: Distribution, given: FigureOptions) -> Figure:
        from radii import views

        arguments = {argument: getattr(given, option) for argument, option in options.items()}
        figure: Figure = getattr(views, name)(distribution, width=given.width, **arguments)
        return figure

    return draw


def _constraints(metric: Metric) -> Callable[[Distribution, FigureOptions], Figure]:
    def draw(distribution: Distribution, options: FigureOptions) -> Figure:
        from radii.views import draw_constraints

        return draw_constraints(
            distribution,
            metric,
            by=options.groups,
            eps=options.eps,
            confidence=options.confidence,
            width=options.width,
        )

    return draw


def _boxes(distribution: Distribution, options: FigureOptions) -> Figure:
    from radii.views import draw_boxes

    sort = options.sort
    if sort not in ("minimum", "median", "none"):
        raise DataError(f"boxes are sorted by minimum, median or none, not '{sort}'")
    return draw_boxes(
        distribution,
        by=options.groups,
        sort=sort,  # type: ignore[arg-type]  # checked above
        eps=options.eps,
        width=options.width,
    )


def _qq(distribution: Distribution, options: FigureOptions) -> Figure:
    from radii.views import draw_qq

    family = options.families[0] if options.families else "lognormal"
    return draw_qq(distribution, family, by=options.groups, width=options.width)


def _claims(distribution: Distribution, options: FigureOptions) -> Figure:
    from radii.views import draw_claims

    pairs: dict[str, list[str]] = {}
    for name in distribution.networks:
        pairs.setdefault(name.split(" (")[0], []).append(name)
    twice = {plain: names for plain, names in pairs.items() if len(names) == 2}
    if not twice:
        raise DataError("claims of one result are held against another: give two, of one network")
    return draw_claims(
        distribution,
        [(names[0], names[1]) for names in twice.values()],
        names=list(twice),
        width=options.width,
    )


def _leads(distribution: Distribution, options: FigureOptions) -> Figure:
    from radii.views import draw_leads

    first, second = _two_networks(distribution)
    return draw_leads(
        distribution,
        first,
        second,
        eps=options.eps,
        confidence=options.confidence,
        width=options.width,
    )


def _ks(distribution: Distribution, options: FigureOptions) -> Figure:
    from radii.views import draw_ks_matrix

    by, *each = options.by or ("class",)
    return draw_ks_matrix(distribution, by, each=each[0] if each else None, width=options.width)


def _gains(distribution: Distribution, options: FigureOptions) -> Figure:
    from radii.views import draw_class_gains

    eps = options.first_eps
    if eps is None:
        raise DataError("the gain of a class is at one eps: name it with --eps")
    return draw_class_gains(distribution, *_two_networks(distribution), eps, width=options.width)


def _convergence(distribution: Distribution, options: FigureOptions) -> Figure:
    from radii.views import draw_convergence

    eps = options.first_eps
    if eps is None:
        raise DataError("robust accuracy is estimated at one eps: name it with --eps")
    return draw_convergence(
        distribution,
        eps,
        by=options.groups,
        confidence=options.confidence or 0.95,
        width=options.width,
    )


def _two_networks(distribution: Distribution) -> tuple[str, str]:
    names = distribution.networks
    if len(names) != 2:
        raise DataError(
            f"two networks are compared, not {len(names)}: choose with --only network=NAME, twice"
        )
    return names[0], names[1]


FIGURE_KINDS: dict[str, FigureKind] = {
    "ecdf": FigureKind(
        "share of inputs broken within eps, the gap shaded",
        _drawn_by(
            "draw_ecdf", by="groups", eps="eps", confidence="confidence", turnbull="turnbull"
        ),
        True,
    ),
    "robust-accuracy": FigureKind(
        "share of inputs that stay right within eps",
        _drawn_by("draw_robust_accuracy", by="groups", eps="eps", confidence="confidence"),
        True,
    ),
    "satisfaction": FigureKind(
        "share for which a property is proven", _constraints("satisfaction"), True
    ),
    "security": FigureKind(
        "share for which no attack breaks a property", _constraints("security"), True
    ),
    "box": FigureKind("quantiles of the radii, each as an interval", _boxes, is_of_values=_always),
    "gaps": FigureKind("how wide brackets stayed", _drawn_by("draw_gaps", by="groups")),
    "times": FigureKind(
        "share of inputs done within a time", _drawn_by("draw_run_times", by="groups")
    ),
    "histogram": FigureKind(
        "shares of radii by bin, as brackets leave them",
        _drawn_by("draw_histogram", by="groups", eps="eps", confidence="confidence"),
        True,
    ),
    "density": FigureKind(
        "density of the most likely radii", _drawn_by("draw_density", by="groups", eps="eps"), True
    ),
    "fit": FigureKind(
        "fitted families over the data, with their test",
        _drawn_by("draw_fits", by="groups", families="families"),
    ),
    "qq": FigureKind(
        "quantiles of the data over those of a fitted family", _qq, is_of_values=_always
    ),
    "scatter": FigureKind(
        "an input's radii on two networks, and Spearman's r",
        _drawn_by("draw_scatter"),
        is_of_values=_always,
    ),
    "claims": FigureKind("proofs of the first result against witnesses of the second", _claims),
    "correlations": FigureKind(
        "Spearman's r between all networks", _drawn_by("draw_correlations"), is_of_values=_always
    ),
    "leads": FigureKind("which of two networks is more robust at which eps", _leads, True),
    "classes": FigureKind(
        "median radius by class and network; recall with --eps",
        _drawn_by("draw_classes", eps="first_eps"),
        is_of_values=_without_eps,
    ),
    "targets": FigureKind(
        "median radius by class and target (one-to-one, become)",
        _drawn_by("draw_targets", eps="first_eps"),
        is_of_values=_without_eps,
    ),
    "closest": FigureKind(
        "towards which class the inputs of a class break first", _drawn_by("draw_closest_targets")
    ),
    "ks": FigureKind(
        "Kolmogorov-Smirnov matrix of classes; --by network, target", _ks, is_of_values=_always
    ),
    "fairness": FigureKind(
        "spread of robust recall between classes over eps",
        _drawn_by("draw_fairness", eps="eps"),
        True,
    ),
    "gains": FigureKind("which classes gain from one network to another at --eps", _gains),
    "convergence": FigureKind("estimates of R at --eps from samples of planned size", _convergence),
}

FIGURE_SUFFIXES = (".pdf", ".svg", ".png")

FIRST = "kind output format width by eps"

DESCRIPTION = (
    "Figures from runs, published files, or both together. Beside each is its caption, a text file."
)

EPILOG = (
    "kinds:\n"
    + "\n".join(f"  {name:<16} {kind.shows}" for name, kind in FIGURE_KINDS.items())
    + """

examples:
  radii plot results --kind ecdf -o ecdf.pdf
  radii plot results published.csv --kind ecdf,box,scatter -o figures
  radii plot published.csv --kind box --sort minimum --eps 0.012,0.04 -o box.svg
  radii plot published.csv --kind ecdf --correct-only --confidence 0.95 --turnbull -o ecdf.png
  radii plot published.csv --kind leads --only network=a --only network=b -o leads.pdf
  radii plot results --kind robust-accuracy --by class --width column -o recall.pdf
  radii plot train test --kind box,ecdf --by network,split -o figures --format pdf,png
  radii plot results --kind all -o figures            every figure that the results allow
"""
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "places", nargs="+", type=Path, metavar="DIR", help="the --out of a run, or a file"
    )
    add_part_flags(parser)
    parser.add_argument(
        "--kind", default="ecdf", metavar="NAME[,NAME...]", help="which figures, or all (ecdf)"
    )
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        default=Path("figures"),
        metavar="DIR|FILE",
        help="a folder, or one file ending in .pdf, .svg or .png (figures)",
    )
    parser.add_argument(
        "--format", default="pdf", metavar="NAME[,NAME...]", help="in a folder: pdf, svg, png (pdf)"
    )
    parser.add_argument(
        "--width", default="text", metavar="WIDTH", help="column (3.4 in), text (6 in), or inches"
    )
    _add_selection(parser.add_argument_group("what of the results"))
    _add_details(parser.add_argument_group("what is drawn"))


def _add_selection(group: Any) -> None:
    add_only_flag(group)
    group.add_argument(
        "--correct-only",
        action="store_true",
        help="leave misclassified inputs out, as the papers do",
    )
    group.add_argument(
        "--split", default="", help="split of the inputs, where the results do not name it"
    )
    group.add_argument(
        "--distrust",
        action="store_true",
        help="drop published proofs that their own row refutes",
    )


def _add_details(group: Any) -> None:
    group.add_argument(
        "--by",
        metavar="NAME[,NAME...]",
        help="a line or box for each network (default), class, target, split, training",
    )
    group.add_argument("--eps", metavar="E[,E...]", help="draw lines at these radii (see kinds)")
    group.add_argument(
        "--sort",
        default="none",
        metavar="ORDER",
        help="sort boxes by minimum, median or none (none)",
    )
    group.add_argument(
        "--confidence", type=float, metavar="LEVEL", help="add a band for all inputs, such as 0.95"
    )
    group.add_argument(
        "--turnbull", action="store_true", help="ecdf: add the most likely distribution"
    )
    group.add_argument(
        "--family", metavar="NAME[,NAME...]", help="fit, qq: lognormal, normal, weibull, gamma"
    )


def run(args: argparse.Namespace) -> int:
    from radii.cli._sources import read_runs, selected
    from radii.statistics import Distribution
    from radii.views import caption, save_figure

    kinds = _kinds(args.kind)
    options = _options(args)
    files = _files(args, kinds)
    runs = read_runs(
        args.places,
        split=args.split,
        distrust=args.distrust,
        joins_splits=True,
        choice=part_choice(args),
    )
    distribution = selected(Distribution.union(map(Distribution.from_run, runs)), args.only)
    if args.correct_only:
        distribution = distribution.correctly_classified()
    drawn = 0
    for kind in kinds:
        try:
            figure = FIGURE_KINDS[kind].draw(distribution, options)
        except InputError as error:
            if args.kind != "all":
                raise DataError(f"{kind}: {error}") from None
            note(f"{kind} is left out: {error}")
            continue
        if FIGURE_KINDS[kind].is_of_values(options):
            _note_left_out(kind, distribution)
        if FIGURE_KINDS[kind].is_over_eps:
            _note_beyond(kind, figure.axes[0].get_xlim()[1], options.eps)
        for path in files[kind]:
            _make_folder(path.parent)
            save_figure(figure, path)
            say(path)
            drawn += 1
        told = caption(
            kind,
            distribution,
            source=_source(runs),
            eps=options.eps,
            confidence=options.confidence,
        )
        with writing(path.with_suffix(".txt"), DataError):
            path.with_suffix(".txt").write_text(told, "utf-8")
    if not drawn:
        raise DataError("no figure could be drawn from these results")
    return 0


def _source(runs: Sequence[Run]) -> FigureSource:
    """What the results say of their data and norms, once each."""
    from radii.views import FigureSource

    return FigureSource(
        data=tuple(dict.fromkeys(run.settings.source for run in runs if run.settings.source)),
        norms=tuple(
            dict.fromkeys(run.settings.norm.value for run in runs if run.settings.norm is not None)
        ),
    )


def _note_left_out(kind: str, distribution: Distribution) -> None:
    """Results without any answer, of which a figure of values shows nothing."""
    counts = {name: part.unsolved for name, part in distribution.by_network().items()}
    unsolved = ", ".join(f"{count} of {name}" for name, count in counts.items() if count)
    if unsolved:
        note(f"{kind}: results without an answer are left out: {unsolved}")


def _note_beyond(kind: str, end: float, eps: tuple[float, ...]) -> None:
    """Lines that were asked for and are not there: nothing was found so far out."""
    beyond = ", ".join(f"{value:g}" for value in eps if value > end)
    if beyond:
        note(
            f"{kind}: --eps {beyond} lies beyond every radius of these results; the axis "
            f"ends at {end:.3g}, and no line is drawn there"
        )


def _kinds(text: str) -> list[str]:
    if text == "all":
        return list(FIGURE_KINDS)
    names = _split_names(text)
    for name in names:
        if name not in FIGURE_KINDS:
            raise DataError(f"figure '{name}' is not one of {', '.join(FIGURE_KINDS)}, all")
    return names


def _files(args: argparse.Namespace, kinds: list[str]) -> dict[str, list[Path]]:
    """Where each figure goes."""
    output: Path = args.output
    if output.suffix in FIGURE_SUFFIXES and not output.is_dir():
        if len(kinds) > 1:
            raise DataError(f"{output}: one file holds one figure; name a folder for {len(kinds)}")
        return {kinds[0]: [output]}
    formats = _split_names(args.format)
    for name in formats:
        if f".{name}" not in FIGURE_SUFFIXES:
            raise DataError(f"format '{name}' is not one of pdf, svg, png")
    if output.suffix and not output.is_dir():
        raise DataError(f"{output}: a figure's file ends in .pdf, .svg or .png")
    return {kind: [output / f"{kind}.{name}" for name in formats] for kind in kinds}


def _options(args: argparse.Namespace) -> FigureOptions:
    from radii.views import COLUMN_WIDTH, TEXT_WIDTH

    widths = {"column": COLUMN_WIDTH, "text": TEXT_WIDTH}
    width = widths.get(args.width) or _parse_length("--width", args.width)
    if not 1.5 <= width <= 40:
        raise DataError(f"--width {args.width}: a figure is between 1.5 and 40 inches wide")
    return FigureOptions(
        by=tuple(_split_names(args.by)) if args.by else None,
        eps=eps_values(args.eps),
        sort=args.sort,
        confidence=args.confidence,
        turnbull=args.turnbull,
        families=tuple(_split_names(args.family)) if args.family else None,
        width=width,
    )


def _split_names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def _parse_length(flag: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        raise DataError(f"{flag} {text} is not a number") from None
    if not 0 <= value < float("inf"):
        raise DataError(f"{flag} {text} must be a finite number >= 0")
    return value


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DataError(f"{folder}: cannot be made ({error.strerror or error})") from None
