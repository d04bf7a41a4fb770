"""Everything an experiment needs, loaded and checked; and how it runs, and goes on."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

from radii import __version__, datasets, verifiers
from radii.errors import DataError, ExperimentError, UnsupportedQuery
from radii.networks import Network, as_classifier, load_network
from radii.plugins import sending_obstacle
from radii.problem import (
    Domain,
    Instance,
    LipschitzRequirement,
    Query,
    Result,
    Verdict,
    check_witness,
    distinct_names,
)
from radii.processes import check_room, memory_share, usable_workers
from radii.runs import _selection as selection
from radii.runs._data_terms import DataTerms, reading_notes
from radii.runs._description import Experiment, Settings
from radii.runs._driver import FirstFailures, drive
from radii.runs._fields import options_of
from radii.runs._growth import (
    arithmetic_refusal,
    new_step,
    other_arithmetics,
    other_experiment,
    same_step,
)
from radii.runs._knowledge import Knowledge, Retry, as_stored
from radii.runs._selection import resolved_features
from radii.runs.executors._base import Executor, Inline, Toolbox
from radii.runs.executors._cluster import Cluster
from radii.runs.executors._local import LocalWorkers
from radii.runs.executors._ray_workers import RayWorkers
from radii.store import Store, selection_of
from radii.strategy import (
    Agenda,
    Case,
    CaseAnswers,
    Question,
    QuestionKind,
    Schedule,
    ScheduleLimits,
)

ATTACK_BATCH = 16
"""Instances attacked together: enough to fill the matrix products, few enough to lose little."""

BATCHES_A_WORKER = 2
"""At least as many batches as that, so that no worker waits for another's batch to end."""


class Observer(Protocol):
    """Called as a run goes on, for example by a progress bar to draw itself."""

    def started(self, total: int) -> None: ...
    def answered(self, case: Case, question: Question, result: Result, /) -> None: ...
    def finished(self, case: Case, /) -> None: ...
    def held(self, is_held: bool, /) -> None: ...


class _Silent:
    def started(self, total: int) -> None: ...
    def answered(self, case: Case, question: Question, result: Result, /) -> None: ...
    def finished(self, case: Case, /) -> None: ...
    def held(self, is_held: bool, /) -> None: ...


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """Everything loaded and checked: ready to run, and to run again.

    `data` names the inputs in words; `sources` maps these to what loads them again from any folder,
    and `feeding` says how they get into each network. Both are empty where they come from Python.
    `inputs` are digests of what the data set gives, by index. Of a shard, `positions` are those of
    its instances in the whole selection, and `whole` is a digest of that.
    `class_names` are the words that the data have for labels 0, 1, ...; empty where they have none.
    `notes` are sentences about how the data were read.
    """

    networks: tuple[Network, ...]
    paths: tuple[str, ...]
    data: str
    split: str
    instances: tuple[Instance, ...]
    settings: Settings
    feature_names: tuple[str, ...] = ()
    sources: Mapping[str, str] = field(default_factory=dict)
    feeding: tuple[Mapping[str, Any] | None, ...] = ()
    class_names: tuple[str, ...] = ()
    inputs: Mapping[int, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    positions: tuple[int, ...] = ()
    whole: str | None = None

    def __post_init__(self) -> None:
        if not self.instances:
            raise DataError(f"{self.data}: the selection is empty")
        fingerprints = [network.fingerprint for network in self.networks]
        names = [network.name for network in self.networks]
        kind, verifier = self.settings.search_class(), self._toolbox().verifier
        for name, network in zip(self.paths, self.networks, strict=True):
            if fingerprints.count(network.fingerprint) > 1:
                raise ExperimentError(f"{name}: the same network is given twice")
            if names.count(network.name) > 1:
                raise ExperimentError(
                    f"several networks are called '{network.name}': give each a name of its own"
                )
            reason = self._attack_refusal(network)
            if reason is None and verifier is not None:
                reason = self._refusal(verifier, network)
            if kind.needs_radius and not isinstance(verifier, verifiers.GridVerifier):
                reason = f"search '{kind.name}' needs verifier 'native'"
            if reason:
                raise UnsupportedQuery(f"{name}: {reason}")
        asked: set[tuple[str, int, str]] = set()
        for one in self.instances:
            if (one.network, one.index, one.property.spec) in asked:
                raise DataError(f"{self.data}: input {one.index} is selected twice")
            asked.add((one.network, one.index, one.property.spec))

    def identity(self) -> dict[str, Any]:
        """What makes this experiment this one; the same on every machine and in every folder."""
        return {
            **self.settings.to_json(),
            "networks": {network.name: network.fingerprint for network in self.networks},
            "domain": [network.domain.key() for network in self.networks],
            "data": selection_of([instance.key for instance in self.instances]),
            **({} if self.whole is None else {"whole": self.whole}),
        }

    def of_its_shard(self) -> Plan:
        """With the instances of the shard that its settings name, if they name one.

        The inputs of each network are dealt out in turn, each with all of its targets: whoever
        starts first, and on which machine, makes no difference.
        """
        shard, settings = self.settings.shard, replace(self.settings, shard=None)
        if shard is None or shard.is_whole:
            return replace(self, settings=settings)
        positions = selection.of_shard(self.instances, shard)
        if not positions:
            inputs = len({one.index for one in self.instances})
            raise DataError(
                f"{self.data}: shard {shard} has no inputs: there are {inputs}; use fewer shards"
            )
        own = tuple(self.instances[place] for place in positions)
        indices = {one.index for one in own}
        return replace(
            self,
            instances=own,
            inputs={index: digest for index, digest in self.inputs.items() if index in indices},
            positions=tuple(positions),
            whole=selection_of([one.key for one in self.instances]),
        )

    def run(
        self,
        store: Store,
        *,
        jobs: int = 0,
        cluster: Cluster | None = None,
        observer: Observer | None = None,
        agenda: Agenda | None = None,
        grows: bool = False,
        retry: Retry | None = None,
        replace_changed: bool = False,
    ) -> None:
        """Measure what the store does not hold yet, as far as the agenda wants.

        `jobs` 0: in this process, no hard limits; on a cluster, as many as it has room for. While
        the store's pause flag is raised it waits between questions; starting a run lowers it. A
        store that holds something else is refused, unless it `grows`: then it keeps this beside
        it. `retry` asks questions again that earlier steps left without an answer. Inputs whose
        label or values have changed are refused, or with `replace_changed` measured anew.
        """
        if jobs < 0:
            raise ExperimentError(f"jobs {jobs} must be a number of workers, or 0 for none")
        observer, flag = observer or _Silent(), store.pause_flag
        check_room(self.settings.memory)  # a worker will hold as much as this process does now

        def on_results(answers: CaseAnswers) -> None:
            store.record([(case.instance.key, question, r) for case, question, r in answers])
            for case, question, result in answers:
                observer.answered(case, question, result)
            for tool in tools:
                tool.note(answers)

        def on_held(is_held: bool) -> None:
            if flag is not None and is_held:
                flag.hold()
            observer.held(is_held)

        with self._executor(jobs, cluster, certifies=store.is_on_disk) as executor:
            self.begin(store, grows=grows, retry=retry, replace_changed=replace_changed)
            if flag is not None:
                flag.lower()
            self._record_misclassified(store)
            cases = self.cases(store, jobs=jobs)
            tools = self._followed_tools(cases)
            chosen = self.settings
            limits = ScheduleLimits(
                timeout=chosen.timeout, cpu_timeout=chosen.cpu_timeout, budget=chosen.budget
            )
            observer.started(len(cases))
            drive(
                Schedule(cases, limits, agenda, now=time.monotonic()),
                executor,
                on_results=on_results,
                on_finished=observer.finished,
                is_paused=lambda: flag is not None and flag.is_raised,
                on_held=on_held,
            )
            if all(case.search.done for case in cases):
                store.end_step()
            for tool in tools:
                tool.check()

    def _followed_tools(self, cases: Sequence[Case]) -> list[FirstFailures]:
        """The verifier and the attack, neither of which may fail on all that it is asked."""
        toolbox, followed = self._toolbox(), []
        if (verifier := toolbox.verifier) is not None:
            every = (verifier, *getattr(verifier, "members", ()))
            authors = [(one.name, one.version) for one in every]
            title = f"verifier '{verifier.name}'"
            followed.append(FirstFailures(title, authors, cases, is_attack=False))
        if (attack := toolbox.attack) is not None:
            authors, title = [(attack.name, attack.version)], f"attack '{attack.name}'"
            followed.append(FirstFailures(title, authors, cases, is_attack=True))
        return followed

    @property
    def sending_obstacle(self) -> str | None:
        """Why worker processes cannot be given this work; None if they can."""
        properties = {instance.property for instance in self.instances}
        return sending_obstacle(self._toolbox(), properties)

    def _executor(self, jobs: int, cluster: Cluster | None, *, certifies: bool = False) -> Executor:
        toolbox = self._toolbox(certifies=certifies)
        obstacle = self.sending_obstacle if jobs or cluster is not None else None
        if obstacle is not None:
            raise ExperimentError(
                f"worker processes cannot import what they need: {obstacle}; move it into a "
                "module, or use jobs=0"
            )
        if cluster is not None:
            return RayWorkers(toolbox, cluster.for_device(self.settings.device), jobs or None)
        if jobs and toolbox.memory_bytes is None:  # rather a MEMOUT than a machine without memory
            toolbox = replace(toolbox, memory_bytes=memory_share(jobs))
        return LocalWorkers(toolbox, jobs) if jobs else Inline(toolbox)

    def default_jobs(self) -> int:
        """As many workers as there are cores and memory for, containers' limits included."""
        memory = self.settings.memory
        return default_jobs() if memory is None else min(default_jobs(), usable_workers(memory))

    def begin(
        self,
        store: Store,
        *,
        grows: bool = False,
        retry: Retry | None = None,
        replace_changed: bool = False,
    ) -> None:
        """Write down what is asked for beside what is there, unless it is there already.

        All or nothing: a run that is killed has begun, or has not.
        """
        as_stored(self.instances, store)
        step = same_step(self, store, retry=retry, is_grown=grows)
        if step is not None:
            store.go_on(step.number)
            return
        known = store.experiment()
        if known is not None and not grows:
            raise ExperimentError(other_experiment(known, self))
        new = new_step(self, store, retry, replace_changed=replace_changed)
        networks = {
            network.fingerprint: (network.name, str(Path(path).resolve()))
            for network, path in zip(self.networks, self.paths, strict=True)
        }
        feeding = dict(zip(networks, self.feeding, strict=False))
        own = [network for network in self.networks if feeding.get(network.fingerprint) is None]
        store.begin(
            new.described,
            networks,
            self.instances,
            feeding=feeding,
            models={network.fingerprint: network.onnx_bytes for network in own},
            inputs=self.inputs,
            positions=self.positions,
            replaced=new.replaced,
            summary=new.summary,
        )

    def growth(
        self,
        store: Store,
        retry: Retry | None = None,
        *,
        asks_arithmetic: bool = True,
        replace_changed: bool = False,
    ) -> str:
        """What a store gets beside what it holds, in words; empty where it is new or goes on.

        Proofs in another arithmetic join only those who ask for them: where it was chosen by
        default, an ExperimentError says what to write.
        """
        known = store.experiment()
        if known is None or same_step(self, store, retry=retry, is_grown=True):
            return ""
        if not asks_arithmetic and (others := other_arithmetics(self, store)):
            raise ExperimentError(arithmetic_refusal(others[-1], str(self.settings.arithmetic)))
        return new_step(self, store, retry, replace_changed=replace_changed).summary

    def _record_misclassified(self, store: Store) -> None:
        """An input at which the property fails as it stands has radius 0: it is its own witness."""
        networks = {network.fingerprint: network for network in self.networks}
        question, known = Question(QuestionKind.REPLAY, 0.0), store.results()
        results = []
        for instance in as_stored(self.instances, store):
            is_known = any(other == question for other, _ in known.get(instance.key, ()))
            if instance.holds or is_known:
                continue
            specification = Query(instance, 0.0).specification
            witness = check_witness(networks[instance.network], specification, instance.input)
            if witness is not None:
                result = Result(
                    Verdict.NOT_ROBUST, 0.0, "replay", __version__, 0.0, witness=witness
                )
                results.append((instance.key, question, result))
        store.record(results)

    def cases(self, store: Store, *, jobs: int = 1) -> list[Case]:
        """A case for every instance, whose search knows what the store has; for `jobs` workers.

        Questions that were never answered are asked again, and their time does not count.
        """
        answered, knowledge = store.results_of_steps(), Knowledge.of(self.settings, store)
        counts: dict[str, int] = {}
        fair = math.ceil(len(self.instances) / (BATCHES_A_WORKER * max(1, jobs)))
        together = min(ATTACK_BATCH, max(1, fair))
        cases = []
        for instance in as_stored(self.instances, store):
            place = counts.get(instance.network, 0)
            counts[instance.network] = place + 1
            case = Case(instance, self.settings.make_search(), batch=place // together)
            knowledge.tell(case, answered.get(instance.key, ()))
            cases.append(case)
        return cases

    def _refusal(self, verifier: verifiers.Verifier, network: Network) -> str | None:
        """Why the verifier cannot decide what is asked of the network; None if it can."""
        own = [case for case in self.instances if case.network == network.fingerprint]
        reasons = (verifier.unsupported(network, case.norm, case.kind) for case in own[:1])
        is_scaled = any(case.features is not None for case in own[:1])
        if is_scaled and own[0].kind is LipschitzRequirement:
            return f"no verifier bounds {own[0].kind.description} in scales of features"
        return next(reasons, None)

    def _attack_refusal(self, network: Network) -> str | None:
        """Why the attack cannot break what is asked of the network; None if it can, or is idle."""
        if not self.settings.search_class().needs_attack:
            return None
        attack = self.settings.make_attack()
        if (reason := attack.gradient_refusal(network)) is not None:
            return reason
        own = (case for case in self.instances if case.network == network.fingerprint)
        return next((attack.unsupported(case.kind) for case in own), None)

    def _toolbox(self, *, certifies: bool = True) -> Toolbox:
        """Certificates are only made where results are kept, so that they can be checked."""
        settings, kind = self.settings, self.settings.search_class()
        if not certifies:
            settings = replace(settings, certificates=False)
        return Toolbox(
            networks={network.fingerprint: network for network in self.networks},
            attack=settings.make_attack() if kind.needs_attack else None,
            verifier=settings.make_verifier() if kind.needs_verifier else None,
            seed=settings.seed,
            grid=settings.grid,
            memory_bytes=settings.memory,
        )


def prepare(experiment: Experiment, out: Path | None = None) -> Plan:
    """Load and check everything an experiment names, before any work starts.

    Data are read on the terms of the directory `out`, if results are there already.
    """
    experiment = experiment.resolved()
    whole, domain = None, experiment.domain
    if experiment.features is not None or experiment.scale is not None:
        whole = datasets.load_whole(experiment.data, label=experiment.label)
        features = resolved_features(experiment, whole, domain)
        experiment = replace(experiment, features=features, scale=None)
        domain = domain if features is None else features.domain(domain)
    names, opaque = (
        distinct_names(experiment.networks),
        not experiment.search_class().needs_verifier,
    )
    networks = tuple(
        fed_network(path, name, domain, experiment.feeding(), opaque=opaque)
        for path, name in zip(experiment.networks, names, strict=True)
    )
    whole = whole or datasets.load_whole(experiment.data, label=experiment.label)
    classed = DataTerms.of(out).apply(whole, networks, experiment.classes)
    made = plan(
        networks,
        datasets.Spec.parse(experiment.data).select(classed),
        replace(experiment, threshold=None),  # which has been put into the networks
        layout=experiment.layout,
        paths=experiment.networks,
        data=experiment.data,
    )
    sources = {experiment.data: datasets.absolute_source(experiment.data)}
    return replace(made, sources=sources, feeding=(experiment.feeding(),) * len(networks))


def plan(
    networks: Sequence[Network],
    dataset: datasets.Dataset,
    settings: Settings,
    *,
    layout: str | None = None,
    paths: Sequence[str] = (),
    data: str = "",
) -> Plan:
    """The plan for networks and data that are in memory already."""
    settings = settings.resolved()
    networks = [as_classifier(network, settings.threshold) for network in networks]
    if dataset.assumes_order:
        dataset = DataTerms().apply(dataset, networks)
    names = tuple(paths) or tuple(network.name for network in networks)
    sets = {data or dataset.name: dataset}
    return plan_of(networks, names, sets, settings, layouts=[layout] * len(networks))


def fed_network(
    path: str | Path, name: str, domain: Domain, feeding: Mapping[str, Any], *, opaque: bool
) -> Network:
    """The classifier in a file; `feeding` says how inputs get into it, as a store keeps that."""
    options = options_of(Experiment)
    mean, std, threshold = (
        None if (value := feeding.get(each)) is None else options[each].read(value)
        for each in ("mean", "std", "threshold")
    )
    network = load_network(path, domain=domain, mean=mean, std=std, name=name, opaque=opaque)
    return as_classifier(network, threshold)


def plan_of(
    networks: Sequence[Network],
    paths: tuple[str, ...],
    sets: Mapping[str, datasets.Dataset],
    settings: Settings,
    *,
    layouts: Sequence[str | None],
    sources: Mapping[str, str] | None = None,
    feeding: Sequence[Mapping[str, Any] | None] = (),
) -> Plan:
    """The plan for selections of one data set, by the texts that name them; each network has its
    layout. What several selections have in common is measured once."""
    first = next(iter(sets.values()))
    features = resolved_features(settings, first, networks[0].domain if networks else None)
    settings = replace(settings, features=features, scale=None)
    instances: list[Instance] = []
    for network, layout in zip(networks, layouts, strict=True):
        known: set[str] = set()
        for dataset in sets.values():
            own = selection.select(
                network,
                dataset,
                property=settings.property,
                norm=settings.norm,
                layout=layout,
                features=features,
            )
            instances += [one for one in own if one.key not in known]
            known |= {one.key for one in own}
    made = Plan(
        tuple(networks),
        paths,
        " and ".join(sets),
        first.split or "",
        tuple(instances),
        settings,
        first.features or (),
        sources or {},
        tuple(feeding),
        first.classes or (),
        {index: digest for one in sets.values() for index, digest in one.digests().items()},
        tuple(note for text, one in sets.items() for note in reading_notes(text, one, networks)),
    )
    return made.of_its_shard()


def default_jobs() -> int:
    """As many workers as there are cores, and memory if each needs what this process holds now."""
    return usable_workers()
