"""Everything that is wrong with a certificate, one thing at a time: refused in one sentence."""

from __future__ import annotations

import json
import struct
import tracemalloc
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from handmade import dense_model, digest
from tiny import certificate, proven

from radii_check import CertificateError, Unreadable, check
from radii_check.__main__ import main

TINY, CLAIM, ARRAYS = proven(1)
GOOD = certificate(CLAIM, ARRAYS)


def changed(**arrays: Any) -> bytes:
    return certificate(CLAIM, ARRAYS | arrays)


def claiming(**claim: Any) -> bytes:
    return certificate(CLAIM | claim, ARRAYS)


def put(name: str, place: int, value: Any) -> bytes:
    held = np.array(ARRAYS[name], dtype=type(value))
    held[place] = value
    return changed(**{name: held})


LEMMA_ARRAYS = ("node", "part", "round", "unit", "side", "bound")


def children() -> tuple[int, int]:
    """The first two nodes that are children of one."""
    below = [n for n, parent in enumerate(ARRAYS["parent"]) if parent == ARRAYS["parent"].index(-1)]
    return below[0], below[1]


FIRST, SECOND = children()

NO_CERTIFICATE = {
    "empty": (b"", "does not begin"),
    "another file": (TINY.model, "does not begin"),
    "a huge header": (GOOD[:12] + b"\xff\xff\xff\x7f" + GOOD[16:], "header is too long"),
    "truncated in its header": (GOOD[:60], "truncated"),
    "truncated": (GOOD[:-9], "shorter or longer|decompressed"),
    "more behind it": (GOOD + b"x", "shorter or longer"),
    "no JSON": (GOOD[:16] + b"[" + GOOD[17:], "does not follow the format"),
    "NaN": (put("bound", 0, np.nan), "'bound' holds NaN"),
    "an infinite multiplier": (put("gamma", 0, np.inf), "'gamma' holds NaN or infinite"),
    "NaN among bounds": (changed(lower=np.full((1, 4), np.nan)), "'lower' holds NaN"),
    "bounds of other units": (changed(lower=np.zeros((1, 3))), "parts and 4 units"),
    "no parts": (changed(eps=[], lower=np.zeros((0, 4)), upper=np.zeros((0, 4))), "0 parts"),
    "an axis too many": (changed(parent=np.zeros((1, 2))), "wrong number of axes"),
    "an unknown norm": (claiming(norm="l3"), "norm"),
    "a negative eps": (claiming(eps=-0.1), "eps"),
    "eps as text": (claiming(eps="0.1"), "eps"),
    "an unknown arithmetic": (claiming(arithmetic="float:0.5"), "arithmetic"),
    "an unknown requirement": (
        claiming(requirement={"kind": "all"}),
        "unknown kind",
    ),
    "a target in place of a label": (
        claiming(requirement={"kind": "one-to-any", "target": 0}),
        "says more than this checker knows",
    ),
    "a label in place of a target": (
        claiming(requirement={"kind": "become", "label": 0}),
        "says more than this checker knows",
    ),
    "bounds that are not checked": (
        claiming(requirement={**CLAIM["requirement"], "bounds": [{"class": 0, "above": 0.99}]}),
        "says more than this checker knows",
    ),
    "a class too many": (claiming(requirement={"kind": "one-to-any", "label": 3}), "3 outputs"),
    "a class against itself": (
        claiming(requirement={"kind": "one-to-one", "label": 1, "target": 1}),
        "label",
    ),
    "violations without rows": (
        claiming(requirement={"kind": "violations", "rows": []}),
        "no viol",
    ),
    "an empty region": (changed(low=np.full(2, 4.0)), "region is empty"),
    "inputs of another size": (changed(input=np.zeros(3)), "differ in size"),
    "another network": (claiming(network="0" * 64), "another network"),
}

NEWER = GOOD[:8] + struct.pack("<I", 2) + GOOD[12:]

REJECTED = {
    "a smaller eps of a part": (changed(eps=[CLAIM["eps"] / 2]), "smaller eps than the claim"),
    "a cycle": (put("parent", FIRST, FIRST), "before its parent"),
    "a parent behind": (put("parent", FIRST, SECOND), "before its parent"),
    "two roots": (changed(spec=[0] * len(ARRAYS["spec"])), "no root, or several"),
    "another violation below": (put("spec", FIRST, 1), "not the two sides"),
    "a child of another unit": (put("split_unit", FIRST, 3), "not the two sides"),
    "a unit that is not there": (
        changed(split_unit=[4 if unit >= 0 else -1 for unit in ARRAYS["split_unit"]]),
        "'split_unit' holds a number out of range",
    ),
    "one sign twice": (put("split_sign", FIRST, ARRAYS["split_sign"][SECOND]), "not the two sides"),
    "a lemma of no node": (put("node", -1, 99), "'node' holds a number out of range"),
    "lemmas in another order": (changed(node=ARRAYS["node"][::-1]), "not in order"),
    "a lemma of no part": (put("part", 0, 1), "'part' holds a number out of range"),
    "a negative gamma": (put("gamma", 0, -1.0), "'gamma' holds a number out of range"),
    "a negative beta": (put("beta", -1, -1.0), "'beta' holds a number out of range"),
    "a slope too few": (changed(slopes=ARRAYS["slopes"][:-1]), "slopes are too few"),
    "a slope too many": (changed(slopes=[*ARRAYS["slopes"], 0]), "that no lemma needs"),
    "a beta too many": (changed(beta=[*ARRAYS["beta"], 0]), "that no lemma needs"),
    "lists that differ in length": (changed(side=ARRAYS["side"][:-1]), "'side' is of another len"),
    "gamma of 0": (changed(gamma=np.zeros(len(ARRAYS["gamma"]))), "fails by"),
    "bounds that are not shown": (changed(upper=np.array(ARRAYS["lower"]) + 0.01), "no row shows"),
}


@pytest.mark.parametrize("what", NO_CERTIFICATE)
def test_no_certificate(what: str) -> None:
    content, told = NO_CERTIFICATE[what]
    with pytest.raises(CertificateError, match=told) as error:
        check(content, TINY.model)
    assert len(str(error.value).splitlines()) == 1


# What this checker cannot tell.


def relabelled(named: str, node_type: str) -> bytes:
    """The network with another operator in place of its ReLUs."""
    model = onnx.load_model_from_string(TINY.model)
    for node in model.graph.node:
        node.op_type = node_type if node.op_type == named else node.op_type
    return bytes(model.SerializeToString(deterministic=True))


def test_what_is_not_known_is_unreadable() -> None:
    """An operator, an opset, a version of the format, or too little memory."""
    asinh = relabelled("Relu", "Asinh")
    newer_opset = onnx.load_model_from_string(TINY.model)
    newer_opset.opset_import[0].version = 99
    opset = newer_opset.SerializeToString(deterministic=True)
    every = {
        "operator Asinh is not known": (claiming(network=digest(asinh)), asinh, 2 << 30),
        "opset 99": (claiming(network=digest(opset)), opset, 2 << 30),
        "version 2": (NEWER, TINY.model, 2 << 30),
        "takes too much memory": (GOOD, TINY.model, 1 << 12),
    }
    for told, (content, model, memory) in every.items():
        report = check(content, model, memory_bytes=memory)
        assert (report.outcome, report.accepted) == ("unreadable", False)
        assert told in report.reason and len(report.reason.splitlines()) == 1


def test_another_network_is_no_certificate_of_this_one_whether_readable_or_not() -> None:
    with pytest.raises(CertificateError, match="about another network") as error:
        check(GOOD, relabelled("Relu", "Asinh"))
    assert not isinstance(error.value, Unreadable)


@pytest.mark.parametrize("what", REJECTED)
def test_rejected(what: str) -> None:
    content, told = REJECTED[what]
    report = check(content, TINY.model)
    assert report.outcome == "refused"
    assert told in report.reason
    assert len(report.reason.splitlines()) == 1


def test_a_missing_child() -> None:
    """The leaves of one side are left out: the other side is no proof of the whole."""
    keep = [n for n in range(len(ARRAYS["parent"])) if n != SECOND]
    if any(parent == SECOND for parent in ARRAYS["parent"]):
        pytest.skip("the second child has children of its own")
    numbers = {old: new for new, old in enumerate(keep)} | {-1: -1}
    nodes = {name: [ARRAYS[name][n] for n in keep] for name in ("split_unit", "split_sign", "spec")}
    nodes["parent"] = [numbers[ARRAYS["parent"][n]] for n in keep]
    report = check(changed(**nodes), TINY.model)
    assert not report.accepted


def with_lemma(node: int, **more: Any) -> dict[str, Any]:
    """The arrays with one more lemma in front of those of a node: unit 0 is at least 1."""
    place = int(np.searchsorted(ARRAYS["node"], node))
    arrays = {k: list(ARRAYS[k]) for k in LEMMA_ARRAYS}
    for name, value in zip(LEMMA_ARRAYS, (node, 0, 0, 0, 1, 1.0), strict=True):
        arrays[name].insert(place, value)
    return arrays | more


def test_a_false_lemma_is_rejected_wherever_it_stands() -> None:
    for node in range(len(ARRAYS["parent"])):
        report = check(changed(**with_lemma(node)), TINY.model)
        assert not report.accepted


def test_what_holds_on_one_side_is_not_used_on_the_other() -> None:
    """A leaf without a closing row stays open, whatever the lemmas of its sibling say."""
    place = len(ARRAYS["node"]) - 1
    arrays = {k: list(ARRAYS[k]) for k in (*LEMMA_ARRAYS, "gamma")}
    for held in arrays.values():
        del held[place]
    report = check(changed(**arrays), TINY.model)
    assert not report.accepted


def test_a_split_of_a_unit_that_is_always_0_closes_nothing() -> None:
    """Both sides hold all inputs then: at most one of them may be left to the other."""
    dead = dense_model(
        [(np.zeros((1, 2)), np.zeros(1)), (np.array([[1.0], [0.0]]), np.array([0.0, 1.0]))]
    )
    claim = CLAIM | {"network": digest(dead), "requirement": {"kind": "one-to-any", "label": 0}}
    none: list[int] = []
    arrays = {
        **{name: ARRAYS[name] for name in ("input", "low", "high", "eps")},
        "lower": [[0.0]],
        "upper": [[0.0]],
        "parent": [-1, 0, 0],
        "spec": [0, 0, 0],
        "split_unit": [-1, 0, 0],
        "split_sign": [0, 1, -1],
        **dict.fromkeys(("node", "part", "round", "unit", "side", "bound"), none),
        "gamma": none,
        "slopes": none,
        "beta": none,
    }
    report = check(certificate(claim, arrays), dead)
    assert not report.accepted
    assert "closes" in report.reason


def test_huge_counts_take_no_memory() -> None:
    """A header that claims terabytes, and a small stream that would unpack to them."""
    bomb = zlib.compress(bytes(1 << 26))
    for size in (1 << 36, 1 << 26, 1 << 39):
        spec = [{"name": "low", "dtype": "<f8", "shape": [size // 8]}]
        header = {"claim": CLAIM, "proof": {"mode": "units"}, "arrays": spec, "made_by": ""}
        text = json.dumps(header).encode()
        content = b"RADIICRT" + struct.pack("<II", 1, len(text)) + text + bomb
        tracemalloc.start()
        report = check(content, TINY.model, memory_bytes=64 << 20)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 48 << 20
        assert report.outcome == "unreadable" and "too much memory" in report.reason


# The command.


@pytest.fixture
def files(tmp_path: Path) -> Path:
    (tmp_path / "net.onnx").write_bytes(TINY.model)
    (tmp_path / "good.cert").write_bytes(GOOD)
    (tmp_path / "bad.cert").write_bytes(put("gamma", 0, 0.0))
    (tmp_path / "no.cert").write_bytes(b"no")
    (tmp_path / "newer.cert").write_bytes(NEWER)
    return tmp_path


def test_exit_codes(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def run(*names: str, network: str = "net.onnx") -> tuple[int, str]:
        paths = [str(files / name) for name in names]
        code = main([*paths, "--network", str(files / network)])
        told = capsys.readouterr()
        assert told.err == ""
        return code, told.out

    assert run("good.cert")[0] == 0
    code, told = run("good.cert", "bad.cert")
    assert code == 1
    assert "good.cert: accepted" in told
    assert "bad.cert: refused: lemma 0" in told
    assert run("good.cert", "bad.cert", "no.cert", "newer.cert")[0] == 1
    assert run("good.cert", "no.cert")[0] == 2
    code, told = run("good.cert", "newer.cert")
    assert code == 2
    assert "newer.cert: unreadable: it has version 2, this checker reads version 1" in told
    assert run("missing.cert")[0] == 2
    assert run("good.cert", network="missing.onnx")[0] == 2
    assert run("good.cert", network="no.cert")[0] == 2


def test_several_networks(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each certificate finds its own; one of none of them is told so."""
    other, claim, arrays = proven(2)
    (files / "other.onnx").write_bytes(other.model)
    (files / "other.cert").write_bytes(certificate(claim, arrays))
    both = [str(files / name) for name in ("good.cert", "other.cert")]
    networks = [f"--network={files / name}" for name in ("net.onnx", "other.onnx")]
    assert main([*both, *networks]) == 0
    assert main([*both, networks[0]]) == 2
    assert "about another network" in capsys.readouterr().out


def test_json(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names = [str(files / f"{name}.cert") for name in ("good", "bad", "no", "newer")]
    assert main([*names, "--network", str(files / "net.onnx"), "--json"]) == 1
    every = good, bad, no, newer = [*map(json.loads, capsys.readouterr().out.splitlines())]
    assert [one["outcome"] for one in every] == ["accepted", "refused", "unusable", "unreadable"]
    assert [one["accepted"] for one in every] == [True, False, False, False]
    assert "version 2" in newer["reason"]
    assert good["accepted"]
    assert good["claim"]["eps"] == CLAIM["eps"]
    assert good["arithmetic"] == "real"
    assert not bad["accepted"]
    assert "fails by" in bad["reason"]
    assert "does not begin" in no["reason"]
