"""The figures that `radii plot` draws, each registered once: its line in the help, its caption, and
which options it has a use for.

Nothing heavy is imported here: the functions that draw are looked up in `radii.views` on use.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from radii.errors import DataError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from radii.statistics import Distribution


@dataclass(frozen=True, slots=True)
class FigureOptions:
    """What was asked for; a figure takes from it what it has a use for."""

    by: tuple[str, ...] | None
    eps: tuple[float, ...]
    sort: str
    confidence: float | None
    turnbull: bool
    families: tuple[str, ...] | None
    width: float

    def arguments(self) -> dict[str, Any]:
        """By the names that drawing functions have for them.

        What was not asked for is left out: the functions have their own defaults.
        """
        family = self.families[0] if self.families else None
        names = ("by", "eps", "sort", "confidence", "turnbull", "families")
        values = {**{name: getattr(self, name) for name in names}, "family": family}
        return {name: value for name, value in values.items() if value is not None}


EpsUse = Literal["none", "lines", "axis", "first"]
"""What a figure does with values of eps: nothing, lines, lines on an axis of eps (which may end
before them), or it is at the first one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FigureKind:
    """A figure: `shows` is its line in the help, `caption` says the same in one or two sentences,
    `caption_at_eps` where an eps makes it another figure.

    The function `draws` of `radii.views` gets the distribution, the names of both networks if it is
    `of_two`, what is `fixed`, and the options that it has arguments for. A figure that is
    `of_values` shows a number of each result, and none of results without any answer. `has_band`
    says that a confidence adds a band, `needs_eps` why there must be an eps.
    """

    shows: str
    caption: str
    draws: str
    fixed: Mapping[str, Any] = field(default_factory=dict)
    caption_at_eps: str = ""
    eps: EpsUse = "none"
    has_band: bool = False
    of_values: bool = False
    of_two: bool = False
    needs_eps: str = ""

    def draw(self, distribution: Distribution, options: FigureOptions) -> Figure:
        from radii import views

        if self.needs_eps and not options.eps:
            raise DataError(f"{self.needs_eps}: name it with --eps")
        networks = distribution.networks if self.of_two else ()
        if self.of_two and len(networks) != 2:
            raise DataError(
                f"two networks are compared, not {len(networks)}: choose with --only network=NAME, "
                "twice"
            )
        function = getattr(views, self.draws)
        accepted = inspect.signature(function).parameters
        asked = options.arguments()
        if self.eps == "first":
            asked["eps"] = options.eps[0] if options.eps else None
        arguments = {name: value for name, value in asked.items() if name in accepted}
        figure: Figure = function(
            distribution, *networks, **self.fixed, **arguments, width=options.width
        )
        return figure

    def is_of_values(self, options: FigureOptions) -> bool:
        """With an eps it is a share of inputs, in which every result counts."""
        return self.of_values and not (self.eps == "first" and options.eps)


def figure_kind(name: str) -> FigureKind:
    """The kind of that name; every statistic of the catalogue is one, too."""
    from radii.statistics import CATALOGUE

    if name in FIGURE_KINDS:
        return FIGURE_KINDS[name]
    if name not in CATALOGUE:
        raise DataError(
            f"figure '{name}' is not one of {', '.join(FIGURE_KINDS)}, all, nor a statistic "
            f"({', '.join(CATALOGUE)})"
        )
    shown = CATALOGUE[name]
    return FigureKind(
        shows=shown.about,
        caption=f"{shown.title[0].upper()}{shown.title[1:]}: {shown.about}.",
        draws="draw_statistic",
        fixed={"name": name},
    )


_BAND = "The thick line is the witnessed side, the thin one the proven; what lies between is open."
_MEDIANS = "Each cell is the median of the proven sides."

FIGURE_KINDS: Mapping[str, FigureKind] = {
    "ecdf": FigureKind(
        shows="share of inputs broken within eps, the gap shaded",
        caption=f"Share of inputs that are broken within the radius ε. {_BAND}",
        draws="draw_ecdf",
        eps="axis",
        has_band=True,
    ),
    "robust-accuracy": FigureKind(
        shows="share of inputs that stay right within eps",
        caption=f"Share of inputs that are right and stay right within ε. {_BAND}",
        draws="draw_robust_accuracy",
        eps="axis",
        has_band=True,
    ),
    "satisfaction": FigureKind(
        shows="share for which a property is proven",
        caption=f"Share of inputs for which the property is proven to hold within ε. {_BAND}",
        draws="draw_constraints",
        fixed={"metric": "satisfaction"},
        eps="axis",
        has_band=True,
    ),
    "security": FigureKind(
        shows="share for which no attack breaks a property",
        caption="Share of inputs for which no attack breaks the property within ε.",
        draws="draw_constraints",
        fixed={"metric": "security"},
        eps="axis",
        has_band=True,
    ),
    "box": FigureKind(
        shows="quantiles of the radii, each as an interval",
        caption="Quantiles of the radii. Each is known as an interval: proven below, witnessed "
        "above.",
        draws="draw_boxes",
        eps="lines",
        of_values=True,
    ),
    "gaps": FigureKind(
        shows="how wide brackets stayed",
        caption="How far the witnessed side of an input's bracket lies above the proven side.",
        draws="draw_gaps",
    ),
    "times": FigureKind(
        shows="share of inputs done within a time",
        caption="Share of inputs that were finished within a time.",
        draws="draw_run_times",
    ),
    "histogram": FigureKind(
        shows="shares of radii by bin, as brackets leave them",
        caption="Share of inputs by the bin of their radius. Bars are the most likely shares; the "
        "hatched part lies between the inputs whose radius is surely in the bin and those whose "
        "radius may be. Radii beyond the last bin are named in words.",
        draws="draw_histogram",
        eps="axis",
        has_band=True,
    ),
    "density": FigureKind(
        shows="density of the most likely radii",
        caption="Density of the radii: the most likely distribution of the brackets, smoothed. It "
        "does not show how far brackets leave it open; a histogram does.",
        draws="draw_density",
        eps="axis",
    ),
    "fit": FigureKind(
        shows="fitted families over the data, with their test",
        caption="Fitted families over the distribution of the radii, with the test of the best.",
        draws="draw_fits",
    ),
    "qq": FigureKind(
        shows="quantiles of the data over those of a fitted family",
        caption="Quantiles of the radii over those of the fitted family; on the line they agree.",
        draws="draw_qq",
        of_values=True,
    ),
    "scatter": FigureKind(
        shows="an input's radii on two networks, and Spearman's r",
        caption="Each input's radii on two networks, and Spearman's coefficient.",
        draws="draw_scatter",
        of_values=True,
    ),
    "claims": FigureKind(
        shows="proofs of the first result against witnesses of the second",
        caption="Proofs that one result claims against counterexamples of the other: a point below "
        "the line is a claim that is refuted.",
        draws="draw_claims",
    ),
    "correlations": FigureKind(
        shows="Spearman's r between all networks",
        caption="Spearman's coefficients between the radii of every two networks; a star marks "
        "those that differ from 0 after Holm's correction.",
        draws="draw_correlations",
        of_values=True,
    ),
    "leads": FigureKind(
        shows="which of two networks is more robust at which eps",
        caption="Which of two networks is more robust at which ε: a lead is claimed only where one "
        "is proven beyond what is not refuted of the other.",
        draws="draw_leads",
        eps="axis",
        has_band=True,
        of_two=True,
    ),
    "classes": FigureKind(
        shows="median radius by class and network; recall with --eps",
        caption=f"Radii by class and network; n is the number of inputs. {_MEDIANS}",
        draws="draw_classes",
        caption_at_eps="Proven robust recall by class and network; n is the number of inputs.",
        eps="first",
        of_values=True,
    ),
    "targets": FigureKind(
        shows="median radius by class and target (one-to-one, become)",
        caption=f"Radii by class and target. {_MEDIANS}",
        draws="draw_targets",
        caption_at_eps="Proven share of inputs that are safe from the target, by class and target.",
        eps="first",
        of_values=True,
    ),
    "closest": FigureKind(
        shows="towards which class the inputs of a class break first",
        caption="Towards which class the inputs of each class break first.",
        draws="draw_closest_targets",
    ),
    "ks": FigureKind(
        shows="Kolmogorov-Smirnov matrix of classes; --by network, target",
        caption="Kolmogorov-Smirnov statistic between the proven radii of every two groups. Blue "
        "cells differ at 5 % after Holm's correction over the matrix, pale ones only if each test "
        "is taken alone.",
        draws="draw_ks_matrix",
        of_values=True,
    ),
    "fairness": FigureKind(
        shows="spread of robust recall between classes over eps",
        caption="Largest robust recall of a class less the smallest, over ε. Both sides of the "
        "band are what brackets leave possible.",
        draws="draw_fairness",
        eps="axis",
    ),
    "gains": FigureKind(
        shows="which classes gain from one network to another at --eps",
        caption="What the robust recall of each class gains from the first network to the second.",
        draws="draw_class_gains",
        eps="first",
        of_two=True,
        needs_eps="the gain of a class is at one eps",
    ),
    "convergence": FigureKind(
        shows="estimates of R at --eps from samples of planned size",
        caption="Estimates of robust accuracy at one ε from samples of planned size.",
        draws="draw_convergence",
        eps="first",
        has_band=True,
        needs_eps="robust accuracy is estimated at one eps",
    ),
}
"""By the names that `--kind` takes."""
