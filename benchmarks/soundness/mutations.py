"""Certificates that were tampered with: none may be accepted that covers a counterexample."""

from __future__ import annotations

import json
import struct
import zlib
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.soundness.certified import is_accepted
from radii.attacks import MinimumNorm
from radii.networks import Network
from radii.problem import Grid, Instance, Query, Witness
from radii.testing import NetworkFamily, random_instance, random_network
from radii.verifiers import BranchAndBound, Limits

Arrays = dict[str, npt.NDArray[Any]]
Mutation = Callable[[dict[str, Any], Arrays, np.random.Generator], None]

GRID = Grid("0.002", "0.6", "0.002")


def opened(certificate: bytes) -> tuple[dict[str, Any], Arrays]:
    """The header and the arrays of a certificate."""
    _, length = struct.unpack_from("<II", certificate, 8)
    header = json.loads(certificate[16 : 16 + length])
    content, arrays, place = zlib.decompress(certificate[16 + length :]), {}, 0
    for entry in header["arrays"]:
        dtype, count = np.dtype(entry["dtype"]), int(np.prod(entry["shape"]))
        found = np.frombuffer(content, dtype, count, place)
        arrays[entry["name"]] = found.reshape(entry["shape"]).copy()
        place += count * dtype.itemsize
    return header, arrays


def closed(header: Mapping[str, Any], arrays: Arrays) -> bytes:
    """The certificate of a header and arrays."""
    listed = [{"name": n, "dtype": a.dtype.str, "shape": list(a.shape)} for n, a in arrays.items()]
    text = json.dumps({**header, "arrays": listed}).encode()
    content = zlib.compress(b"".join(a.tobytes() for a in arrays.values()), 1)
    return b"RADIICRT" + struct.pack("<II", 1, len(text)) + text + content


def _entry(arrays: Arrays, name: str, rng: np.random.Generator) -> tuple[Any, int] | None:
    flat = arrays[name].reshape(-1)
    return (flat, int(rng.integers(flat.size))) if flat.size else None


def _scaled(name: str) -> Mutation:
    def mutate(_: dict[str, Any], arrays: Arrays, rng: np.random.Generator) -> None:
        if (found := _entry(arrays, name, rng)) is not None:
            flat, place = found
            flat[place] = flat[place] * rng.choice([0, 0.5, 0.99, 1.01, 2, -1]) + rng.normal()

    return mutate


def _redrawn(name: str) -> Mutation:
    def mutate(_: dict[str, Any], arrays: Arrays, rng: np.random.Generator) -> None:
        if (found := _entry(arrays, name, rng)) is not None:
            flat, place = found
            flat[place] = rng.choice([flat[place] + 1, flat[place] - 1, 0, -1, rng.choice(flat)])

    return mutate


def _eps(header: dict[str, Any], arrays: Arrays, rng: np.random.Generator) -> None:
    factor = rng.uniform(1.0, 1.5)
    header["claim"]["eps"] = header["claim"]["eps"] * factor
    if rng.random() < 0.8:
        arrays["eps"] = arrays["eps"] * factor


def _order(_: dict[str, Any], arrays: Arrays, rng: np.random.Generator) -> None:
    names = ("node", "part", "round", "unit", "side", "bound")
    count = len(arrays["node"])
    if count > 1:
        order = np.arange(count)
        first, second = rng.choice(count, 2, replace=False)
        order[[first, second]] = order[[second, first]]
        for name in names if rng.random() < 0.5 else (str(rng.choice(names)),):
            arrays[name] = arrays[name][order]


def _better_ground(_: dict[str, Any], arrays: Arrays, rng: np.random.Generator) -> None:
    """All bounds a bit tighter, as somebody would who wants to claim more."""
    factor = np.float32(rng.uniform(0.5, 0.999))
    arrays["lower"] *= factor
    arrays["upper"] *= factor


def _dropped(_: dict[str, Any], arrays: Arrays, rng: np.random.Generator) -> None:
    """The last nodes, or the last lemmas, with what belongs to them."""
    lists = ("parent split_unit split_sign spec", "node part round unit side bound")
    names = str(rng.choice(lists)).split()
    count = int(rng.integers(1, 3))
    for name in names:
        arrays[name] = arrays[name][:-count]


MUTATIONS: dict[str, Mutation] = {
    "eps": _eps,
    "order": _order,
    "tighter": _better_ground,
    "dropped": _dropped,
    **{f"scaled {n}": _scaled(n) for n in ("lower", "upper", "bound", "gamma", "beta", "input")},
    **{
        f"redrawn {n}": _redrawn(n)
        for n in ("slopes", "unit", "side", "split_unit", "split_sign", "parent", "spec", "node")
    },
}


def mutant(certificate: bytes, rng: np.random.Generator) -> tuple[str, bytes]:
    """One to three changes of a certificate, and a larger eps in half of the cases."""
    if rng.random() < 0.15:
        return "truncated", certificate[: int(rng.integers(len(certificate)))]
    if rng.random() < 0.15:
        content = bytearray(certificate)
        content[int(rng.integers(len(content)))] ^= 1 << int(rng.integers(8))
        return "bit", bytes(content)
    header, arrays = opened(certificate)
    names = [str(n) for n in rng.choice(list(MUTATIONS), int(rng.integers(1, 4)), replace=False)]
    if rng.random() < 0.5 and "eps" not in names:
        names.append("eps")
    with np.errstate(all="ignore"):
        for name in names:
            MUTATIONS[name](header, arrays, rng)
    return " + ".join(names), closed(header, arrays)


def covers(certificate: bytes, witness: Witness) -> bool:
    """Whether the claim is about the witness, and forbids it: then it is false."""
    header, arrays = opened(certificate)
    claim, point = header["claim"], np.ravel(witness.input).astype(np.float64)
    if claim["requirement"] != {"kind": "one-to-any", "label": claim["requirement"].get("label")}:
        return False
    outputs, label = np.ravel(witness.outputs), int(claim["requirement"]["label"])
    is_broken = bool((np.delete(outputs, label) >= outputs[label]).any())
    is_inside = bool((point >= arrays["low"]).all() and (point <= arrays["high"]).all())
    distance = np.abs(point - arrays["input"]).max()
    return is_broken and is_inside and bool(distance <= claim["eps"])


def certified(seed: int) -> tuple[Network, Instance, bytes, Witness] | None:
    """A random network with a certificate just below its closest known counterexample."""
    family = list(NetworkFamily)[seed % len(NetworkFamily)]
    network = random_network(family, seed, inputs=14, units=24)
    instance = random_instance(network, seed)
    (attacked,) = MinimumNorm().attack(network, [Query(instance, 0.598)])
    if attacked.witness is None:
        return None
    values = GRID.values[: GRID.count_below(attacked.witness.distance)]
    if not values:
        return None
    verifier = BranchAndBound(certificates=True)
    found = verifier.certify(network, instance, values, Limits(seconds=20))
    witness = found.witness or attacked.witness
    if found.proof is None or found.proof.certificate is None:
        return None
    return network, instance, found.proof.certificate, witness


def hunt(seeds: range, mutants_each: int) -> tuple[Counter[str], list[str]]:
    """How many mutants there were, were accepted, and covered a counterexample; and the names of
    those that were accepted although they cover one, or that the checker does not read."""
    counts: Counter[str] = Counter()
    wrong = []
    for seed in seeds:
        made = certified(seed)
        if made is None:
            continue
        network, _, certificate, witness = made
        rng = np.random.default_rng(seed)
        for _ in range(mutants_each):
            name, content = mutant(certificate, rng)
            counts["mutants"] += 1
            try:
                accepted = is_accepted(content, network)
            except Exception as error:
                accepted = False
                wrong.append(f"seed {seed}: {name}: {type(error).__name__}: {error}")
            counts["accepted"] += accepted
            try:
                is_false = covers(content, witness)
            except Exception:
                is_false = False  # it cannot be read
            counts["false"] += is_false
            if accepted and is_false:
                wrong.append(f"seed {seed}: {name}")
    return counts, wrong
