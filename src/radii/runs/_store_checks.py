"""Proving it again: everything that a store says, compared with what it cannot change.

Certificates are checked on the networks' own bytes, inputs and counterexamples run on ONNX Runtime,
and inputs and labels are compared with the data. What the store keeps of earlier checks is not
asked: someone who can write numbers into it can write checks of them, too.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import Self

from radii.errors import StoreError
from radii.problem import CertificateCheck, CheckOutcome, Proof, Result
from radii.runs._proof_checks import ModelFile, ProofChecker, checker_name, serve_checks
from radii.runs._replays import EvidenceKind, EvidencePlace, InstanceReplay, RefusedEvidence
from radii.runs._stored_data import StoredData, StoredNetwork, stored_networks
from radii.store import CertifiedStatement, Record, Store

KEEPING_SECONDS = 5.0
"""How often checks are written down while others go on."""

Counted = Callable[[int, int], None]
"""Called with the number of things that are done, and their total."""


class StoreVerdict(StrEnum):
    """What a check of a store comes to."""

    HOLDS = "holds"
    """All numbers that it shows rest on something that was checked."""
    NOT_CHECKED = "not checked"
    """Nothing failed, and some of it, or all, could not be checked."""
    FAILS = "fails"


@dataclass(frozen=True, slots=True)
class UnreadableProof:
    """A proof whose certificate the checker cannot read, and why; nothing is known against it."""

    place: EvidencePlace
    reason: str

    def __str__(self) -> str:
        return f"{self.place}, proof at eps {self.place.eps:g}: {self.reason}"


@dataclass(frozen=True, slots=True)
class StoreCheck:
    """What became of the evidence in a store.

    Every proof is checked, failed, unreadable or without a certificate. `believed` are lower bounds
    without a certificate, which rest on the word of whoever gave them. `compared` counts the
    instances whose input and label are those of the data, and `without_data` says why others could
    not be compared. `unknown_selection`: nothing says which inputs were asked for, so that some may
    be left out. `checks` is what was said of each certificate. `not_kept` says why the outcome
    could not be written into the store.
    """

    place: Path
    checker: str
    numbers: str
    instances: int
    compared: int
    without_data: Mapping[str, str]
    unknown_selection: bool
    unnamed: int
    proofs: int
    checked: int
    without_certificate: int
    witnesses: int
    replayed: int
    failed: tuple[RefusedEvidence, ...]
    unreadable: tuple[UnreadableProof, ...]
    believed: tuple[EvidencePlace, ...]
    networks: tuple[StoredNetwork, ...] = ()
    seconds: float = 0.0
    not_kept: str = ""
    checks: Mapping[CertifiedStatement, CertificateCheck] = field(default_factory=dict)

    @property
    def verdict(self) -> StoreVerdict:
        if self.failed:
            return StoreVerdict.FAILS
        return StoreVerdict.NOT_CHECKED if self.unchecked else StoreVerdict.HOLDS

    @property
    def unchecked(self) -> tuple[str, ...]:
        """What could not be checked, a clause each."""
        return tuple(_unchecked(self))

    @property
    def accepted(self) -> frozenset[CertifiedStatement]:
        """What accepted certificates show."""
        return frozenset(one for one, check in self.checks.items() if check.is_accepted)

    @property
    def replayed_on(self) -> tuple[str, ...]:
        return tuple(sorted({one.network.replayed_on for one in self.networks}))

    @property
    def believed_by(self) -> dict[str, int]:
        """Whose word how many lower bounds rest on."""
        return dict(Counter(place.by for place in self.believed).most_common())


def _unchecked(check: StoreCheck) -> Iterator[str]:
    if not check.instances:
        yield "nothing is stored here"
        return
    if check.believed:
        words = ", ".join(f"{who} ({count})" for who, count in check.believed_by.items())
        yield f"lower bounds without a certificate, which rest on a word alone: {words}"
    if check.unreadable:
        counts = Counter(one.reason for one in check.unreadable).most_common()
        words = "; ".join(f"{reason} ({count})" for reason, count in counts)
        yield f"proofs whose certificate {check.checker} cannot read: {words}"
    if check.unnamed:
        yield f"{check.unnamed} instances of a property that no text stands for"
    if left := check.instances - check.compared:
        reasons = "; ".join(f"{text}: {reason}" for text, reason in check.without_data.items())
        yield f"the inputs and labels of {left} instances, whose data are not there ({reasons})"
    if check.unknown_selection:
        yield "whether inputs were left out: the store does not say which were asked for"


def check_store(
    directory: Path,
    *,
    networks: Sequence[Path] = (),
    data: str | None = None,
    exact: bool = False,
    jobs: int = 0,
    on_progress: Counted = lambda _done, _total: None,
) -> StoreCheck:
    """Check every certificate of a store by `radii_check`, and replay every input and witness.

    `networks` are files where those of the store are looked for first, and `data` is where its
    inputs are now, if they have moved. `jobs` 0: in this process. Outcomes are written into the
    store, unless a run is writing there.
    """
    checker, started = ProofChecker.of(exact, jobs), time.perf_counter()
    with Store.open(directory) as store:
        records = store.all_records()
        stated = (record.statement(proof) for record, _, proof in proofs_of(records))
        wanted = list(dict.fromkeys(one for one in stated if one is not None))
        loaded = stored_networks(store, records, networks)
        total, keeper = len(wanted) + len(records), _Keeper(directory)
        checks: dict[CertifiedStatement, CertificateCheck] = {}
        on_progress(0, total)
        with keeper:
            models = {
                key: ModelFile(
                    one.name, one.network.onnx_bytes, one.network.outputs_are_probabilities
                )
                for key, one in loaded.items()
            }
            arguments = (str(directory), models)
            for statement, check in checker.answers(serve_checks, arguments, wanted, jobs):
                checks[statement] = check
                keeper.keep(statement, check)
                on_progress(len(checks), total)
        instances = _InstanceChecks(store, loaded, data)
        for done, record in enumerate(records, len(wanted) + 1):
            instances.check(record.key)
            on_progress(done, total)
        instances.end(records)
    proofs = _ProofChecks.of(records, checks)
    return StoreCheck(
        place=directory,
        checker=checker_name(),
        numbers=checker.numbers,
        instances=len(records),
        compared=instances.data.compared,
        without_data=instances.data.missing,
        unknown_selection=instances.data.has_unknown_selection,
        unnamed=instances.unnamed,
        proofs=proofs.total,
        checked=proofs.checked,
        without_certificate=proofs.without_certificate,
        witnesses=instances.witnesses,
        replayed=instances.replayed,
        failed=(*proofs.failed, *instances.failed),
        unreadable=tuple(proofs.unreadable),
        believed=tuple(_believed(records)),
        networks=tuple(loaded.values()),
        seconds=time.perf_counter() - started,
        not_kept=keeper.refusal,
        checks=checks,
    )


# --- certificates


def proofs_of(records: Iterable[Record]) -> Iterator[tuple[Record, Result, Proof]]:
    """All proofs, those that no bracket rests on included."""
    for record in records:
        for result in record.results:
            if result.proof is not None:
                yield record, result, result.proof


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
        """Write what waits. Where another run writes, or the disk is read-only, checks go on."""
        if self._waiting and not self.refusal:
            try:
                with Store.create_or_open(self._directory) as store:
                    store.record_checks(self._waiting)
            except StoreError as error:
                self.refusal = str(error)
        self._waiting, self._last = [], time.monotonic()


@dataclass(slots=True)
class _ProofChecks:
    """All proofs, by what was said of their certificates."""

    total: int = 0
    checked: int = 0
    without_certificate: int = 0
    failed: list[RefusedEvidence] = field(default_factory=list)
    unreadable: list[UnreadableProof] = field(default_factory=list)

    @classmethod
    def of(
        cls,
        records: Iterable[Record],
        checks: Mapping[CertifiedStatement, CertificateCheck],
    ) -> Self:
        found = cls()
        for record, result, proof in proofs_of(records):
            found.total += 1
            statement = record.statement(proof)
            check = None if statement is None else checks[statement]
            where = EvidencePlace.of(record, proof.eps, result.author)
            if check is None:
                found.without_certificate += 1
            elif check.is_accepted:
                found.checked += 1
            elif check.outcome is CheckOutcome.UNREADABLE:
                found.unreadable.append(UnreadableProof(where, check.reason))
            else:
                found.failed.append(RefusedEvidence(where, EvidenceKind.PROOF, check.reason))
        return found


def _believed(records: Iterable[Record]) -> Iterator[EvidencePlace]:
    """Lower bounds whose own proof has no certificate."""
    for record in records:
        proof = record.proof
        if proof is None or proof.kept is not None:
            continue
        by = next((r.author for r in record.results if r.proof is proof), "")
        yield EvidencePlace.of(record, proof.eps, by)


# --- inputs and counterexamples


class _InstanceChecks:
    """What does not hold of the inputs, labels, outputs and counterexamples, one by one."""

    def __init__(
        self, store: Store, networks: Mapping[str, StoredNetwork], data: str | None
    ) -> None:
        self._store = store
        self._networks = {fingerprint: one.network for fingerprint, one in networks.items()}
        self._replays = {key: InstanceReplay(one) for key, one in self._networks.items()}
        self.data = StoredData(store, self._networks, data)
        self.failed: list[RefusedEvidence] = []
        self.unnamed = self.witnesses = self.replayed = 0

    def check(self, key: str) -> None:
        (record,) = self._store.records([key])
        fingerprint, instance = record.facts.fingerprint, self._store.instance(key)
        if instance is not None:
            probable = self._networks[fingerprint].outputs_are_probabilities
            instance = replace(instance, outputs_are_probabilities=probable)
        broken = [*self._replays[fingerprint].refused(record, instance)]
        witnesses = sum(result.witness is not None for result in record.results)
        lost = sum(one.kind is EvidenceKind.WITNESS for one in broken)
        self.witnesses += witnesses
        self.replayed += 0 if instance is None else witnesses - lost
        self.unnamed += instance is None
        others = (self.data.refused(record), self.data.other_question(record, instance))
        self.failed += [*broken, *(one for one in others if one is not None)]

    def end(self, records: Sequence[Record]) -> None:
        self.failed += self.data.left_out(records, self._store.place)
