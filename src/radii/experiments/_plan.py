"""Everything an experiment needs, loaded and checked; and how it runs, and goes on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

from radii import __version__, datasets, verifiers
from radii.errors import DataError, ExperimentError, UnsupportedQuery
from radii.execution import (
    Agenda,
    Case,
    Cluster,
    Executor,
    Inline,
    LocalWorkers,
    RayWorkers,
    Toolbox,
    drive,
)
from radii.experiments import _selection as selection
from radii.experiments._description import Experiment, Settings
from radii.experiments._fields import differences
from radii.networks import Network, load_network
from radii.processes import check_room, memory_share, usable_workers
from radii.queries import Instance, Query, distinct_names
from radii.search import Question, QuestionKind
from radii.store import Store, selection_of
from radii.verdicts import Arithmetic, Result, Verdict
from radii.witnesses import check_witness

ATTACK_BATCH = 16
"""Instances attacked together: enough to fill the matrix products, few enough to lose little."""


class Observer(Protocol):
    """Is told how a run goes; a progress bar, mostly."""

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
    """Everything loaded and checked: ready to run, and to run again."""

    networks: tuple[Network, ...]
    paths: tuple[str, ...]
    data: str
    split: str
    instances: tuple[Instance, ...]
    settings: Settings

    def __post_init__(self) -> None:
        if not self.instances:
            raise DataError(f"{self.data}: the selection is empty")
        fingerprints = [network.fingerprint for network in self.networks]
        names = [network.name for network in self.networks]
        for name, network in zip(self.paths, self.networks, strict=True):
            if fingerprints.count(network.fingerprint) > 1:
                raise ExperimentError(f"{name}: the same network is given twice")
            if names.count(network.name) > 1:
                raise ExperimentError(
                    f"several networks are called '{network.name}': give each a name of its own"
                )
            verifier = self._verifier()
            reason = self._attack_refusal(network)
            if reason is None and verifier is not None:
                reason = self._refusal(verifier, network)
            kind = self.settings.search_class()
            if kind.needs_radius and not isinstance(verifier, verifiers.GridVerifier):
                reason = f"search '{kind.name}' needs verifier 'native'"
            if reason:
                raise UnsupportedQuery(f"{name}: {reason}")

    def identity(self) -> dict[str, Any]:
        """What makes this experiment this one; the same on every machine and in every folder."""
        return {
            **self.settings.to_json(),
            "networks": {network.name: network.fingerprint for network in self.networks},
            "domain": [network.domain.key() for network in self.networks],
            "data": selection_of([instance.key for instance in self.instances]),
        }

    def run(
        self,
        store: Store,
        *,
        jobs: int = 0,
        cluster: Cluster | None = None,
        observer: Observer | None = None,
        agenda: Agenda | None = None,
    ) -> None:
        """Measure what the store does not hold yet, as far as the agenda wants.

        `jobs` 0: in this process, no hard limits; on a cluster, as many as it has room for. While
        the store's pause flag is raised it waits between questions; starting a run lowers it.
        """
        if jobs < 0:
            raise ExperimentError(f"jobs {jobs} must be a number of workers, or 0 for none")
        observer, flag, agenda = observer or _Silent(), store.pause_flag, agenda or Agenda()
        check_room(self.settings.memory)  # a worker will hold as much as this process does now

        def on_results(answers: Sequence[tuple[Case, Question, Result]]) -> None:
            store.record([(case.instance.key, question, r) for case, question, r in answers])
            for case, question, result in answers:
                observer.answered(case, question, result)

        def on_held(is_held: bool) -> None:
            if flag is not None and is_held:
                flag.hold()
            agenda.held(is_held)
            observer.held(is_held)

        with self._executor(jobs, cluster) as executor:
            self._begin(store)
            if flag is not None:
                flag.lower()
            self._record_misclassified(store)
            cases = self.cases(store)
            observer.started(len(cases))
            drive(
                cases,
                executor,
                timeout=self.settings.timeout,
                cpu_timeout=self.settings.cpu_timeout,
                budget=self.settings.budget,
                on_results=on_results,
                on_finished=observer.finished,
                is_paused=lambda: flag is not None and flag.is_raised,
                on_held=on_held,
                agenda=agenda,
            )

    def _executor(self, jobs: int, cluster: Cluster | None) -> Executor:
        toolbox = self._toolbox()
        if cluster is not None:
            return RayWorkers(toolbox, cluster.for_device(self.settings.device), jobs or None)
        if jobs and toolbox.memory_bytes is None:  # rather a MEMOUT than a machine without memory
            toolbox = replace(toolbox, memory_bytes=memory_share(jobs))
        return LocalWorkers(toolbox, jobs) if jobs else Inline(toolbox)

    def default_jobs(self) -> int:
        """As many workers as there are cores and memory for, containers' limits included."""
        memory = self.settings.memory
        return default_jobs() if memory is None else min(default_jobs(), usable_workers(memory))

    def _begin(self, store: Store) -> None:
        identity, known = self.identity(), store.experiment()
        if known is None:
            described = {
                network.fingerprint: (network.name, str(Path(path).resolve()))
                for network, path in zip(self.networks, self.paths, strict=True)
            }
            source = {"source": self.data, "split": self.split}
            store.begin({**identity, **source}, described, self.instances)
        elif changes := _changes(known, identity):
            raise ExperimentError(_refusal_text(changes, known, identity))

    def _record_misclassified(self, store: Store) -> None:
        """An input at which the property fails as it stands has radius 0: it is its own witness."""
        networks = {network.fingerprint: network for network in self.networks}
        question, known = Question(QuestionKind.REPLAY, 0.0), store.results()
        results = []
        for instance in self.instances:
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

    def cases(self, store: Store) -> list[Case]:
        """Every instance with what the store holds of it told to its search.

        What nobody answered is asked again, and the time that it took is not held against it.
        """
        answered, own = store.results(), self.settings.proof_seconds()
        counts: dict[str, int] = {}
        cases = []
        for instance in self.instances:
            place = counts.get(instance.network, 0)
            counts[instance.network] = place + 1
            case = Case(instance, self.settings.make_search(), batch=place // ATTACK_BATCH)
            for question, result in answered.get(instance.key, ()):
                if self._is_unanswered(result):
                    case.search.recall(result)
                    continue
                if (
                    question.kind in (QuestionKind.PROVE, QuestionKind.RADIUS)
                    and result.allowed_seconds is None
                ):
                    result = replace(result, allowed_seconds=own)
                case.search.tell(question, result)
                case.spent += result.own_seconds
            cases.append(case)
        return cases

    def _is_unanswered(self, result: Result) -> bool:
        """It was nobody's answer under the limits of the experiment.

        An ERROR is a worker that was killed, a node that was lost, a verifier that failed. Without
        a stated limit of memory, what was too much depended on the machine, and who else used it.
        """
        is_machine_full = result.verdict is Verdict.MEMOUT and self.settings.memory is None
        return result.verdict is Verdict.ERROR or is_machine_full

    def _refusal(self, verifier: verifiers.Verifier, network: Network) -> str | None:
        """Why the verifier cannot decide what is asked of the network; None if it can."""
        own = [case for case in self.instances if case.network == network.fingerprint]
        reasons = (verifier.unsupported(network, case.norm, case.kind) for case in own[:1])
        return next(reasons, None)

    def _attack_refusal(self, network: Network) -> str | None:
        """Why the attack cannot break what is asked of the network; None if it can, or is idle."""
        if not self.settings.search_class().needs_attack:
            return None
        attack = self.settings.make_attack()
        own = (case for case in self.instances if case.network == network.fingerprint)
        return next((attack.unsupported(case.kind) for case in own), None)

    def _verifier(self) -> verifiers.Verifier | None:
        needs_verifier = self.settings.search_class().needs_verifier
        return self.settings.make_verifier() if needs_verifier else None

    def _toolbox(self) -> Toolbox:
        settings = self.settings
        needs_attack = settings.search_class().needs_attack
        return Toolbox(
            networks={network.fingerprint: network for network in self.networks},
            attack=settings.make_attack() if needs_attack else None,
            verifier=self._verifier(),
            seed=settings.seed,
            grid=settings.grid,
            memory_bytes=settings.memory,
        )


def prepare(experiment: Experiment) -> Plan:
    """Load and check everything an experiment names, before any work starts."""
    experiment = experiment.resolved()
    networks = tuple(
        load_network(
            path, domain=experiment.domain, mean=experiment.mean, std=experiment.std, name=name
        )
        for path, name in zip(experiment.networks, distinct_names(experiment.networks), strict=True)
    )
    dataset = datasets.load_spec(experiment.data)
    return plan(
        networks,
        dataset,
        experiment,
        layout=experiment.layout,
        paths=experiment.networks,
        data=experiment.data,
    )


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
    instances = [
        instance
        for network in networks
        for instance in selection.select(
            network, dataset, property=settings.property, norm=settings.norm, layout=layout
        )
    ]
    names = tuple(paths) or tuple(network.name for network in networks)
    source = data or dataset.name
    return Plan(tuple(networks), names, source, dataset.split or "", tuple(instances), settings)


def _changes(was: dict[str, Any], now: dict[str, Any]) -> list[str]:
    """How two experiments differ, in words."""
    old, new = was.get("networks") or {}, now["networks"]
    changes = [
        f"the network {name} has changed" for name in new if old.get(name, new[name]) != new[name]
    ]
    changes += [f"the network {name} is new" for name in new if name not in old]
    changes += [f"the network {name} is left out" for name in old if name not in new]
    apart = ("networks", "domain", "data")
    changes += differences(was, {name: now[name] for name in now if name not in apart})
    domain, other = (" and ".join(dict.fromkeys(each["domain"])) for each in (was, now))
    changes += differences({"domain": domain}, {"domain": other})
    if not changes and now["data"] != was.get("data"):  # every other change alters the instances
        changes.append("other inputs")
    return changes


def _refusal_text(changes: Sequence[str], was: dict[str, Any], now: dict[str, Any]) -> str:
    """Why a directory is not gone on with. Proofs in two arithmetics are never mixed unasked."""
    old, new = was.get("arithmetic"), now["arithmetic"]
    if len(changes) == 1 and old and new and old != new:
        old_scope, new_scope = (Arithmetic.parse(text).scope for text in (old, new))
        return (
            f"the proofs in this directory hold {old_scope}: go on with --arithmetic {old}, or "
            f"choose another --out for proofs {new_scope}"
        )
    return f"this directory holds another experiment ({'; '.join(changes)}); choose another --out"


def default_jobs() -> int:
    """As many workers as there are cores, and memory if each needs what this process holds now."""
    return usable_workers()
