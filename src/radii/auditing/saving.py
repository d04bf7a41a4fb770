"""Files of an audit: a table of all claims, and a witness for every refuted one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from radii import __version__
from radii.auditing.audits import Audit
from radii.auditing.findings import Finding
from radii.errors import StoreError

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["TABLE", "WITNESSES", "findings_frame", "save_witnesses"]

TABLE = "audit.csv"
WITNESSES = "witnesses"
NETWORKS = "networks"


def findings_frame(found: Sequence[Finding]) -> pd.DataFrame:
    """One row a claim. `closest` and `published_upper` are inf where there is no counterexample."""
    import pandas as pd

    rows = []
    for finding in found:
        claim, witness = finding.claim, finding.witness
        rows.append(
            {
                "network": claim.network,
                "input": claim.input,
                "label": finding.instance.label,
                "target": claim.target,
                "split": claim.split,
                "claimed": claim.eps,
                "published_upper": claim.upper,
                "published_seconds": claim.seconds,
                "status": finding.status.value,
                "closest": finding.closest,
                "ratio": finding.ratio,
                "witness_distance": math.nan if witness is None else witness.distance,
                "witness_class": None if witness is None else witness.predicted,
                "margin": finding.margin,
                "witness": "" if witness is None else f"{WITNESSES}/{_file_name(finding)}",
            }
        )
    frame = pd.DataFrame(rows)
    return frame.astype({"target": "Int64", "witness_class": "Int64"})


def save_witnesses(audit: Audit, found: Sequence[Finding], directory: Path) -> list[Path]:
    """Write one .npz for each refuted claim, and drop those of an earlier audit in `directory`.

    `image` and `witness` are what the network's file takes, bit by bit. Only where a normalisation
    was given, the file does not hold it: then the networks that do are written beside.
    """
    folder = directory / WITNESSES
    networks = {network.fingerprint: network for network in audit.plan.networks}
    paths = dict(zip(networks, audit.plan.paths, strict=True))
    written = []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for old in folder.glob("*.npz"):
            old.unlink()
        for fingerprint, network in networks.items():
            if audit.is_normalized:
                (directory / NETWORKS).mkdir(exist_ok=True)
                name = Path(paths[fingerprint]).name
                (directory / NETWORKS / name).write_bytes(network.onnx_bytes)
        for finding in found:
            instance, witness, claim = finding.instance, finding.witness, finding.claim
            if witness is None:
                continue
            shape = networks[instance.network].graph.nodes[0].shape
            written.append(folder / _file_name(finding))
            np.savez(
                written[-1],
                network=Path(paths[instance.network]).name,
                fingerprint=instance.network,
                input=instance.index,
                label=instance.label,
                target=-1 if claim.target is None else claim.target,
                norm=instance.norm.value,
                claimed=claim.eps,
                distance=witness.distance,
                margin=finding.margin,
                image=instance.input.reshape(shape),
                witness=witness.input.reshape(shape),
                outputs=witness.outputs,
                replayed_on=witness.replayed_on,
                radii=__version__,
            )
    except OSError as error:
        raise StoreError(f"{directory}: cannot be written ({error.strerror or error})") from None
    return written


def _file_name(finding: Finding) -> str:
    claim = finding.claim
    network = claim.network.replace("/", "_")
    split = f"_{claim.split}" if claim.split else ""
    target = "" if claim.target is None else f"_to_{claim.target}"
    return f"{network}{split}_{claim.input}{target}_at_{claim.eps:g}.npz"
