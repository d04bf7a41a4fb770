"""`radii plot`: figures for papers."""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from radii.cli._options import add_eps_flag
from radii.cli._output import write_file
from radii.cli._sources import (
    add_claim_flags,
    add_only_flag,
    add_part_flags,
    add_places,
    brackets_of,
    part_choice,
    read_runs,
    selected,
)
from radii.errors import DataError, InputError
from radii.runs import NUMBER, Option, OptionForm, OptionRefusal
from radii.terminal import note, say
from radii.views import FIGURE_KINDS, FigureOptions, figure_kind

if TYPE_CHECKING:
    from radii.statistics import Distribution, Run
    from radii.views import FigureSource


def _width(value: Any) -> float:
    from radii.views import COLUMN_WIDTH, TEXT_WIDTH

    width = {"column": COLUMN_WIDTH, "text": TEXT_WIDTH}.get(value) or float(NUMBER.read(value))
    if not 1.5 <= width <= 40:
        raise OptionRefusal("must be column, text, or from 1.5 to 40 inches")
    return width


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())


WIDTH = Option(
    name="width",
    form=OptionForm("WIDTH", _width, "float"),
    help="column (3.4 in), text (6 in), or inches",
)

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
        "--kind",
        type=_names,
        default=("ecdf",),
        metavar="NAME[,NAME...]",
        help="which figures, or all (ecdf)",
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
        "--format",
        type=_names,
        default=("pdf",),
        metavar="NAME[,NAME...]",
        help="in a folder: pdf, svg, png (pdf)",
    )
    WIDTH.add_to(parser, default="text")
    selection = parser.add_argument_group("what of the results")
    add_only_flag(selection)
    selection.add_argument(
        "--correct-only",
        action="store_true",
        help="leave misclassified inputs out, as the papers do",
    )
    add_claim_flags(selection)
    group = parser.add_argument_group("what is drawn")
    group.add_argument(
        "--by",
        type=_names,
        metavar="NAME[,NAME...]",
        help="a line or box for each network (default), class, target, split, training",
    )
    add_eps_flag(group, "draw lines at these radii (see kinds)")
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
        "--family",
        dest="families",
        type=_names,
        metavar="NAME[,NAME...]",
        help="fit, qq: lognormal, normal, weibull, gamma",
    )


def run(args: argparse.Namespace) -> int:
    from radii.views import caption, save_figure

    is_all = args.kind == ("all",)
    # Figures of statistics are drawn only where they are named.
    kinds = FIGURE_KINDS if is_all else {name: figure_kind(name) for name in args.kind}
    names = (field.name for field in dataclasses.fields(FigureOptions))
    options = FigureOptions(**{name: getattr(args, name) for name in names})
    files = _files(args, kinds)
    runs = read_runs(
        args.places,
        split=args.split,
        distrust=args.distrust,
        choice=part_choice(args),
    )
    distribution = selected(brackets_of(runs), args.only)
    if args.correct_only:
        distribution = distribution.correctly_classified()
    drawn = 0
    for name, kind in kinds.items():
        try:
            figure = kind.draw(distribution, options)
        except InputError as error:
            if not is_all:
                raise DataError(f"{name}: {error}") from None
            note(f"{name} is left out: {error}")
            continue
        if kind.is_of_values(options):
            _note_left_out(name, distribution)
        if kind.eps == "axis":
            _note_beyond(name, figure.axes[0].get_xlim()[1], options.eps)
        for path in files[name]:
            save_figure(figure, path)
            say(path)
            drawn += 1
        text = caption(
            name,
            distribution,
            source=_source(runs),
            eps=options.eps,
            confidence=options.confidence,
        )
        write_file(path.with_suffix(".txt"), text)
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


def _files(args: argparse.Namespace, kinds: Iterable[str]) -> dict[str, list[Path]]:
    """Where each figure goes."""
    output: Path = args.output
    kinds = list(kinds)
    if output.suffix in FIGURE_SUFFIXES and not output.is_dir():
        if len(kinds) > 1:
            raise DataError(f"{output}: one file holds one figure; name a folder for {len(kinds)}")
        return {kinds[0]: [output]}
    for name in args.format:
        if f".{name}" not in FIGURE_SUFFIXES:
            raise DataError(f"format '{name}' is not one of pdf, svg, png")
    if output.suffix and not output.is_dir():
        raise DataError(f"{output}: a figure's file ends in .pdf, .svg or .png")
    return {kind: [output / f"{kind}.{name}" for name in args.format] for kind in kinds}
