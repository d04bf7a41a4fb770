"""The figures that `radii plot` draws, by name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from radii.errors import DataError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from radii.distributions import Distribution
    from radii.plots import Metric


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

    A figure that `is_of_values` shows one number a result, and none of results without any answer.
    """

    shows: str
    draw: Callable[[Distribution, FigureOptions], Figure]
    is_over_eps: bool = False
    is_of_values: Callable[[FigureOptions], bool] = _never


def _ecdf(distribution: Distribution, options: FigureOptions) -> Figure:
    from radii.plots import draw_ecdf

    return draw_ecdf(
        distribution,
        by=options.groups,
        eps=options.eps,
        confidence=options.confidence,
        turnbull=options.turnbull,
        width=options.width,
    )


def _robust_accuracy(distribution: Distribution, options: FigureOptions) -> Figure:
    from radii.plots import draw_robust_accuracy

    return draw_robust_accuracy(
        distribution,
        by=options.groups,
        eps=options.eps,
        confidence=options.confidence,
        width=options.width,
    )


def _constraints(metric: Metric) -> Callable[[Distribution, FigureOptions], Figure]:
    def draw(distribution: Distribution, options: FigureOptions) -> Figure:
        from radii.plots import draw_constraints

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
    from radii.plots import draw_boxes

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


def _gaps(distribution: Distribution, options: FigureOptions) -> Figure:
    from radii.plots import draw_gaps

    return draw_gaps(distribution, by=options.groups, width=options.width)


def _times(distribution: Distribution, options: FigureOptions) -> Figure:
    from radii.plots import draw_run_times

    return draw_run_times(distribution, by=options.groups, width=options.width)


def _draw_fits(distribution: Distribution, options: FigureOptions) -> Figure:
    from radii.plots import draw_fits

    return draw_fits(
        distribution, by=options.groups, families=options.families, width=options.width
    )


def _qq(distribution: Distribution, options: FigureOptions) -> Figure:
    from radii.plots import draw_qq

    family = options.families[0] if options.families else "lognormal"
    return draw_qq(distribution, family, by=options.groups, width=options.width)


def _scatter(distribution: Distribution, options: FigureOptions) -> Figure:
    from radii.plots import draw_scatter

    return draw_scatter(distribution, width=options.width)


def _claims(distribution: Distribution, options: FigureOptions) -> Figure:
    from radii.plots import draw_claims

    pairs: dict[str, list[str]] = {}
    for name in distribution.networks:
        pairs.setdefault(name.split(" (")[0], []).append(name)
    found = {plain: names for plain, names in pairs.items() if len(names) == 2}
    if not found:
        raise DataError("claims of one result are held against another: give two, of one network")
    return draw_claims(
        distribution,
        [(names[0], names[1]) for names in found.values()],
        names=list(found),
        width=options.width,
    )


def _correlations(distribution: Distribution, options: FigureOptions) -> Figure:
    from radii.plots import draw_correlations

    return draw_correlations(distribution, width=options.width)


def _leads(distribution: Distribution, options: FigureOptions) -> Figure:
    from radii.plots import draw_leads

    first, second = _two_networks(distribution)
    return draw_leads(
        distribution,
        first,
        second,
        eps=options.eps,
        confidence=options.confidence,
        width=options.width,
    )


def _classes(distribution: Distribution, options: FigureOptions) -> Figure:
    from radii.plots import draw_classes

    return draw_classes(distribution, eps=_first(options.eps), width=options.width)


def _targets(distribution: Distribution, options: FigureOptions) -> Figure:
    from radii.plots import draw_targets

    return draw_targets(distribution, eps=_first(options.eps), width=options.width)


def _closest(distribution: Distribution, options: FigureOptions) -> Figure:
    from radii.plots import draw_closest_targets

    return draw_closest_targets(distribution, width=options.width)


def _ks(distribution: Distribution, options: FigureOptions) -> Figure:
    from radii.plots import draw_ks_matrix

    by, *each = options.by or ("class",)
    return draw_ks_matrix(distribution, by, each=each[0] if each else None, width=options.width)


def _fairness(distribution: Distribution, options: FigureOptions) -> Figure:
    from radii.plots import draw_fairness

    return draw_fairness(distribution, eps=options.eps, width=options.width)


def _draw_gains(distribution: Distribution, options: FigureOptions) -> Figure:
    from radii.plots import draw_class_gains

    eps = _first(options.eps)
    if eps is None:
        raise DataError("the gain of a class is at one eps: name it with --eps")
    return draw_class_gains(distribution, *_two_networks(distribution), eps, width=options.width)


def _convergence(distribution: Distribution, options: FigureOptions) -> Figure:
    from radii.plots import draw_convergence

    eps = _first(options.eps)
    if eps is None:
        raise DataError("robust accuracy is estimated at one eps: name it with --eps")
    return draw_convergence(
        distribution,
        eps,
        by=options.groups,
        confidence=options.confidence or 0.95,
        width=options.width,
    )


def _first(eps: tuple[float, ...]) -> float | None:
    return eps[0] if eps else None


def _two_networks(distribution: Distribution) -> tuple[str, str]:
    names = distribution.networks
    if len(names) != 2:
        raise DataError(
            f"two networks are compared, not {len(names)}: choose with --only network=NAME, twice"
        )
    return names[0], names[1]


FIGURE_KINDS: dict[str, FigureKind] = {
    "ecdf": FigureKind("share of inputs broken within eps, the gap shaded", _ecdf, True),
    "robust-accuracy": FigureKind(
        "share of inputs that stay right within eps", _robust_accuracy, True
    ),
    "satisfaction": FigureKind(
        "share for which a property is proven", _constraints("satisfaction"), True
    ),
    "security": FigureKind(
        "share for which no attack breaks a property", _constraints("security"), True
    ),
    "box": FigureKind("quantiles of the radii, each as an interval", _boxes, is_of_values=_always),
    "gaps": FigureKind("how wide brackets stayed", _gaps),
    "times": FigureKind("share of inputs done within a time", _times),
    "fit": FigureKind("fitted families over the data, with their test", _draw_fits),
    "qq": FigureKind(
        "quantiles of the data over those of a fitted family", _qq, is_of_values=_always
    ),
    "scatter": FigureKind(
        "an input's radii on two networks, and Spearman's r", _scatter, is_of_values=_always
    ),
    "claims": FigureKind("proofs of the first result against witnesses of the second", _claims),
    "correlations": FigureKind(
        "Spearman's r between all networks", _correlations, is_of_values=_always
    ),
    "leads": FigureKind("which of two networks is more robust at which eps", _leads, True),
    "classes": FigureKind(
        "median radius by class and network; recall with --eps", _classes, is_of_values=_without_eps
    ),
    "targets": FigureKind(
        "median radius by class and target (one-to-one, become)",
        _targets,
        is_of_values=_without_eps,
    ),
    "closest": FigureKind("towards which class the inputs of a class break first", _closest),
    "ks": FigureKind(
        "Kolmogorov-Smirnov matrix of classes; --by network, target", _ks, is_of_values=_always
    ),
    "fairness": FigureKind("spread of robust recall between classes over eps", _fairness, True),
    "gains": FigureKind("which classes gain from one network to another at --eps", _draw_gains),
    "convergence": FigureKind("estimates of R at --eps from samples of planned size", _convergence),
}
