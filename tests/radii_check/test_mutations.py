"""No mutated certificate is accepted that claims more than is true; none raises anything else."""

from __future__ import annotations

import json
import struct
import zlib
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tiny import Tiny, certificate, proven

from radii_check import CertificateError, check, read_certificate

RELAXED = settings(deadline=None, suppress_health_check=list(HealthCheck))
EXAMPLES = settings().max_examples
"""40 in `make test`, ten times as many in `make test-all`."""
SEEDS = range(6)
MODELS = {seed: proven(seed) for seed in SEEDS}


def judged(tiny: Tiny, content: bytes) -> bool:
    """Whether it is accepted; if it is, what it claims must be true."""
    try:
        report = check(content, tiny.model)
    except CertificateError as error:
        assert len(str(error).splitlines()) == 1
        return False
    if report.accepted:
        assert tiny.worst(read_certificate(content)) > -1e-9
    else:
        assert len(report.reason.splitlines()) == 1
    return report.accepted


@pytest.mark.parametrize("seed", SEEDS)
def test_proofs_with_splits_are_accepted(seed: int) -> None:
    tiny, claim, arrays = MODELS[seed]
    assert judged(tiny, certificate(claim, arrays))
    assert check(certificate(claim, arrays), tiny.model, exact=True).accepted


def with_eps(claim: Any, arrays: Any, eps: float) -> tuple[Any, Any]:
    return claim | {"eps": eps}, arrays | {"eps": [eps]}


@pytest.mark.parametrize("seed", SEEDS)
def test_what_a_counterexample_refutes_is_rejected(seed: int) -> None:
    tiny, claim, arrays = MODELS[seed]
    for eps in np.linspace(claim["eps"], 8.0, 40):
        judged(tiny, certificate(*with_eps(claim, arrays, float(eps))))


def numbers(kind: str) -> st.SearchStrategy[Any]:
    if kind == "f":
        near = st.floats(-8, 8, width=16)
        return near | st.sampled_from([0.0, -0.0, 1.0, -1.0, 1e-300, 3e38, -3e38])
    return st.integers(-3, 8) | st.sampled_from([-128, 127])


@st.composite
def mutated_arrays(draw: st.DrawFn) -> tuple[Tiny, bytes]:
    """One to three numbers, lengths or places of arrays changed, and perhaps the claim."""
    tiny, claim, arrays = MODELS[draw(st.sampled_from(SEEDS))]
    arrays = {name: np.array(value) for name, value in arrays.items()}
    if draw(st.booleans()):
        claim, arrays = with_eps(claim, arrays, claim["eps"] * draw(st.floats(0.9, 8.0)))
        arrays = {name: np.array(value) for name, value in arrays.items()}
    for _ in range(draw(st.integers(1, 3))):
        name = draw(st.sampled_from(sorted(arrays)))
        held = arrays[name]
        kind = "f" if held.dtype.kind == "f" else "i"
        match draw(st.sampled_from(["set", "drop", "repeat", "swap", "scale"])):
            case "set" if held.size:
                flat = held.ravel().copy()
                flat[draw(st.integers(0, held.size - 1))] = draw(numbers(kind))
                arrays[name] = flat.reshape(held.shape)
            case "drop" if len(held):
                arrays[name] = np.delete(held, draw(st.integers(0, len(held) - 1)), axis=0)
            case "repeat" if len(held):
                place = draw(st.integers(0, len(held) - 1))
                arrays[name] = np.insert(held, place, held[place], axis=0)
            case "swap" if len(held) > 1:
                order = draw(st.permutations(range(len(held))))
                arrays[name] = held[order]
            case "scale" if kind == "f":
                arrays[name] = held * draw(st.sampled_from([-1.0, 0.5, 2.0, 100.0]))
    if draw(st.integers(0, 3)) == 0:
        label = draw(st.integers(0, 2))
        claim = claim | {"requirement": {"kind": "one-to-any", "label": label}}
    try:
        with np.errstate(over="ignore"):
            return tiny, certificate(claim, arrays)
    except (OverflowError, ValueError):  # not a number of the array's type
        return tiny, b""


@settings(RELAXED, max_examples=5 * EXAMPLES)
@given(mutated=mutated_arrays())
def test_changed_numbers(mutated: tuple[Tiny, bytes]) -> None:
    judged(*mutated)


@pytest.mark.slow
@settings(RELAXED, max_examples=10_000)
@given(mutated=mutated_arrays())
def test_ten_thousand_changed_numbers(mutated: tuple[Tiny, bytes]) -> None:
    judged(*mutated)


@st.composite
def mutated_bytes(draw: st.DrawFn) -> tuple[Tiny, bytes]:
    """Bits of the container, or of what it holds decompressed, changed; or the end cut off."""
    tiny, claim, arrays = MODELS[draw(st.sampled_from(SEEDS))]
    content = bytearray(certificate(claim, arrays))
    (length,) = struct.unpack_from("<I", content, 12)
    inside = draw(st.booleans())
    if inside:
        content[16 + length :] = zlib.decompress(content[16 + length :])
    for _ in range(draw(st.integers(1, 4))):
        first = 16 + length if inside else 0
        content[draw(st.integers(first, len(content) - 1))] ^= 1 << draw(st.integers(0, 7))
    if inside:
        content[16 + length :] = zlib.compress(content[16 + length :])
    end = draw(st.sampled_from([len(content)] * 3 + [draw(st.integers(0, len(content)))]))
    return tiny, bytes(content[:end])


@settings(RELAXED, max_examples=4 * EXAMPLES)
@given(mutated=mutated_bytes())
def test_changed_bits(mutated: tuple[Tiny, bytes]) -> None:
    judged(*mutated)


@settings(RELAXED, max_examples=3 * EXAMPLES)
@given(data=st.data())
def test_changed_headers(data: st.DataObject) -> None:
    """Any JSON at any place of the header."""
    tiny, claim, arrays = MODELS[0]
    content = certificate(claim, arrays)
    (length,) = struct.unpack_from("<I", content, 12)
    header = json.loads(content[16 : 16 + length])
    scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5)
    odd = st.recursive(scalars, lambda x: st.lists(x) | st.dictionaries(st.text(), x), max_leaves=3)
    place: Any = header
    path = data.draw(
        st.sampled_from(
            [
                ("claim",), ("claim", "eps"), ("claim", "norm"), ("claim", "arithmetic"),
                ("claim", "requirement"), ("claim", "requirement", "label"),
                ("claim", "requirement", "kind"), ("claim", "network"), ("proof",),
                ("proof", "mode"), ("arrays",), ("arrays", 0), ("arrays", 0, "shape"),
                ("arrays", 1, "dtype"), ("arrays", 2, "name"),
            ]
        )
    )  # fmt: skip
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = data.draw(odd)
    text = json.dumps(header).encode()
    judged(tiny, content[:12] + struct.pack("<I", len(text)) + text + content[16 + length :])
