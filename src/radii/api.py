"""The Python face of an experiment: networks and data in, a distribution out."""

from __future__ import annotations

import dataclasses
import inspect
import warnings
from collections.abc import Sequence
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypedDict, Unpack

import numpy as np
import numpy.typing as npt

from radii.datasets import Spec, absolute_source, as_dataset, class_names, load_whole
from radii.errors import DataError, ExperimentError, NetworkError
from radii.networks import Network, as_classifier, as_network
from radii.problem import Domain, Grid, Shard, distinct_names
from radii.runs import (
    DataTerms,
    Observer,
    Plan,
    Settings,
    options_of,
    plan,
    progress_bar,
)
from radii.statistics import NO_NUMBER, Distribution
from radii.store import PartChoice, Store

if TYPE_CHECKING:
    from radii.attacks import Attack
    from radii.problem import Arithmetic, Features, Norm, Property, TargetedProperty
    from radii.strategy import Cuts, Search
    from radii.verifiers import Verifier


class SettingValues(TypedDict, total=False):
    """What `Settings` reads in Python: its options, with every form in which each is taken.

    Editors complete these names and type checkers refuse others.
    """

    # types of settings: written by scripts/derived_texts.py from the fields of `Settings`
    property: str | Property | type[TargetedProperty]
    norm: Literal["linf", "l2", "l1"] | Norm
    grid: str | Sequence[float] | Path | Grid
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
    shard: str | Shard | None
    certificates: bool
    # end of types of settings


def robustness_distribution(
    networks: Any,
    data: Any,
    *,
    domain: Domain | tuple[npt.ArrayLike, npt.ArrayLike] | None = None,
    mean: npt.ArrayLike | None = None,
    std: npt.ArrayLike | None = None,
    layout: str | None = None,
    classes: Sequence[str] | Path | str | None = None,
    out: Path | str | None = None,
    replace: bool = False,
    jobs: int | None = None,
    progress: bool = True,
    observer: Observer | None = None,
    **settings: Unpack[SettingValues],
) -> Distribution:
    """The brackets of every input of `data` on every network.

    A network is a radii `Network`, the path of an ONNX file, a torch module or a classifier of
    scikit-learn (then with `domain`, the valid inputs, such as (0, 1), and maybe `mean` and `std`),
    or a foolbox model; several are a list or tuple of them. `data` is a data set, a spec such as
    "mnist:test[0:100]", a pair (inputs, labels) of arrays or tensors, a torch data set, or a torch
    `DataLoader`. Labels are numbers or words; `classes` names the outputs in their order, as a list
    or a file, and is needed where labels are words and not all of them occur.

    With `out` the results are kept in that directory. Running again continues, and asking for more
    (inputs, networks, a finer grid, another norm) grows it: what is known is not computed again,
    and what this call asked for is returned. Inputs whose label or values have changed since they
    were measured are refused; with `replace` they are measured anew, and what is stored about them
    is dropped. `jobs` is a number of worker processes, by default one
    per core as on the command line; workers do not import the script, and time limits are hard. 0
    works in this process, as is done by default where a verifier, attack, property, operator or
    torch module is defined in the script or notebook itself, which no worker can import.
    `progress` shows a bar on terminals and in notebooks.
    `settings` are those of `Settings`, such as verifier="milp" or arithmetic="real".
    """
    chosen = Settings.from_options(settings)
    several = networks if isinstance(networks, list | tuple) else (networks,)
    if not several:
        raise ExperimentError("networks is empty: give at least one")
    files = [each for each in several if isinstance(each, str | Path)]
    names = dict(zip(files, distinct_names(files), strict=True))
    data = _with_known_labels(data, several)
    spec = Spec.parse(str(data)) if isinstance(data, str | Path) else None
    whole = as_dataset(data) if spec is None else load_whole(spec)
    known = [
        _network(
            each,
            whole.shape,
            domain=domain,
            mean=mean,
            std=std,
            name=names[each] if isinstance(each, str | Path) else None,
            opaque=not chosen.search_class().needs_verifier,
        )
        for each in several
    ]
    known = [as_classifier(network, chosen.threshold) for network in known]
    terms = DataTerms.of(out)
    dataset = terms.apply(whole, known, None if classes is None else class_names(classes))
    dataset = dataset if spec is None else spec.select(dataset)
    chosen = dataclasses.replace(chosen, threshold=None)
    measuring = plan(known, dataset, chosen, layout=layout)
    if spec is not None:  # so that whoever has the results can load the same inputs
        text = str(data)
        measuring = dataclasses.replace(measuring, data=text, sources={text: absolute_source(text)})
    for sentence in dataset.notes:
        warnings.warn(sentence, stacklevel=2)
    shows_bar = progress and observer is None
    with (
        progress_bar() if shows_bar else nullcontext(observer) as shown_to,
        Store.in_memory() if out is None else Store.create_or_open(Path(out)) as store,
    ):
        if jobs is None:
            jobs = 0 if measuring.sending_obstacle else measuring.default_jobs()
        measuring.run(store, jobs=jobs, observer=shown_to, grows=True, replace_changed=replace)
        return _asked(store, measuring)


def _asked(store: Store, measuring: Plan) -> Distribution:
    """The brackets of this call, in its order: a directory may hold others."""
    settings = measuring.settings.to_json()
    choice = PartChoice(property=settings["property"], norm=measuring.settings.norm)
    if measuring.settings.arithmetic is not None and len(store.parts()) > 1:
        choice = dataclasses.replace(choice, arithmetic=measuring.settings.arithmetic)
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
