"""The Python face of an experiment: networks and data in, a distribution out."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Sequence
from contextlib import nullcontext, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypedDict, Unpack

import numpy as np
import numpy.typing as npt

from radii.balls import Domain
from radii.datasets import as_dataset
from radii.distributions import Distribution
from radii.errors import DataError, ExperimentError, NetworkError
from radii.experiments import Observer, Plan, Settings, options_of, plan, progress_bar
from radii.networks import Network, as_network
from radii.queries import Grid, distinct_names
from radii.results import NO_NUMBER
from radii.store import PartChoice, Store

if TYPE_CHECKING:
    from radii.attacks import Attack
    from radii.balls import Features, Norm
    from radii.properties import Property, TargetedProperty
    from radii.search import Cuts, Search
    from radii.verdicts import Arithmetic
    from radii.verifiers import Verifier


class SettingValues(TypedDict, total=False):
    """What `Settings` reads in Python: its options, with every form in which each is taken.

    Editors complete these names and type checkers refuse others. A test holds them against the
    options of `Settings`, where each is described.
    """

    property: str | Property | type[TargetedProperty]
    norm: Literal["linf", "l2", "l1"] | Norm
    grid: str | Grid
    eps: float | None
    search: str | type[Search]
    verifier: str | Verifier
    attack: str | Attack
    k: int | None
    cuts: Literal["equal", "golden"] | Cuts | None
    timeout: float | str
    cpu_timeout: float | str
    budget: float
    budget_per_input: float | str | None
    seed: int
    memory: int | str | None
    device: Literal["cpu", "cuda", "mps"] | None
    tool: str | None
    arithmetic: str | Arithmetic | None
    features: str | Path | Features | None
    threshold: float | None
    scale: str | Sequence[float] | Features | None
    certificates: bool


def robustness_distribution(
    networks: Any,
    data: Any,
    *,
    domain: Domain | tuple[npt.ArrayLike, npt.ArrayLike] | None = None,
    mean: npt.ArrayLike | None = None,
    std: npt.ArrayLike | None = None,
    layout: str | None = None,
    out: Path | str | None = None,
    jobs: int | None = None,
    progress: bool = True,
    observer: Observer | None = None,
    **settings: Unpack[SettingValues],
) -> Distribution:
    """The brackets of every input of `data` on every network.

    A network is a radii `Network`, the path of an ONNX file, a torch module or a classifier of
    scikit-learn (then with `domain`, the valid inputs, such as (0, 1), and maybe `mean` and `std`),
    or a foolbox model; several are a list or tuple of them. `data` is a data set, a spec such as
    "mnist:test[0:100]", a pair (inputs, labels) of arrays or tensors, or a torch data set.

    With `out` the results are kept in that directory. Running again continues, and asking for more
    (inputs, networks, a finer grid, another norm) grows it: what is known is not computed again,
    and what this call asked for is returned. `jobs` is a number of worker processes, by default one
    per core as on the command line; workers do not import the script, and time limits are hard. 0
    works in this process, as is done by default where a verifier, attack, search or property is
    defined in the script or notebook itself. `progress` shows a bar on terminals and in notebooks.
    `settings` are those of `Settings`, such as verifier="milp" or arithmetic="real".
    """
    chosen = Settings.from_options(settings)
    several = networks if isinstance(networks, list | tuple) else (networks,)
    if not several:
        raise ExperimentError("networks is empty: give at least one")
    files = [each for each in several if isinstance(each, str | Path)]
    names = dict(zip(files, distinct_names(files), strict=True))
    dataset = as_dataset(_with_known_labels(data, several))
    known = [
        _network(
            each,
            dataset.shape,
            domain=domain,
            mean=mean,
            std=std,
            name=names[each] if isinstance(each, str | Path) else None,
            opaque=not chosen.search_class().needs_verifier,
        )
        for each in several
    ]
    measuring = plan(known, dataset, chosen, layout=layout)
    shows_bar = progress and observer is None
    with (
        progress_bar() if shows_bar else nullcontext(observer) as told,
        Store.in_memory() if out is None else Store.create_or_open(Path(out)) as store,
    ):
        chosen_jobs = _usual_jobs(measuring) if jobs is None else jobs
        measuring.run(store, jobs=chosen_jobs, observer=told, grows=True)
        return _asked(store, measuring)


def _asked(store: Store, measuring: Plan) -> Distribution:
    """The brackets of this call, in its order: a directory may hold others."""
    settings = measuring.settings.to_json()
    choice = PartChoice(property=settings["property"], norm=measuring.settings.norm)
    if measuring.settings.arithmetic is not None and len(store.parts()) > 1:
        choice = replace(choice, arithmetic=measuring.settings.arithmetic)
    found = Distribution.from_store(store, choice=choice)
    columns = (found.column(name).tolist() for name in ("fingerprint", "input", "target"))
    rows = {key: place for place, key in enumerate(zip(*columns, strict=True))}
    targets = (instance.property.target for instance in measuring.instances)
    places = [
        rows[instance.network, instance.index, NO_NUMBER if target is None else target]
        for instance, target in zip(measuring.instances, targets, strict=True)
    ]
    return found if places == list(range(len(found))) else found.select(places)


def _network(model: Any, shape: tuple[int, ...], **given: Any) -> Network:
    """The model as a network for inputs of that shape.

    Arrays (N, a, b) are grey pictures or signals with channels, and only a module can tell: where
    it does not take the first, the second is tried.
    """
    try:
        return as_network(model, input_shape=shape, **given)
    except NetworkError:
        if len(shape) != 3 or shape[0] != 1 or not hasattr(model, "named_parameters"):
            raise
        with suppress(NetworkError):
            return as_network(model, input_shape=shape[1:], **given)
        raise


def _with_known_labels(data: Any, networks: Sequence[Any]) -> Any:
    """Of a pair (inputs, labels), labels as scikit-learn has them become places in `classes_`."""
    known = [np.asarray(each.classes_) for each in networks if hasattr(each, "classes_")]
    if not known or not isinstance(data, tuple | list) or len(data) != 2:
        return data
    classes, labels = known[0], np.asarray(data[1])
    if np.array_equal(classes, np.arange(len(classes))) or labels.ndim != 1:
        return data
    if any(not np.array_equal(each, classes) for each in known):
        raise ExperimentError(
            "the classifiers were fitted to different classes: measure each alone"
        )
    absent = ~np.isin(labels, classes)
    if absent.any():
        raise DataError(f"label {labels[absent][0]!r} is not one of the classes {classes.tolist()}")
    return data[0], np.searchsorted(classes, labels)


def _usual_jobs(measuring: Plan) -> int:
    """As on the command line; none where a worker could not import what it has to work with."""
    settings = measuring.settings
    parts = (settings.verifier, settings.attack, settings.search, settings.property)
    kinds: list[type] = [part if isinstance(part, type) else type(part) for part in parts]
    opaque = (network.graph.opaque for network in measuring.networks)
    modules = (one.module for one in opaque if one is not None and one.module is not None)
    kinds += [type(part) for module in modules for part in module.modules()]
    is_local = any(
        kind.__module__ == "__main__" or "<locals>" in kind.__qualname__ for kind in kinds
    )
    return 0 if is_local else measuring.default_jobs()


def _whole_signature() -> inspect.Signature:
    """With every setting and its default in place of `**settings`: help and notebooks show it."""
    own = inspect.signature(robustness_distribution)
    hints, fields = SettingValues.__annotations__, dataclasses.fields(Settings)
    options = options_of(Settings)
    given = [
        inspect.Parameter(
            one.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=one.default,
            annotation=hints[one.name].__forward_arg__,
        )
        for one in fields
        if one.name in options and one.name in hints
    ]
    kept = [each for each in own.parameters.values() if each.kind is not each.VAR_KEYWORD]
    return own.replace(parameters=[*kept, *given])


vars(robustness_distribution)["__signature__"] = _whole_signature()
