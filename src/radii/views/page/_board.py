"""A board of many networks: how robust each is shown to be, and how robust it may be at most.

A table holds the networks that were measured on the same inputs, in the same norm and for the same
property: radii of others are different things. Nobody is ranked below another unless the other's
proven share is larger than what is not refuted of theirs.
"""

from __future__ import annotations

import dataclasses
import datetime
import hashlib
import itertools
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import radii
from radii.errors import DataError
from radii.problem import ProofStatus
from radii.statistics import (
    Distribution,
    Run,
    check_distinct,
    is_unsearched,
    over_targets,
    proof_statuses,
    read,
    weakest_arithmetic,
    why_unsearched,
    with_distinct_names,
)
from radii.store import STORE_FILE, Store, StoredSettings
from radii.views._json import plain_json
from radii.views.figures._style import largest_side
from radii.views.page._findings import NORM_TITLES
from radii.views.page._page import render_sheet, write_page
from radii.views.page._pictures import PackedArrays

Measured = tuple[Run, int, Distribution]
"""A network's brackets, one an input, the run that they are of, and its number among all."""

Member = tuple[Run, int, str, Distribution]
"""The same with the network's own name: that of the brackets may carry the run's."""


@dataclass(frozen=True, slots=True)
class BoardShare:
    """Robust accuracy at one eps. `not_refuted` is None where nobody searched so far out."""

    eps: float
    proven: float
    not_refuted: float | None
    unsearched: str


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BoardEntry:
    """One network and its brackets, one an input.

    `number` counts the networks in the order in which they were given, which is that of their
    colours in a report. `rank` is 1 more than how many are shown to be more robust at the first
    eps. `median` is that of inputs that have a radius; `closed` is the share of inputs with no grid
    value left open, None without a grid. `checked` says how many proofs a checker has accepted.
    `measured` has the first and the last answer's time, in UTC. `searched` is the eps from which on
    "not refuted" means nothing; None where there is no such eps.
    """

    network: str
    place: str
    number: int
    fingerprint: str
    rank: int
    accuracy: float
    shares: tuple[BoardShare, ...]
    median: tuple[float, float] | None
    closed: float | None
    arithmetic: str
    verifier: str
    checked: str
    measured: tuple[str, str]
    seconds: float
    is_claim: bool
    searched: float | None
    brackets: Distribution = dataclasses.field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BoardTable:
    """Networks that can be compared: the same inputs, norm and property.

    Radii are shown up to `top`; `eps` is where robust accuracy is given.
    """

    title: str
    source: str
    norm: str
    property: str
    inputs: int
    eps: tuple[float, ...]
    top: float
    entries: tuple[BoardEntry, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Board:
    """All tables, the largest first, and what a reader must know."""

    title: str
    tables: tuple[BoardTable, ...]
    notes: tuple[str, ...]


def make_board(places: Sequence[Path], *, eps: Sequence[float] = (), title: str = "") -> Board:
    """Read runs and files of results. Without `eps`, each table gets a value of its own."""
    check_distinct(places)
    runs = [read(place) for place in places]
    groups: dict[tuple[str, ...], list[Member]] = {}
    numbers = itertools.count()
    for run, named in zip(runs, with_distinct_names(runs), strict=True):
        (alone,) = with_distinct_names([run])
        for name, part in zip(
            alone.networks, Distribution.from_run(named).by_network().values(), strict=True
        ):
            member = (run, next(numbers), name, _one_bracket_an_input(part))
            groups.setdefault(_identity(run, part), []).append(member)
    ordered = [_with_short_names(members) for members in groups.values()]
    ordered.sort(key=len, reverse=True)
    notes = [sentence for run in runs for sentence in run.notes]
    return Board(
        title or "Leaderboard",
        tuple(_table(members, tuple(eps)) for members in ordered),
        (*_separation(ordered), *notes),
    )


def _with_short_names(members: Sequence[Member]) -> list[Measured]:
    """A network carries its run's name, too, only where another of its table has the same name."""
    counts = Counter(name for *_, name, _ in members)
    return [
        (run, number, part.labelled(network=name) if counts[name] == 1 else part)
        for run, number, name, part in members
    ]


def write_board(board: Board, path: Path) -> None:
    """Write the board as one self-contained page; the folder must exist."""
    write_page(render_board(board), path)


def render_board(board: Board) -> str:
    """The page with everything in it; it asks the network for nothing."""
    columns = PackedArrays()
    parts = [one.brackets for table in board.tables for one in table.entries]
    columns.add("lower", np.concatenate([part.lower for part in parts]), "f8")
    columns.add("upper", np.concatenate([part.upper for part in parts]), "f8")
    facts = {
        **plain_json(board),
        "version": radii.__version__,
        "made": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "arrays": {"columns": columns.contents},
    }
    return render_sheet(facts, columns.compressed(), script="board")


def _identity(run: Run, part: Distribution) -> tuple[str, ...]:
    """Equal for what can be compared: the same inputs of the same data, norm and property."""
    settings = run.settings
    inputs = sorted(set(zip(part.column("input").tolist(), part.label.tolist(), strict=True)))
    digest = hashlib.sha256(repr(inputs).encode()).hexdigest()
    domain = settings.domains[0] if len(set(settings.domains)) == 1 else ""
    texts = (settings.text_of(name) for name in ("source", "split", "norm"))
    return (*(str(text or "") for text in texts), _property(run, part), domain, digest)


def _property(run: Run, part: Distribution) -> str:
    return run.settings.property or str(part.column("property")[0])


def _one_bracket_an_input(part: Distribution) -> Distribution:
    """The smallest over targets, which must all be there: a share is one of inputs."""
    try:
        return over_targets(part)
    except DataError as error:
        raise DataError(
            f"{part.networks[0]}: a board needs every target of every input ({error}); "
            "measure with --property one-to-any, or all targets"
        ) from None


def _separation(groups: Sequence[Sequence[Measured]]) -> list[str]:
    """One sentence on why there are several tables."""
    if len(groups) < 2:
        return []
    first = [members[0] for members in groups]
    named = {
        "data": {str(run.settings.source or run.place) for run, *_ in first},
        "norm": {str(run.settings.text_of("norm") or "") for run, *_ in first},
        "property": {_property(run, part) for run, _, part in first},
    }
    differ = [name for name, values in named.items() if len(values) > 1] or ["inputs or domain"]
    return [
        f"The networks are in {len(groups)} tables, because they differ in "
        f"{' and '.join(differ)}: numbers of different tables cannot be compared."
    ]


def _table(members: Sequence[Measured], eps: tuple[float, ...]) -> BoardTable:
    run, _, part = members[0]
    norm = run.settings.norm
    source = str(run.settings.source or run.place.name)
    chosen = eps or (_typical_eps([part for *_, part in members], run.settings),)
    top = 1.05 * max((*(largest_side(part) for *_, part in members), *chosen)) or 1.0
    norm_title = "norm unknown" if norm is None else NORM_TITLES[norm]
    property_name = _property(run, part)
    return BoardTable(
        title=" · ".join((source, norm_title, property_name)),
        source=source,
        norm=norm_title,
        property=property_name,
        inputs=len(part),
        eps=chosen,
        top=top,
        entries=_ranked([_entry(*member, chosen) for member in members]),
    )


def _typical_eps(parts: Sequence[Distribution], settings: StoredSettings) -> float:
    """About the median radius of the median network: where networks are told apart best."""
    medians = [part.median()[0] for part in parts]
    middle = (
        float(np.median(medians)) or float(np.median([largest_side(part) for part in parts])) / 4
    )
    if settings.grid is None:
        return float(f"{middle:.2g}")
    values = np.array(settings.grid.values)
    return float(values[np.argmin(np.abs(values - middle))])


def _entry(run: Run, number: int, part: Distribution, eps: Sequence[float]) -> BoardEntry:
    known = weakest_arithmetic(part)
    seconds = part.column("seconds")
    return BoardEntry(
        network=part.networks[0],
        place=str(run.place),
        number=number,
        fingerprint=str(part.column("fingerprint")[0]),
        rank=1,
        accuracy=float(part.holds.mean()),
        shares=tuple(_share(part, value) for value in eps),
        median=part.correctly_classified().median() if part.holds.any() else None,
        closed=_closed(part, run.settings),
        arithmetic="" if known is None else str(known),
        # Who proves; an attack proves nothing.
        verifier="" if run.settings.search == "attack-only" else run.settings.verifier or "",
        checked=_checked(part),
        measured=_measured(run),
        seconds=float(np.nansum(seconds)) if not np.isnan(seconds).all() else math.nan,
        is_claim=not run.is_measured,
        searched=_search_end(part),
        brackets=part,
    )


def _checked(part: Distribution) -> str:
    """How many proofs a checker has accepted, and how many nobody can check; else empty."""
    counts = proof_statuses(part)
    words = {
        ProofStatus.CHECKED: "checked",
        ProofStatus.UNREADABLE: "not readable",
        ProofStatus.BELIEVED: "believed",
        ProofStatus.FAILED: "REFUSED",
    }
    numbers = {each: counts[each] for each in words if counts.get(each)}
    total = sum(counts.values())
    texts = (f"{'all' if n == total else n} {words[each]}" for each, n in numbers.items())
    return ", ".join(texts)


def _share(part: Distribution, eps: float) -> BoardShare:
    share, why = part.robust_accuracy(eps), why_unsearched(part, eps)
    return BoardShare(eps, share.proven, None if why else share.not_refuted, why)


def _closed(part: Distribution, settings: StoredSettings) -> float | None:
    """The share of inputs without a grid value strictly between the two sides."""
    if settings.grid is None:
        return None
    values = np.array(settings.grid.values)
    after = np.searchsorted(values, part.lower * (1 + 1e-9), side="right")
    before = np.searchsorted(values, part.upper, side="left")
    return float(np.mean(after >= before))


def _search_end(part: Distribution) -> float | None:
    """The smallest eps at which an input is neither proven nor refuted nor searched for."""
    ends = np.unique(np.maximum(part.column("searched"), part.lower))
    beyond = (np.nextafter(end * (1 + 1e-9), np.inf) for end in ends[~np.isnan(ends)])
    return next((float(eps) for eps in beyond if is_unsearched(part, float(eps)).any()), None)


def _measured(run: Run) -> tuple[str, str]:
    if not (run.place / STORE_FILE).is_file():
        return "", ""
    with Store.open(run.place) as store:
        return store.first_answer_at(), store.last_answer_at()


def _ranked(entries: Sequence[BoardEntry]) -> tuple[BoardEntry, ...]:
    """By what is proven at the first eps; who overlaps with a better one shares its rank."""
    placed = [
        dataclasses.replace(
            one, rank=1 + sum(other.shares[0].proven > _ceiling(one) for other in entries)
        )
        for one in entries
    ]
    return tuple(sorted(placed, key=lambda one: (one.rank, -one.shares[0].proven, -_ceiling(one))))


def _ceiling(one: BoardEntry) -> float:
    """What may be robust at most at the first eps."""
    found = one.shares[0].not_refuted
    return one.accuracy if found is None else found
