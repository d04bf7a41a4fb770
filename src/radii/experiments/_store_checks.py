"""Proving it again: every certificate and every witness of a store, on its networks' own bytes."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Self

import numpy as np

from radii.errors import StoreError
from radii.experiments._proof_checks import (
    ModelFile,
    check_arithmetic,
    check_memory,
    checker_name,
    refusal,
    serve_checks,
)
from radii.experiments._stored_networks import stored_networks
from radii.networks import Network
from radii.processes import ProcessPool, Request, StoppedCall
from radii.queries import Instance, Query
from radii.store import CertifiedStatement, Record, Store, content_hash
from radii.verdicts import CertificateCheck, Proof, Result, Witness
from radii.witnesses import check_witness

KEEPING_SECONDS = 5.0
"""How often checks are written down while others go on."""

Counted = Callable[[int, int], None]
"""Is told how much is done, and of how much."""


@dataclass(frozen=True, slots=True)
class EvidencePlace:
    """Whose proof or counterexample it is, and at which eps or distance; `by` gave it."""

    network: str
    input: int
    target: int | None
    eps: float
    by: str

    @classmethod
    def of(cls, record: Record, eps: float, by: str) -> EvidencePlace:
        facts = record.facts
        return cls(facts.network, facts.input, facts.target, eps, by)

    def __str__(self) -> str:
        target = "" if self.target is None else f" against class {self.target}"
        return f"{self.network}, input {self.input}{target}"


@dataclass(frozen=True, slots=True)
class RefusedEvidence:
    """A proof or a counterexample that does not hold, and why."""

    place: EvidencePlace
    is_proof: bool
    reason: str

    def __str__(self) -> str:
        kind = "proof at eps" if self.is_proof else "counterexample at distance"
        return f"{self.place}, {kind} {self.place.eps:g}: {self.reason}"


@dataclass(frozen=True, slots=True)
class StoreCheck:
    """What became of the evidence in a store.

    `believed` are lower bounds without a certificate, which rest on the word of whoever gave them.
    `checks` is what was said of each certificate. `not_kept` says why the outcome could not be
    written into the store.
    """

    place: Path
    checker: str
    numbers: str
    proofs: int
    checked: int
    without_certificate: int
    witnesses: int
    replayed: int
    failed: tuple[RefusedEvidence, ...]
    believed: tuple[EvidencePlace, ...]
    replayed_on: tuple[str, ...] = ()
    seconds: float = 0.0
    not_kept: str = ""
    checks: Mapping[CertifiedStatement, CertificateCheck] = field(default_factory=dict)

    @property
    def accepted(self) -> frozenset[CertifiedStatement]:
        """What accepted certificates show."""
        return frozenset(one for one, check in self.checks.items() if check.is_accepted)

    @property
    def checkers(self) -> tuple[str, ...]:
        """Who has accepted certificates."""
        return tuple(sorted({one.checker for one in self.checks.values() if one.is_accepted}))

    @property
    def believed_by(self) -> dict[str, int]:
        """Whose word how many lower bounds rest on."""
        return dict(Counter(place.by for place in self.believed).most_common())


def check_store(
    directory: Path,
    *,
    networks: Sequence[Path] = (),
    exact: bool = False,
    jobs: int = 0,
    replays: bool = True,
    only_new: bool = False,
    on_progress: Counted = lambda _done, _total: None,
) -> StoreCheck:
    """Check every certificate of a store by `radii_check`, and replay every witness.

    `networks` are files where those of the store are looked for first. `jobs` 0: in this process.
    With `only_new`, certificates that were checked before count as they did then, if their content
    is still the same. Outcomes are written into the store, unless a run is writing there.
    """
    check_arithmetic(exact)
    started = time.perf_counter()
    with Store.open(directory) as store:
        records = store.all_records()
        known = _known_checks(store, records) if only_new else {}
        wanted = [one for one in _statements(records) if one not in known]
        witnesses = sum(r.witness is not None for one in records for r in one.results)
        total = len(wanted) + (witnesses if replays else 0)
        loaded = stored_networks(store, records, networks) if total else {}
        on_progress(0, total)
        keeper, found = _Keeper(directory), {}
        with keeper:
            for statement, check in _checks(directory, loaded, wanted, exact, jobs):
                found[statement] = check
                keeper.keep(statement, check)
                on_progress(len(found), total)
        broken: list[RefusedEvidence] = []
        for done, refused in enumerate(_replays(store, loaded) if replays else (), len(wanted) + 1):
            broken += [] if refused is None else [refused]
            on_progress(done, total)
    return replace(
        _outcome(directory, records, {**known, **found}, broken, exact),
        witnesses=witnesses,
        replayed=witnesses - len(broken) if replays else 0,
        replayed_on=tuple(sorted({network.replayed_on for network in loaded.values()})),
        seconds=time.perf_counter() - started,
        not_kept=keeper.refusal,
    )


# --- certificates


def proofs_of(records: Iterable[Record]) -> Iterator[tuple[Record, Result, Proof]]:
    """All proofs, those that no bracket rests on included."""
    for record in records:
        for result in record.results:
            if result.proof is not None:
                yield record, result, result.proof


def _statements(records: Iterable[Record]) -> list[CertifiedStatement]:
    stated = (record.statement(proof) for record, _, proof in proofs_of(records))
    return list(dict.fromkeys(one for one in stated if one is not None))


def _known_checks(
    store: Store, records: Iterable[Record]
) -> dict[CertifiedStatement, CertificateCheck]:
    """Checks of contents that are what they were."""
    known = {}
    for record, _, proof in proofs_of(records):
        statement = record.statement(proof)
        if statement is None or proof.kept is None or proof.kept.check is None:
            continue
        content = store.certificate(statement.certificate)
        if content is not None and content_hash(content) == statement.certificate:
            known[statement] = proof.kept.check
    return known


def _checks(
    directory: Path,
    networks: Mapping[str, Network],
    wanted: Sequence[CertifiedStatement],
    exact: bool,
    jobs: int,
) -> Iterator[tuple[CertifiedStatement, CertificateCheck]]:
    """Each statement with what the checker says, as they end."""
    if not wanted:
        return
    models = {
        fingerprint: ModelFile(network.name, network.onnx_bytes, network.outputs_are_probabilities)
        for fingerprint, network in networks.items()
    }
    memory = check_memory(jobs)
    arguments = (str(directory), models, exact, memory)
    if jobs == 0:
        check = serve_checks(*arguments)
        for statement in wanted:
            yield statement, check(statement)
        return
    with ProcessPool(serve_checks, *arguments, jobs=min(jobs, len(wanted))) as pool:
        for request, answer in pool.answers([Request((one,)) for one in wanted]):
            (statement,) = request.arguments
            if isinstance(answer, StoppedCall):
                answer = refusal(f"its check ended early: {answer.message}", exact=exact)
            yield statement, answer


class _Keeper:
    """Writes checks into the store from time to time, as long as that is possible."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._waiting: list[tuple[CertifiedStatement, CertificateCheck]] = []
        self._last = time.monotonic()
        self.refusal = ""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self._write()

    def keep(self, statement: CertifiedStatement, check: CertificateCheck) -> None:
        self._waiting.append((statement, check))
        if time.monotonic() - self._last > KEEPING_SECONDS:
            self._write()

    def _write(self) -> None:
        """Write what waits. Another run, or a disk that is read-only, is no reason to stop."""
        if self._waiting and not self.refusal:
            try:
                with Store.create_or_open(self._directory) as store:
                    store.record_checks(self._waiting)
            except StoreError as error:
                self.refusal = str(error)
        self._waiting, self._last = [], time.monotonic()


def _outcome(
    place: Path,
    records: Sequence[Record],
    checks: Mapping[CertifiedStatement, CertificateCheck],
    broken: Sequence[RefusedEvidence],
    exact: bool,
) -> StoreCheck:
    proofs = checked = without = 0
    failed: list[RefusedEvidence] = []
    for record, result, proof in proofs_of(records):
        proofs += 1
        statement = record.statement(proof)
        check = None if statement is None else checks[statement]
        if check is None:
            without += 1
        elif check.is_accepted:
            checked += 1
        else:
            where = EvidencePlace.of(record, proof.eps, result.author)
            failed.append(RefusedEvidence(where, True, check.reason))
    return StoreCheck(
        place=place,
        checker=checker_name(),
        numbers="exact" if exact else "float64",
        proofs=proofs,
        checked=checked,
        without_certificate=without,
        witnesses=0,
        replayed=0,
        failed=(*failed, *broken),
        believed=tuple(_believed(records)),
        checks=checks,
    )


def _believed(records: Iterable[Record]) -> Iterator[EvidencePlace]:
    """Lower bounds whose own proof has no certificate."""
    for record in records:
        proof = record.proof
        if proof is None or proof.kept is not None:
            continue
        by = next((r.author for r in record.results if r.proof is proof), "")
        yield EvidencePlace.of(record, proof.eps, by)


# --- witnesses


def _replays(store: Store, networks: Mapping[str, Network]) -> Iterator[RefusedEvidence | None]:
    """For each witness of the store None, or why it is none."""
    for record in store.records():
        witnesses = [(r.author, r.witness) for r in record.results if r.witness is not None]
        instance = store.instance(record.key) if witnesses else None
        for by, witness in witnesses:
            where = EvidencePlace.of(record, witness.distance, by)
            reason = _refuted(networks[record.facts.fingerprint], instance, witness)
            yield None if reason is None else RefusedEvidence(where, False, reason)


def _refuted(network: Network, instance: Instance | None, witness: Witness) -> str | None:
    """Why a stored witness is none; None if it replays, to the bit and as close as it says."""
    if instance is None:
        return "no text says what its property is"
    probable = network.outputs_are_probabilities
    query = Query(replace(instance, outputs_are_probabilities=probable), witness.distance)
    replayed = check_witness(network, query.specification, witness.input)
    if replayed is None:
        return f"it breaks nothing on {network.replayed_on}"
    if not np.array_equal(replayed.input, witness.input):
        return f"it lies further away than {witness.distance:g}"
    return None
