"""Going on with a study from its directory alone: what is there, with changes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from radii import datasets
from radii.errors import ExperimentError, InputError
from radii.networks import Network
from radii.problem import Domain, distinct_names
from radii.runs._data_terms import DataTerms
from radii.runs._description import FEEDING_FIELDS, Experiment, Settings
from radii.runs._fields import options_of
from radii.runs._plan import Plan, fed_network, plan_of
from radii.store import KnownNetwork, PartChoice, Store, StudyStep

Values = dict[str, Any]

FOLLOWING = {"verifier": ("search", "k", "cuts", "tool", "device"), "search": ("k", "cuts")}
"""What was chosen to suit another value, and is chosen anew when that changes."""


def continued(directory: Path, changes: Mapping[str, Any]) -> Plan:
    """The plan that goes on with what a directory holds, with these options of an experiment.

    Networks and inputs are added to those that are there; any other option takes the place of what
    was asked for last. A property, norm or arithmetic that is there goes on with that part; a new
    one begins a part: of the networks and inputs that are named, or else of all.
    """
    with Store.open(directory) as store:
        step, is_new = _base(store, changes)
        known = _known_networks(store, step)
        terms = DataTerms.of(store)
    asked = [str(Path(path).resolve()) for path in changes.get("networks", ())]
    fed = {one.fingerprint: _feeding(one, changes) for one in known}
    label = next((each["label"] for each in fed.values() if "label" in each), None)
    common = next(iter(fed.values()), {})
    is_common = all(each == common for each in fed.values())
    if is_new and asked:
        known = [one for one in known if one.path in asked]
    paths = [one.path for one in known]
    added = [path for path in asked if path not in paths]
    _check_feeding(directory, known, fed, asked, changes)
    sources = _sources(directory, step, changes, is_new=is_new)
    if known and not added:
        common, is_common = fed[known[0].fingerprint], True
    settings = Experiment.from_options(
        {
            **(common if is_common else {}),
            **_settings(step, changes),
            **_given_feeding(changes),
            "networks": [*paths, *added],
            "data": " and ".join(sources),
        }
    ).resolved()
    opaque = not settings.search_class().needs_verifier
    loaded = [_loaded(directory, one, fed[one.fingerprint], settings) for one in known]
    for path, name in zip(added, distinct_names([*paths, *added])[len(paths) :], strict=True):
        domain = _domain(settings.domain, settings)
        loaded.append(fed_network(path, name, domain, settings.feeding(), opaque=opaque))
    wholes = _wholes(directory, sources, changes.get("label") or label)
    classed = {
        name: terms.apply(whole, loaded, changes.get("classes")) for name, whole in wholes.items()
    }
    sets = _needed(directory, classed, sources, changes.get("data"))
    feeding = [*(fed[one.fingerprint] for one in known), *[settings.feeding()] * len(added)]
    return plan_of(
        loaded,
        (*paths, *added),
        sets,
        settings,
        layouts=[one.get("layout") for one in feeding],
        sources=sources,
        feeding=feeding,
    )


def _base(store: Store, changes: Mapping[str, Any]) -> tuple[StudyStep, bool]:
    """The latest step of the part that is meant; or of all, if another part is to begin."""
    asked = changes.get("property")
    text = None if asked is None else options_of(Settings)["property"].form.write(asked)
    choice = PartChoice(text, changes.get("norm"), changes.get("arithmetic"))
    steps, parts = {step.number: step for step in store.steps()}, store.parts()
    if not parts:
        raise ExperimentError(f"{store.place}: no experiment has begun here")
    chosen = [part for part in parts if choice.admits(part.settings)]
    part = max(chosen or parts, key=lambda part: max(part.numbers))
    own = [n for n in part.numbers if part.arithmetics[n] == part.settings.arithmetic]
    return steps[own[-1]], not chosen


def _known_networks(store: Store, base: StudyStep) -> list[KnownNetwork]:
    """All networks of the part that a step belongs to."""
    part = next(part for part in store.parts() if base.number in part.numbers)
    steps = [step for step in store.steps() if step.number in part.numbers]
    keys = dict.fromkeys(
        key for step in steps for key in (step.described.get("networks") or {}).values()
    )
    known = store.networks()
    return [known[key] for key in keys]


def _feeding(known: KnownNetwork, changes: Mapping[str, Any]) -> Values:
    """How inputs get into a network; where that is not stored, as the changes say."""
    values: Mapping[str, Any] | None = known.feeding
    if values is None:
        options, given = options_of(Experiment), _given_feeding(changes)
        values = {name: options[name].form.write(value) for name, value in given.items()}
        values |= {} if known.domain is None else {"domain": str(known.domain)}
    return {name: value for name, value in values.items() if value is not None}


def _settings(step: StudyStep, changes: Mapping[str, Any]) -> Values:
    """The step's settings with the changes; what suited a value that changes is chosen anew."""
    names = options_of(Settings)
    stored = {n: v for n, v in step.described.items() if n in names and v is not None}
    for name, following in FOLLOWING.items():
        if name in changes:
            stored = {n: v for n, v in stored.items() if n not in following}
    if "eps" in changes:
        stored.pop("grid", None)
    if "budget_per_input" in changes:
        stored.pop("budget", None)
    return {**stored, **{n: v for n, v in changes.items() if n in names}}


def _given_feeding(changes: Mapping[str, Any]) -> Values:
    return {name: changes[name] for name in FEEDING_FIELDS if name in changes}


def _check_feeding(
    directory: Path,
    known: Sequence[KnownNetwork],
    fed: Mapping[str, Values],
    asked: Sequence[str],
    changes: Mapping[str, Any],
) -> None:
    """Refuses another way to feed the networks that are named, or else all; labels are of all."""
    options = options_of(Experiment)
    named = [one for one in known if one.path in asked] if asked else known
    for name, value in _given_feeding(changes).items():
        now = _in_words(options[name].form.write(options[name].read(value)))
        for one in known if name == "label" else named:
            own = fed[one.fingerprint]
            stored = options[name].read(own[name]) if name in own else None
            was = "not given" if stored is None else _in_words(options[name].form.write(stored))
            if was != now:
                raise ExperimentError(
                    f"{directory}: the {name} of {one.name} was {was}, is {now}; "
                    "choose another --out"
                )


def _in_words(written: Any) -> str:
    return ",".join(map(str, written)) if isinstance(written, list | tuple) else str(written)


def _loaded(directory: Path, known: KnownNetwork, feeding: Values, settings: Experiment) -> Network:
    if not Path(known.path).is_file():
        raise ExperimentError(
            f"{directory}: its network {known.name} is not at {known.path} any more; put it back, "
            "or give the experiment's file and --out"
        )
    domain = feeding.get("domain")
    given = None if domain is None else options_of(Experiment)["domain"].read(domain)
    own, opaque = _domain(given, settings), not settings.search_class().needs_verifier
    network = fed_network(known.path, known.name, own, feeding, opaque=opaque)
    if network.fingerprint != known.fingerprint:
        is_certain = known.feeding is not None
        advice = "" if is_certain else "; if it was given --mean and --std, give them again"
        raise ExperimentError(
            f"{directory}: its network {known.name} has changed at {known.path}{advice}"
        )
    return network


def _domain(given: Domain | None, settings: Experiment) -> Domain:
    """What is given; bounds of features come before it."""
    domain = given if settings.features is None else settings.features.domain(given)
    if domain is None:
        raise ExperimentError("say which inputs are valid: --domain LOW:HIGH")
    return domain


def _sources(
    directory: Path, step: StudyStep, changes: Mapping[str, Any], *, is_new: bool
) -> Values:
    """The texts that name the inputs, with those of a change, which are of the same data set."""
    if "data" not in changes:
        return dict(step.sources)
    new, place = changes["data"], datasets.absolute_source(changes["data"])
    known = {datasets.location_of(datasets.absolute_source(each)) for each in step.sources.values()}
    if known and datasets.location_of(place) not in known:
        raise _other_inputs(directory, " and ".join(step.sources), new)
    return {**({} if is_new else step.sources), new: place}


def _needed(
    directory: Path, wholes: Mapping[str, datasets.Dataset], sources: Values, new: str | None
) -> dict[str, datasets.Dataset]:
    """The selections; `sources` loses those whose inputs another one has, too."""
    sets = {
        name: datasets.Spec.parse(sources[name]).select(whole) for name, whole in wholes.items()
    }
    for name, dataset in sets.items():
        if new is not None and dataset.split != sets[new].split:
            raise _other_inputs(directory, name, new)
    origin = {name: (datasets.location_of(sources[name]), one.split) for name, one in sets.items()}
    for name, dataset in list(sets.items()):
        own = set(dataset.indices.tolist())
        others = [sets[one] for one in sets if one != name and origin[one] == origin[name]]
        if any(own <= set(other.indices.tolist()) for other in others):
            del sets[name], sources[name]
    return sets


def _other_inputs(directory: Path, stored: str, new: str) -> ExperimentError:
    return ExperimentError(f"{directory}: holds inputs of {stored}; {new} needs another --out")


def _wholes(directory: Path, sources: Values, label: str | None) -> dict[str, datasets.Dataset]:
    """The data sets from which inputs are selected, by the texts that name the inputs."""
    try:
        return {name: datasets.load_whole(one, label=label) for name, one in sources.items()}
    except InputError as error:
        raise ExperimentError(
            f"{directory}: its inputs cannot be read again ({error}); give the experiment's file "
            "and --out"
        ) from None
