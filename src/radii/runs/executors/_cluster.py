"""A Ray cluster: how to reach it, and how many seats, places to work, each of its nodes has."""

from __future__ import annotations

import importlib
import logging
import math
import os
import re
import socket
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from radii.errors import ExperimentError, InputError, MissingExtra, RadiiError
from radii.processes import StoppedCall, call_guarded

REACH_SECONDS = 5.0
"""Until a connection to an address must stand."""
CONNECT_SECONDS = 90.0
"""Until a cluster must have answered, import of Ray from a slow disk included. Ray by itself tries
for two minutes, then ends the process."""

NO_REPORTS = ("RAY_DEDUP_LOGS_SKIP_REGEX", ".")
"""Ray prints what happens to nodes to standard output, where our results go; read at its import."""
QUIET_OPTIONS: Mapping[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """A Ray cluster, and what of a node each query gets. `gpus` None: as its device needs."""

    address: str = "auto"
    cpus: float = 1.0
    gpus: float | None = None

    def __post_init__(self) -> None:
        if not _is_share(self.cpus) or self.cpus == 0:
            raise ExperimentError(
                f"--ray-cpus {self.cpus:g} must be a whole number, or between 0 and 1"
            )
        if self.gpus is not None and not _is_share(self.gpus):
            raise ExperimentError(
                f"--ray-gpus {self.gpus:g} must be a whole number, or between 0 and 1"
            )
        if self.address != "auto" and not re.fullmatch(r"[^/\s]+:\d{1,5}", self.address):
            raise ExperimentError(
                f"--ray '{self.address}' must be the HOST:PORT of a cluster's head, or auto"
            )

    def for_device(self, device: str | None) -> Cluster:
        """With a GPU for each query that computes on one, unless a number was given."""
        needs_gpu = device is not None and device.startswith("cuda")
        return replace(self, gpus=float(needs_gpu)) if self.gpus is None else self

    def needs(self, memory_bytes: int | None) -> dict[str, float]:
        """What a query needs, by Ray's names of resources."""
        needed = {"CPU": self.cpus, "GPU": self.gpus or 0.0, "memory": float(memory_bytes or 0)}
        return {name: amount for name, amount in needed.items() if amount > 0}


def _is_share(amount: float) -> bool:
    """Ray divides single units only."""
    return 0 <= amount <= 1 or (amount > 1 and float(amount).is_integer())


@dataclass(frozen=True, slots=True)
class ClusterNode:
    """A node that is alive: Ray's id of it, its address, and what it has in total."""

    id: str
    host: str
    resources: Mapping[str, float]

    def seats(self, needs: Mapping[str, float]) -> int:
        """How many queries fit on it side by side."""
        fits = (self.resources.get(name, 0.0) / amount for name, amount in needs.items())
        return math.floor(min(fits) + 1e-9)


def load_ray() -> Any:
    """The package, which is optional and slow to import."""
    os.environ.setdefault(*NO_REPORTS)
    try:
        return importlib.import_module("ray")
    except ModuleNotFoundError:
        raise MissingExtra("ray", "ray", "--ray") from None


def alive_nodes() -> list[ClusterNode]:
    """The nodes of the connected cluster, as Ray sees them now."""
    return [
        ClusterNode(node["NodeID"], node["NodeManagerAddress"], node["Resources"])
        for node in load_ray().nodes()
        if node["Alive"]
    ]


def head_answers() -> bool:
    """Whether the connected cluster's head can be reached; without it, Ray waits for a minute."""
    host, _, port = load_ray().get_runtime_context().gcs_address.rpartition(":")
    try:
        socket.create_connection((host, int(port)), timeout=REACH_SECONDS).close()
    except OSError:
        return False
    return True


def connect(address: str) -> bool:
    """Connect this process to a cluster. False: it was connected already, and stays so."""
    ray = load_ray()
    if ray.is_initialized():
        return False
    _check_reachable(address)
    ray.init(address, **QUIET_OPTIONS)
    return True


def _check_reachable(address: str) -> None:
    """An ExperimentError unless a cluster answers. Tried in a process of its own: see above."""
    if address != "auto":
        host, _, port = address.rpartition(":")
        try:
            socket.create_connection((host, int(port)), timeout=REACH_SECONDS).close()
        except (OSError, OverflowError) as error:
            reason = getattr(error, "strerror", None) or error
            raise ExperimentError(f"--ray {address}: nobody answers there ({reason})") from None
    try:
        stopped = call_guarded(_try_to_connect, address, until=time.monotonic() + CONNECT_SECONDS)
    except InputError:
        raise
    except RadiiError as error:
        reason = str(error).partition(": ")[2].partition("\n")[0] or str(error)
        if "Could not find any running Ray instance" in reason:
            reason = "no Ray cluster runs here; `ray start --head` starts one"
        raise ExperimentError(f"--ray {address}: {reason}") from None
    if isinstance(stopped, StoppedCall):
        raise ExperimentError(f"--ray {address}: no Ray cluster answers there")


def _try_to_connect(address: str) -> None:
    ray = load_ray()
    ray.init(address, **QUIET_OPTIONS)
    ray.shutdown()
