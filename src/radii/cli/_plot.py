"""`radii plot`: figures for papers."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from radii.cli._options import eps_values
from radii.cli._output import writing
from radii.cli._sources import (
    add_claim_flags,
    add_only_flag,
    add_part_flags,
    add_places,
    part_choice,
)
from radii.errors import DataError, InputError
from radii.terminal import note, say
from radii.views import FIGURE_KINDS, FigureKind, FigureOptions, figure_kind

if TYPE_CHECKING:
    from radii.statistics import Distribution, Run
    from radii.views import FigureSource


FIGURE_SUFFIXES = (".pdf", ".svg", ".png")

FIRST = "kind output format width by eps"

DESCRIPTION = (
    "Figures from runs, published files, or both together. Beside each is its caption, a text file."
)

EPILOG = (
    "kinds:\n"
    + "\n".join(f"  {name:<16} {kind.shows}" for name, kind in FIGURE_KINDS.items())
    + """
  STATISTIC        a mark for each group: mean_gap, lowest or any other of radii export's

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
    add_places(parser)
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
    add_claim_flags(group)


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
    for name, kind in kinds.items():
        try:
            figure = kind.draw(distribution, options)
        except InputError as error:
            if args.kind != "all":
                raise DataError(f"{name}: {error}") from None
            note(f"{name} is left out: {error}")
            continue
        if kind.is_of_values(options):
            _note_left_out(name, distribution)
        if kind.eps == "axis":
            _note_beyond(name, figure.axes[0].get_xlim()[1], options.eps)
        for path in files[name]:
            _make_folder(path.parent)
            save_figure(figure, path)
            say(path)
            drawn += 1
        told = caption(
            name,
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


def _kinds(text: str) -> dict[str, FigureKind]:
    """By name; figures of statistics are drawn where they are named."""
    if text == "all":
        return dict(FIGURE_KINDS)
    return {name: figure_kind(name) for name in _split_names(text)}


def _files(args: argparse.Namespace, kinds: Iterable[str]) -> dict[str, list[Path]]:
    """Where each figure goes."""
    output: Path = args.output
    kinds = list(kinds)
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
