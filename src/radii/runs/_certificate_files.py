"""Certificates as files: written from a store for other machines, and checked one by one."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from radii.errors import InputError, NetworkError, StoreError
from radii.problem import CertificateCheck, Proof
from radii.runs._proof_checks import OtherClaim, ProofChecker
from radii.store import CertifiedStatement, Record, Store, content_hash

CERTIFICATE_SUFFIX = ".cert"
CERTIFICATE_INDEX = "certificates.csv"


@dataclass(frozen=True, slots=True)
class FileCheck:
    """What became of a certificate in a file; `claim` is what it says, None if it cannot be read.

    It `is_usable` if it is a certificate, of a network at hand.
    """

    path: Path
    check: CertificateCheck
    claim: Mapping[str, Any] | None = None
    is_usable: bool = True


# --- checking


def certificate_files(places: Sequence[Path]) -> list[Path]:
    """The files that are named, and all certificates in the folders that are."""
    files: list[Path] = []
    for place in places:
        if place.is_dir():
            inside = sorted(place.rglob(f"*{CERTIFICATE_SUFFIX}"))
            if not inside:
                raise StoreError(
                    f"{place}: holds neither a radii experiment nor certificates "
                    f"(*{CERTIFICATE_SUFFIX})"
                )
            files += inside
        elif place.is_file():
            files.append(place)
        else:
            raise StoreError(f"{place}: no such file or directory")
    return files


def check_files(
    places: Sequence[Path],
    *,
    networks: Sequence[Path] = (),
    exact: bool = False,
    jobs: int = 0,
    on_progress: Callable[[int, int], None] = lambda _done, _total: None,
) -> list[FileCheck]:
    """Check certificates in files, in order; each on the one of the networks that it is about.

    Networks are those that are given, and those in the folders that are named.
    """
    checker, files = ProofChecker.of(exact, jobs), certificate_files(places)
    found = [file for place in places if place.is_dir() for file in sorted(place.rglob("*.onnx"))]
    models = _models([*networks, *found])
    if not models:
        raise NetworkError(f"{files[0]}: name the network that it is about with --network NET.onnx")
    done: dict[Path, FileCheck] = {}
    on_progress(0, len(files))
    workers = jobs if len(files) > 1 else 0
    for path, said in checker.answers(serve_file_checks, (models,), files, workers):
        done[path] = said if isinstance(said, FileCheck) else FileCheck(path, said)
        on_progress(len(done), len(files))
    return [done[path] for path in files]


def _models(paths: Sequence[Path]) -> dict[str, bytes]:
    """ONNX by the hash that certificates name it with."""
    from radii.networks import read_model

    models = {}
    for path in paths:
        content = read_model(path).SerializeToString(deterministic=True)
        models[hashlib.sha256(content).hexdigest()] = content
    return models


def serve_file_checks(
    checker: ProofChecker, models: Mapping[str, bytes]
) -> Callable[[Path], FileCheck]:
    """What a process does that checks certificates of files."""
    import radii_check

    def check(path: Path) -> FileCheck:
        claim: dict[str, Any] | None = None

        def model_of(certificate: radii_check.Certificate) -> bytes:
            nonlocal claim
            claim = dict(certificate.claim)
            if (model := models.get(str(claim["network"]))) is not None:
                return model
            raise OtherClaim(
                f"it is about a network ({str(claim['network'])[:12]}) that was not given"
            )

        try:
            return FileCheck(path, checker.check(path.read_bytes(), model_of), claim)
        except (OtherClaim, radii_check.CertificateError, InputError, OSError) as error:
            why = str(getattr(error, "strerror", None) or error)
            return FileCheck(path, checker.refusal(why), claim, False)

    return check


# --- writing


@dataclass(frozen=True, slots=True)
class ExportedCertificates:
    """What was written: a file for each certificate, by the name of its network's file."""

    folder: Path
    files: Mapping[str, tuple[Path, ...]]

    @property
    def count(self) -> int:
        return sum(map(len, self.files.values()))


def export_certificates(
    directory: Path, folder: Path, *, networks: Sequence[Path] = ()
) -> ExportedCertificates:
    """Write every certificate of a store as a file, and the networks that they are about.

    A network's certificates lie in a folder beside its ONNX file, which has its normalisation in
    it; a table lists them all.
    """
    import pandas as pd

    from radii.runs._store_checks import proofs_of
    from radii.runs._stored_data import stored_networks

    with Store.open(directory) as store:
        proofs = ((record, proof) for record, _, proof in proofs_of(store.all_records()))
        kept = [(one, proof) for one, proof in proofs if proof.kept is not None]
        if not kept:
            raise StoreError(
                f"{directory}: holds no certificates; they are kept by radii run with --verifier "
                "native, unless --no-certificates is given"
            )
        loaded = stored_networks(store, [record for record, _ in kept], networks)
        names = _file_names([one.name for one in loaded.values()])
        homes = dict(zip(loaded, names, strict=True))
        try:
            for fingerprint, one in loaded.items():
                (folder / homes[fingerprint]).mkdir(parents=True, exist_ok=True)
                (folder / f"{homes[fingerprint]}.onnx").write_bytes(one.network.onnx_bytes)
            rows = dict(_written(store, record, proof, folder, homes) for record, proof in kept)
            table = pd.DataFrame(list(rows.values())).astype({"target": "Int64"})
            table.to_csv(folder / CERTIFICATE_INDEX, index=False)
        except OSError as error:
            raise StoreError(f"{folder}: cannot be written ({error.strerror or error})") from None
    files = {home: tuple(path for path in rows if path.parent.name == home) for home in names}
    return ExportedCertificates(folder, files)


def _written(
    store: Store, record: Record, proof: Proof, folder: Path, homes: Mapping[str, str]
) -> tuple[Path, dict[str, Any]]:
    """Write the certificate of a proof; the file, and its row of the table."""
    facts, statement = record.facts, record.statement(proof)
    assert statement is not None
    home = homes[facts.fingerprint]
    target = "" if facts.target is None else f"-to-{facts.target}"
    which = f"{facts.input}{target}-eps-{statement.eps:g}-{statement.certificate[:8]}"
    path = folder / home / f"{which}{CERTIFICATE_SUFFIX}"
    path.write_bytes(_content(store, statement))
    instance = store.instance(record.key)
    return path, {
        "file": path.relative_to(folder).as_posix(),
        "network": f"{home}.onnx",
        "input": facts.input,
        "label": facts.label,
        "target": facts.target,
        "property": facts.property,
        "norm": "" if instance is None else instance.norm.value,
        "eps": proof.eps,
        "arithmetic": str(proof.arithmetic),
        "sha256": statement.certificate,
    }


def _content(store: Store, statement: CertifiedStatement) -> bytes:
    content = store.certificate(statement.certificate)
    if content is None or content_hash(content) != statement.certificate:
        raise StoreError(
            f"{store.place}: the certificate {statement.certificate[:12]} is lost or has changed; "
            "radii check says which result that concerns"
        )
    return content


def _file_names(names: Sequence[str]) -> list[str]:
    """Names of networks as names of files, each once."""
    plain = [re.sub(r"[^\w.+-]+", "_", name.removesuffix(".onnx")).strip(".") for name in names]
    return [
        name if plain.count(name) == 1 and name else f"{name}-{place}"
        for place, name in enumerate(plain)
    ]
