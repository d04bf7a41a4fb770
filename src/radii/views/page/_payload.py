"""From runs to what the page is fed with: facts as JSON, arrays and pictures as bytes.

The page (`assets/`) knows nothing else. A file carries the three parts inside itself; a server can
hand out the same three parts again whenever they change.
"""

from __future__ import annotations

import dataclasses
import datetime
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

import radii
from radii.errors import DataError, StoreError
from radii.problem import Arithmetic
from radii.statistics import (
    CATALOGUE,
    NO_NUMBER,
    Distribution,
    Run,
    dkw_half_width,
    over_targets,
    ranked_arithmetics,
    read,
    read_parts,
    statistics_of,
    weakest_arithmetic,
    with_distinct_names,
)
from radii.store import ENSEMBLE_FILE, STORE_FILE, SearchStep
from radii.views._json import plain_json
from radii.views.figures._style import last_edge
from radii.views.page._ensembles import ensemble_objects, ensemble_sentences
from radii.views.page._findings import are_comparable, notes, summary_sentences
from radii.views.page._pictures import PackedArrays, feature_names, pack_pictures
from radii.views.page._proofs import add_proofs
from radii.views.page._statistics import (
    class_test_objects,
    correlation_rows,
    fit_objects,
    pair_objects,
    test_objects,
)

if TYPE_CHECKING:
    from radii.ensembles import EnsembleResults


Value = TypeVar("Value")

PAYLOAD_FORMAT = 1

PICTURE_BYTES = 16 * 2**20

LEVEL = 0.95

REPORT_SETTINGS = (
    *("source", "split", "property", "norm", "grid", "search", "verifier", "arithmetic"),
    *("attack", "timeout", "budget", "seed"),
)

ROW_COLUMNS = {"label": "i4", "predicted": "i4", "correct": "u1", "target": "i4"}
ROW_COLUMNS |= {"witness_class": "i4", "lower": "f8", "upper": "f8", "seconds": "f4"}
ROW_COLUMNS |= {"queries": "u4", "missing": "u4", "cancelled": "u4"}

HISTORY_NUMBERS = {"eps": "f8", "seconds": "f4", "proof_eps": "f8", "distance": "f8"}
HISTORY_NUMBERS |= {"lower": "f8", "upper": "f8"}
HISTORY_WORDS = {"kind": "u2", "verdict": "u2", "verifier": "u2", "message": "u4"}


@dataclass(frozen=True, slots=True, eq=False)
class Payload:
    """What the page shows. `facts` is JSON; the others are compressed blocks it describes."""

    facts: dict[str, Any]
    columns: bytes
    pictures: bytes


def read_places(places: Sequence[Path]) -> tuple[list[Run], list[EnsembleResults]]:
    """Runs and files of published results, and ensembles. No two networks of runs share a name."""
    seen: set[Path] = set()
    for place in places:
        if place.resolve() in seen:
            raise StoreError(f"{place}: the same experiment is given twice")
        seen.add(place.resolve())
    ensembles = [place for place in places if (place / ENSEMBLE_FILE).is_file()]
    others = [place for place in places if place not in ensembles or (place / STORE_FILE).is_file()]
    runs = [run for place in others for run in _read(place)]
    return with_distinct_names(runs), _read_ensembles(ensembles)


def _read(place: Path) -> list[Run]:
    """Brackets of several questions in one place are runs of their own."""
    if not place.is_file():
        return read_parts(place)
    run = read(place)
    return [dataclasses.replace(run, notes=(*run.notes, *_caveats(run)))]


def _caveats(run: Run) -> list[str]:
    """What a reader of a file's numbers must know, whatever is in it."""
    name = run.place.name
    sentences = [f"{name}: proofs and counterexamples are its claims, which radii has not checked."]
    if run.columns["correct"].all():
        sentences.append(
            f"{name} has no misclassified inputs. Published files leave them out: robust accuracy "
            "is then that of correctly classified inputs."
        )
    return sentences


def _read_ensembles(places: Sequence[Path]) -> list[EnsembleResults]:
    if not places:
        return []
    from radii.ensembles import read_ensemble_results  # which brings PyTorch

    return [read_ensemble_results(place) for place in places]


def make_payload(
    places: Sequence[Path],
    *,
    title: str = "",
    own_notes: Sequence[str] = (),
    picture_bytes: int = PICTURE_BYTES,
) -> Payload:
    """Read directories of experiments and ensembles, or files of published results, for a page.

    `own_notes` are paragraphs of one's own, which the page shows below its first sentence.
    """
    runs, ensembles = read_places(places)
    return payload_of(
        runs, ensembles=ensembles, title=title, own_notes=own_notes, picture_bytes=picture_bytes
    )


def payload_of(
    runs: Sequence[Run],
    *,
    ensembles: Sequence[EnsembleResults] = (),
    title: str = "",
    own_notes: Sequence[str] = (),
    picture_bytes: int | None = PICTURE_BYTES,
) -> Payload:
    """The payload of what is read already.

    Without `picture_bytes` it has neither pictures nor tests and fits: it is for a live page, which
    asks for the pictures of an input when it shows it (see `pictures_of`).
    """
    columns = PackedArrays()
    if runs:
        pictures, facts = _add_experiments(runs, columns, picture_bytes)
    else:
        pictures, facts = PackedArrays(), _add_no_rows(columns)
    room = (picture_bytes or 0) - pictures.size
    objects, ensemble_notes = ensemble_objects(ensembles, pictures, room) if ensembles else ([], [])
    facts = {
        **facts,
        "format": PAYLOAD_FORMAT,
        "version": radii.__version__,
        "made": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "title": title or _title([*runs, *ensembles]),
        "ensembles": objects,
        "summary": [*facts["summary"], *ensemble_sentences(ensembles)],
        "notes": [*facts["notes"], *ensemble_notes],
        "own_notes": list(own_notes),
        "level": LEVEL,
        "has_pictures": picture_bytes is not None,
        "arrays": {"columns": columns.contents, "pictures": pictures.contents},
    }
    return Payload(facts, columns.compressed(), pictures.compressed())


def _add_experiments(
    runs: Sequence[Run], columns: PackedArrays, picture_bytes: int | None
) -> tuple[PackedArrays, dict[str, Any]]:
    """Experiments: their pictures and facts; arrays go into the columns."""
    measured = Distribution.union(map(Distribution.from_run, runs))
    counted, target_notes = _one_bracket_an_input(measured)
    inputs = _input_numbers(runs)
    pictures = pack_pictures(runs, inputs, limit=picture_bytes or 0)
    _add_rows(columns, measured, inputs)
    scopes = _add_arithmetics(columns, measured)
    checks = add_proofs(columns, runs, measured)
    _add_counted(columns, counted, measured.networks)
    tables = _add_histories(columns, runs)
    columns.add("input_at", pictures.input_at, "i4")
    columns.add("input_shape", pictures.input_shape, "i4")
    columns.add("pixel_range", pictures.pixel_range, "f4")
    columns.add("difference_at", pictures.difference_at, "i4")
    columns.add("difference_scale", pictures.difference_scale, "f4")
    note = "" if picture_bytes is None else pictures.note(picture_bytes)
    axis = _eps_axis(runs, counted)
    classes = {
        int(one) for name in ("witness_class", "target") for one in np.unique(measured.column(name))
    }
    targeted = set(measured.column("property")[measured.column("target") != NO_NUMBER].tolist())
    has_one_source = len({run.settings.source for run in runs}) == 1
    return pictures.block, {
        "experiments": [
            {
                "place": str(run.place),
                "is_measured": run.is_measured,
                **{name: run.settings.text_of(name) for name in REPORT_SETTINGS},
            }
            for run in runs
        ],
        "networks": _networks(runs, counted),
        # What the page has a column for: the values of a network are under the same names.
        "catalogue": [
            {"name": one.name, "title": one.title, "unit": one.unit.value, "about": one.about}
            for one in CATALOGUE.values()
        ],
        "classes": sorted({*measured.labels, *classes} - {NO_NUMBER}),
        "eps": axis,
        "summary": summary_sentences(runs, measured, counted),
        "notes": [*notes(runs), *target_notes, *([note] if note else [])],
        "disagreements": _disagreements(runs),
        "pairs": pair_objects(counted, LEVEL) if are_comparable(runs) else [],
        "correlations": correlation_rows(measured) if has_one_source else [],
        **({} if picture_bytes is None else _statistics(runs, counted, axis["top"])),
        "scopes": scopes,
        "checks": checks,
        "has_targets": bool(targeted),
        # Targets to be taken for, not only to reach the label's output.
        "targets_are_become": all(spec.startswith("become") for spec in targeted),
        "shapes": pictures.shapes,
        "features": _common(feature_names(run.settings) for run in runs),
        "class_names": list(_common(run.settings.class_names for run in runs) or ()),
        **tables,
    }


def _statistics(runs: Sequence[Run], counted: Distribution, top: float) -> dict[str, Any]:
    """What takes seconds, and so is not on a live page, which is made again and again."""
    return {
        "tests": test_objects(counted) if are_comparable(runs) else [],
        "class_tests": class_test_objects(counted),
        "fits": fit_objects(counted, top),
    }


def _common(values: Iterable[Value]) -> Value | None:
    """What all runs have; None where they differ."""
    first, *others = values
    return first if all(other == first for other in others) else None


def _add_no_rows(columns: PackedArrays) -> dict[str, Any]:
    """A page without experiments has no rows, and so no other columns."""
    columns.add("network", [], "u2")
    columns.add("counted_network", [], "u2")
    lists = ("experiments", "networks", "classes", "summary", "notes", "disagreements", "shapes")
    return {"eps": None, **{name: [] for name in lists}}


def pictures_of(runs: Sequence[Run], number: int) -> dict[str, Any]:
    """The pictures of one input, by the number that it has in the payload of the same runs."""
    inputs = _input_numbers(runs)
    if number not in inputs:
        raise DataError(f"input {number} is not in these experiments")
    return pack_pictures(runs, inputs, only=number).of_input(number)


def _one_bracket_an_input(measured: Distribution) -> tuple[Distribution, list[str]]:
    """One bracket an input, for shares of inputs: the smallest over targets where they are all."""
    parts, sentences = [], []
    for name, part in measured.by_network().items():
        try:
            parts.append(over_targets(part))
        except DataError:
            parts.append(part)
            sentences.append(f"{name} was not measured for every target: its shares are of pairs.")
    return Distribution.union(parts), sentences


def _input_numbers(runs: Sequence[Run]) -> list[int]:
    """Equal inputs have equal numbers, over all experiments; -1 where an input is not known."""
    numbers: dict[str, int] = {}
    inputs: list[int] = []
    for run in runs:
        digests = [record.digest for record in run.records]
        inputs += [numbers.setdefault(digest, len(numbers)) for digest in digests]
        inputs += [-1] * (len(run) - len(digests))
    return inputs


def _add_rows(columns: PackedArrays, measured: Distribution, inputs: Sequence[int]) -> None:
    columns.add("network", _codes(measured, measured.networks), "u2")
    columns.add("position", measured.column("input"), "i4")
    columns.add("input", inputs, "i4")
    columns.add("holds", measured.holds, "u1")
    for name, kind in ROW_COLUMNS.items():
        columns.add(name, measured.column(name), kind)


def _add_arithmetics(columns: PackedArrays, measured: Distribution) -> list[str]:
    """The arithmetic of each row's proof, as a place in the list of words that is returned."""
    texts, places = ranked_arithmetics(measured.column("arithmetic"))
    columns.add("arithmetic", places, "u1")
    return [Arithmetic.parse(str(text)).scope if text else "" for text in texts]


def _add_counted(columns: PackedArrays, counted: Distribution, networks: Sequence[str]) -> None:
    """Arrays that shares of inputs are computed from; the same as the rows without targets."""
    columns.add("counted_network", _codes(counted, networks), "u2")
    columns.add("counted_label", counted.label, "i4")
    columns.add("counted_lower", counted.lower, "f8")
    columns.add("counted_upper", counted.upper, "f8")


def _add_histories(columns: PackedArrays, runs: Sequence[Run]) -> dict[str, list[str]]:
    """Questions and answers of all instances; returns the words to which numbers refer.

    Those of row r are from history_start[r] to history_start[r + 1].
    """
    counts: list[int] = []
    steps: list[SearchStep] = []
    for run in runs:
        histories = [record.steps for record in run.records] or [()] * len(run)
        counts += [len(history) for history in histories]
        steps += [step for history in histories for step in history]
    columns.add("history_start", np.concatenate([[0], np.cumsum(counts)]), "u4")
    for name, kind in HISTORY_NUMBERS.items():
        columns.add_known(f"history_{name}", (getattr(step, name) for step in steps), kind)
    return {
        f"{name}s": columns.add_words(
            f"history_{name}", (getattr(step, name) for step in steps), kind
        )
        for name, kind in HISTORY_WORDS.items()
    }


def _codes(distribution: Distribution, networks: Sequence[str]) -> Any:
    order = np.argsort(np.array(networks))
    return order[np.searchsorted(np.array(networks), distribution.network, sorter=order)]


def _networks(runs: Sequence[Run], counted: Distribution) -> list[dict[str, Any]]:
    objects = []
    parts = counted.by_network()
    for place, run in enumerate(runs):
        for name, measured in Distribution.from_run(run).by_network().items():
            part, weakest = parts[name], weakest_arithmetic(measured)
            median = part.correctly_classified().median() if part.holds.any() else None
            objects.append(
                {
                    "name": name,
                    "fingerprint": str(measured.column("fingerprint")[0]),
                    "experiment": place,
                    "arithmetic": None if weakest is None else str(weakest),
                    "inputs": len(part),
                    "instances": len(measured),
                    "accuracy": float(part.holds.mean()),
                    "median": plain_json(median),
                    "half_width": dkw_half_width(len(part), LEVEL),
                    "class_margins": _class_margins(part),
                    "statistics": plain_json(statistics_of(measured)),
                }
            )
    return objects


def _class_margins(part: Distribution) -> dict[str, float]:
    """How far sampling may move a class's recall, for all classes and every eps at once."""
    sizes = {label: len(of) for label, of in part.group_by("class").items() if label is not None}
    each = 1 - (1 - LEVEL) / max(1, len(sizes))
    return {str(label): dkw_half_width(size, each) for label, size in sizes.items()}


def _disagreements(runs: Sequence[Run]) -> list[dict[str, Any]]:
    objects, start = [], 0
    for run in runs:
        for row, disagreement in run.disagreements:
            network, index = (run.columns[name][row].item() for name in ("network", "input"))
            text = str(disagreement)
            objects.append({"row": start + row, "network": network, "input": index, "text": text})
        start += len(run)
    return objects


def _eps_axis(runs: Sequence[Run], counted: Distribution) -> dict[str, float]:
    """From 0 to beyond the largest radius; it starts at the typical median."""
    top = last_edge(counted)
    medians = [part.median()[0] for part in counted.by_network().values()]
    start = float(np.median(medians)) or top / 4
    grids = [run.settings.grid for run in runs]
    step = min((grid.finest_step for grid in grids if grid is not None), default=0.0)
    nice = 10.0 ** math.floor(math.log10(top / 100))
    step = max(step, nice)
    return {"top": top, "start": round(start / step) * step, "step": step}


def _title(shown: Sequence[Run | EnsembleResults]) -> str:
    names = [one.place.resolve().name if one.place else "ensemble" for one in shown]
    return ", ".join(names[:3]) + (", …" if len(names) > 3 else "")
