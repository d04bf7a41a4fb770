"""Foreign tools through the VNN-COMP protocol: good ones, and every way to misbehave."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import textwrap
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from conftest import BUSY_SECONDS
from radii.cli import main as radii
from radii.errors import SpecificationError, UnsupportedQuery
from radii.networks import Network, load_network
from radii.problem import Instance, Query, Result, Verdict
from radii.runs import Experiment, prepare, values_of_file
from radii.store import Store
from radii.testing import (
    NetworkFamily,
    VerifierConformance,
    instance_at,
    random_instance,
    random_network,
)
from radii.verifiers import Limits, Verifier, VnnComp
from radii.verifiers._vnncomp import parse_tool, version_of
from radii.vnnlib import read_problem

RADII = Path(sys.executable).with_name("radii")
OURSELVES = f"{RADII} verify {{onnx}} {{vnnlib}} --timeout {{timeout}} --out {{out}}"

HONEST = """
    # Decides y0 - y1 = x0 - x1 by hand, from the bounds in the file.
    import re, sys
    onnx, vnnlib, out, timeout = sys.argv[1:]
    text = open(vnnlib).read()
    bound = {(sign, int(i)): float(v) for sign, i, v in
             re.findall(r"\\((<=|>=) X_(\\d) ([^)]+)\\)", text)}
    low, high = ([bound[sign, i] for i in (0, 1)] for sign in (">=", "<="))
    centre = [(a + b) / 2 for a, b in zip(low, high)]
    label = 0 if centre[0] > centre[1] else 1
    rival = 1 - label
    strange = label == 1
    half = (centre[label] - centre[rival]) / 2 + 1e-6
    nearest = [centre[i] - half if i == label else centre[i] + half for i in (0, 1)]
    answer = "unsat"
    if low[label] <= high[rival]:
        answer = f"sat\\n((X_0 {nearest[0]})\\n(X_1 {nearest[1]}))"
"""
WRITE = '    open(out, "w").write(answer)\n'

MISBEHAVING = {
    "hangs": (
        "    if strange:\n"
        "        import signal, subprocess, time\n"
        "        signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "        subprocess.Popen(['sleep', '3600'], start_new_session=True)\n"
        "        time.sleep(3600)\n",
        Verdict.TIMEOUT,
        "time limit",
    ),
    "crashes": (
        "    if strange:\n        import os\n        os.kill(os.getpid(), 11)\n",
        Verdict.ERROR,
        "signal 11",
    ),
    "fails": (
        "    if strange:\n        print('so much', 'is wrong')\n        sys.exit(3)\n",
        Verdict.ERROR,
        "exit code 3; it printed: so much is wrong",
    ),
    "talks garbage": (
        "    if strange:\n        answer = '\\x00(((' + 'garbage' * 9\n",
        Verdict.ERROR,
        "not one of VNN-COMP",
    ),
    "hoards": (
        "    if strange:\n"
        "        blocks = []\n"
        "        while len(blocks) < 1000:\n"
        "            blocks.append(bytearray(b'1') * 10**7)\n",
        Verdict.MEMOUT,
        "memory limit",
    ),
    "points outside the ball": (
        "    if strange:\n        answer = 'sat\\n((X_0 0.9)\\n(X_1 0.9))'\n",
        Verdict.UNKNOWN,
        "does not replay",
    ),
    "keeps its counterexample": (
        "    if strange:\n        answer = 'violated'\n",
        Verdict.UNKNOWN,
        "no counterexample",
    ),
    "points nowhere": (
        "    if strange:\n        answer = 'sat\\n((X_0 0.5))'\n",
        Verdict.UNKNOWN,
        "does not replay",
    ),
    "has no memory": (
        "    if strange:\n        raise MemoryError\n",
        Verdict.MEMOUT,
        "it printed: MemoryError",
    ),
    "writes nothing": (
        "    if strange:\n        sys.exit(0)\n",
        Verdict.ERROR,
        "no result",
    ),
    "claims and dies": (
        "    if strange:\n        open(out, 'w').write('unsat')\n        sys.exit(1)\n",
        Verdict.ERROR,
        "not believed",
    ),
}


def fake(directory: Path, behaviour: str = "") -> str:
    """A tool as a Python script; what `--tool` says of it."""
    path = directory / "fake_tool.py"
    path.write_text(textwrap.dedent(HONEST + behaviour + WRITE))
    return f"{sys.executable} -S {path} {{onnx}} {{vnnlib}} {{out}} {{timeout}}"


@pytest.fixture
def network(linear_file: Path) -> Network:
    return load_network(linear_file, domain=(0, 1))


@pytest.fixture
def instance(network: Network) -> Instance:
    """Radius 0.25, and of the kind that tools misbehave on."""
    return instance_at(network, [0.25, 0.75])


def asked(tool: str, network: Network, instance: Instance, eps: float, **limits: float) -> Result:
    chosen = Limits(**{"seconds": 60.0, **limits})  # type: ignore[arg-type]
    return VnnComp(tool=tool).verify(network, Query(instance, eps), chosen)


@pytest.mark.slow  # each query starts a command that loads torch
class TestConformance(VerifierConformance):
    """Our own command, as a foreign tool."""

    def make(self) -> Verifier:
        return VnnComp(tool=OURSELVES)


def test_an_honest_tool_is_believed(tmp_path: Path, network: Network, instance: Instance) -> None:
    tool = fake(tmp_path)
    below, above = (asked(tool, network, instance, eps) for eps in (0.2, 0.3))
    assert below.verdict is Verdict.ROBUST
    assert above.verdict is Verdict.NOT_ROBUST
    assert above.witness is not None and above.witness.distance == pytest.approx(0.25, abs=1e-4)
    assert below.verifier == "vnncomp"
    assert re.fullmatch(r"fake_tool.py sha256:[0-9a-f]{12}", below.version)


@pytest.mark.parametrize("kind", MISBEHAVING)
def test_misbehaving_is_a_missing_answer(
    kind: str, tmp_path: Path, network: Network, instance: Instance
) -> None:
    behaviour, verdict, words = MISBEHAVING[kind]
    limits: dict[str, float] = {}
    if kind == "hangs":
        limits["seconds"] = 1.0
    if kind == "hoards":
        from radii.processes import resident_bytes

        limits["memory_bytes"] = 2 * (resident_bytes() or 0)
    started = time.monotonic()
    result = asked(fake(tmp_path, behaviour), network, instance, 0.1, **limits)
    assert time.monotonic() - started < 50
    assert result.verdict is verdict
    assert words in result.message
    assert result.proof is None and result.witness is None
    assert not running(tmp_path)


def test_megabytes_of_output_do_no_harm(
    tmp_path: Path, network: Network, instance: Instance
) -> None:
    loud = "    for _ in range(1000):\n        print('x' * 10**5)\n    print('done')\n"
    result = asked(fake(tmp_path, loud), network, instance, 0.2)
    assert result.verdict is Verdict.ROBUST
    failing = asked(fake(tmp_path, loud + "    sys.exit(2)\n"), network, instance, 0.2)
    assert failing.verdict is Verdict.ERROR
    assert failing.message.endswith("it printed: done") and len(failing.message) < 500


def test_an_endless_result_file_is_read_in_part(
    tmp_path: Path, network: Network, instance: Instance, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("radii.verifiers._vnncomp.LARGEST_ANSWER", 10**6)
    result = asked(
        fake(tmp_path, "    answer = 'sat (' + '(X_0 1)' * 10**6\n"), network, instance, 0.2
    )
    assert result.verdict is Verdict.ERROR


def test_processor_time_is_limited_too(
    tmp_path: Path, network: Network, instance: Instance
) -> None:
    busy = "    import subprocess\n    subprocess.run(['sh', '-c', 'while :; do :; done'])\n"
    result = asked(fake(tmp_path, busy), network, instance, 0.1, cpu_seconds=1.0)
    assert result.verdict is Verdict.TIMEOUT


def test_cancelling_ends_the_whole_tree(
    tmp_path: Path, network: Network, instance: Instance
) -> None:
    started = time.monotonic()
    result = VnnComp(tool=fake(tmp_path, MISBEHAVING["hangs"][0])).verify(
        network,
        Query(instance, 0.1),
        Limits(60, cancelled=lambda: time.monotonic() > started + 0.7),
    )
    assert result.verdict is Verdict.CANCELLED
    assert time.monotonic() - started < BUSY_SECONDS
    assert not running(tmp_path)


@pytest.mark.slow
def test_the_tool_dies_with_who_asked(tmp_path: Path, linear_file: Path) -> None:
    """Not even SIGKILL of the asking process leaves a tool, or its files, behind."""
    tool = fake(tmp_path, MISBEHAVING["hangs"][0])
    code = f"""
import tempfile
tempfile.tempdir = {str(tmp_path)!r}
from radii.networks import load_network
from radii.problem import Query
from radii.testing._networks import instance_at
from radii.verifiers import Limits, VnnComp
network = load_network({str(linear_file)!r}, domain=(0, 1))
VnnComp(tool={tool!r}).verify(network, Query(instance_at(network, [0.25, 0.75]), 0.1), Limits(60))
"""
    asking = subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.DEVNULL)
    wait_until(lambda: bool(running(tmp_path)))
    asking.send_signal(signal.SIGKILL)
    asking.wait()
    wait_until(lambda: not running(tmp_path) and not list(tmp_path.glob("radii-*")))


def running(place: Path) -> list[str]:
    """Command lines of living processes that name the place."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = entry.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if f"{place}/fake_tool.py" in words and str(os.getpid()) != entry.parent.name:
            found.append(words)
    return [words for words in found if not words.startswith(f"{sys.executable} -c")]


def wait_until(condition: object, seconds: float = 120.0) -> None:
    end = time.monotonic() + seconds
    while not condition():  # type: ignore[operator]
        assert time.monotonic() < end
        time.sleep(0.05)


# --- how tools are named


def test_the_scripts_of_the_protocol(tmp_path: Path, network: Network, instance: Instance) -> None:
    fake(tmp_path)
    scripts = tmp_path / "some tool" / "vnncomp_scripts"
    scripts.mkdir(parents=True)
    call = f'{shlex.quote(sys.executable)} -S "{tmp_path}/fake_tool.py" "$3" "$4" "$5" "$6"'
    (scripts / "run_instance.sh").write_text(f'[ "$1" = v1 ] && [ "$2" = radii ] && {call}\n')
    (scripts / "prepare_instance.sh").write_text(f'echo "$@" > "{tmp_path}/prepared"\n')
    for tool in (scripts.parent, scripts, scripts / "run_instance.sh"):
        assert asked(str(tool), network, instance, 0.2).verdict is Verdict.ROBUST
    assert not (tmp_path / "prepared").exists()
    prepared = asked(f"prepare:{scripts}", network, instance, 0.2)
    assert prepared.verdict is Verdict.ROBUST and prepared.version.startswith("some tool ")
    assert (tmp_path / "prepared").read_text().startswith("v1 radii /")
    (scripts / "prepare_instance.sh").write_text("exit 1\n")
    assert asked(f"prepare:{scripts}", network, instance, 0.2).verdict is Verdict.ERROR


@pytest.mark.parametrize("name", ["alpha-beta-crown", "nnenum", "oval-bab"])
def test_ready_tools(name: str, tmp_path: Path) -> None:
    tool = parse_tool(f"{name}:{tmp_path} --device cpu")
    assert tool.name == name and tool.own == tmp_path and tool.words[0] == "python3"
    files = {"{onnx}": "N.onnx", "{vnnlib}": "P.vnnlib", "{out}": "R.txt", "{timeout}": "60"}
    (command,) = tool.commands(files)
    assert {"N.onnx", "P.vnnlib", "R.txt", "60"} <= set(command)
    assert command[-2:] == ["--device", "cpu"]
    assert not [word for word in command if "{" in word]
    python = tmp_path / ".venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.symlink_to(sys.executable)
    assert parse_tool(f"{name}:{tmp_path}").words[0] == str(python)


@pytest.mark.parametrize(
    ("tool", "words"),
    [
        (None, "needs a tool"),
        ("tool {onnx} {vnnlib}", "lacks {out}"),
        ("'tool {onnx} {vnnlib} {out}", "cannot be split"),
        ("A=1 B={onnx}{vnnlib}{out}", "names no program"),
        ("/nowhere/run_instance.sh", "holds no run_instance.sh"),
        ("prepare:/nowhere", "holds no run_instance.sh"),
    ],
)
def test_what_is_no_tool_is_refused_in_words(tool: str | None, words: str) -> None:
    with pytest.raises(SpecificationError, match=re.escape(words)):
        VnnComp(tool=tool)


def test_a_missing_program_is_refused_before_any_work(network: Network, instance: Instance) -> None:
    verifier = VnnComp(tool="no-such-program {onnx} {vnnlib} {out}")
    with pytest.raises(UnsupportedQuery, match="no-such-program"):
        verifier.verify(network, Query(instance, 0.1))


def test_a_program_that_vanishes_is_a_missing_answer(
    tmp_path: Path, network: Network, instance: Instance, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(VnnComp, "unsupported", lambda *_: None)
    result = asked(f"{tmp_path}/gone {{onnx}} {{vnnlib}} {{out}}", network, instance, 0.1)
    assert result.verdict is Verdict.ERROR and "cannot be started" in result.message


def test_the_version_is_asked_or_of_the_commit(tmp_path: Path) -> None:
    assert VnnComp(tool=OURSELVES).version.startswith("radii ")
    git = ["git", "-C", str(tmp_path), "-c", "user.name=n", "-c", "user.email=e"]
    tool = fake(tmp_path)
    for step in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "m"], ["tag", "v1.2"]):
        subprocess.run([*git, *step], check=True, capture_output=True)
    assert VnnComp(tool=tool).version == "fake_tool.py v1.2"
    untracked = tmp_path / "other.py"
    untracked.write_text("")
    other = VnnComp(tool=f"{sys.executable} {untracked} {{onnx}} {{vnnlib}} {{out}}")
    assert other.version.startswith("other.py sha256:")
    version_of.cache_clear()
    folder = VnnComp(tool=f"nnenum:{tmp_path}")
    assert folder.version == "nnenum v1.2"


@pytest.mark.parametrize("eps", [0.1, 1 / 3, 1e-9])
def test_the_region_a_tool_reads_is_never_smaller(eps: float, tmp_path: Path) -> None:
    """Not even by a tool that rounds every bound to the nearest float32."""
    network = random_network(NetworkFamily.DENSE, 0, units=4, inputs=6, domain=(-0.3, 0.7))
    instance = random_instance(network, 1)
    kept = tmp_path / "kept.vnnlib"
    asked(f"sh -c 'cp {{vnnlib}} {kept}; echo unknown > {{out}}' {{onnx}}", network, instance, eps)
    (specification,) = read_problem(kept).specifications(network.input_shape)
    low, high = instance.ball(eps).box()
    written = specification.region.box()
    for dtype in (np.float64, np.float32):
        lows, highs = (side.astype(dtype).astype(np.float64) for side in written)
        assert (lows <= low).all() and (highs >= high).all()
    assert np.abs(written[0] - low).max() < 1e-7 and np.abs(written[1] - high).max() < 1e-7


# --- whole experiments


def experiment(linear_file: Path, points_file: Path, **options: object) -> Experiment:
    return Experiment.from_options(
        {
            "networks": [str(linear_file)],
            "data": f"{points_file}[0:2]",
            "domain": "0:1",
            "grid": "0.01:0.5:0.02",
            "verifier": "vnncomp",
            **options,
        }
    )


OF_EACH_VERDICT = ("hangs", "crashes", "points outside the ball")


@pytest.mark.parametrize(
    "kind",
    [
        pytest.param(kind, marks=() if kind in OF_EACH_VERDICT else pytest.mark.slow)
        for kind in MISBEHAVING
    ],
)
def test_other_instances_are_unaffected(
    kind: str, tmp_path: Path, linear_file: Path, points_file: Path
) -> None:
    behaviour, verdict, _ = MISBEHAVING[kind]
    tool = fake(tmp_path, behaviour)
    few = {"timeout": 5, "grid": "0.09:0.5:0.09"} if kind == "hangs" else {}  # each takes it
    plan = prepare(experiment(linear_file, points_file, tool=tool, **few))
    if kind == "hoards":
        from radii.processes import resident_bytes

        limit = 2 * (resident_bytes() or 0)
        plan = replace(plan, settings=replace(plan.settings, memory=limit))
    with Store.in_memory() as store:
        plan.run(store)
        good, strange = store.measurements()
        answers = [result for told in store.results().values() for _, result in told]
    assert good.bracket.lower == 0.09 and good.missing == 0
    assert good.bracket.upper == pytest.approx(0.1, abs=1e-3)
    assert strange.bracket.lower == 0.0 and strange.missing > 0
    assert strange.bracket.upper == pytest.approx(0.25, abs=1e-3)
    told = [r for r in answers if r.verifier == "vnncomp"]
    assert {r.verdict for r in told} == {Verdict.ROBUST, verdict}
    assert all(r.version.startswith("fake_tool.py sha256:") for r in told)


WRONG = "    if strange:\n        answer = 'unsat' if high[0] < 0.25 + 0.4 else answer\n"


@pytest.mark.slow
def test_a_wrong_unsat_is_a_disagreement_shown_and_not_used(
    tmp_path: Path, linear_file: Path, points_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "results"
    tool = fake(tmp_path, WRONG)
    command = (
        f"run --network {linear_file} --data {points_file}[0:2] --domain 0:1 --grid 0.01:0.5:0.02 "
        f"--search binary --verifier vnncomp --jobs 1 --out {out}"
    )
    assert radii([*shlex.split(command), "--tool", tool]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "DISAGREEMENT linear.onnx input 1: vnncomp fake_tool.py sha256:" in shown
    assert "claims a proof at eps 0.3" in shown
    assert radii(["show", str(out), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [row["input"] for row in found["disagreements"]] == [1] * len(found["disagreements"])
    good, strange = found["networks"][0]["instances"]
    assert good["lower"] == 0.09
    assert strange["lower"] == 0 and strange["upper"] == pytest.approx(0.25, abs=1e-4)


def test_the_tool_is_part_of_what_an_experiment_is(
    tmp_path: Path, linear_file: Path, points_file: Path
) -> None:
    tool = fake(tmp_path)
    (tmp_path / "e.toml").write_text(
        f'networks = ["{linear_file}"]\ndata = "{points_file}[0:1]"\ndomain = "0:1"\n'
        f"grid = '0.01:0.2:0.02'\nverifier = 'vnncomp'\ntool = '{tool}'\n"
    )
    plan = prepare(Experiment.from_options(values_of_file(tmp_path / "e.toml")))
    assert plan.identity()["tool"] == tool
    with pytest.raises(SpecificationError, match="has no option 'tool'"):
        experiment(linear_file, points_file, verifier="milp", tool=tool).resolved()
    with pytest.raises(UnsupportedQuery, match="l2"):
        prepare(experiment(linear_file, points_file, tool=tool, norm="l2"))


@pytest.mark.slow
def test_our_own_command_gives_the_brackets_of_the_process(
    relu_file: Path, relu_points_file: Path
) -> None:
    options = {"networks": [str(relu_file)], "grid": "0.01:0.3:0.02", "search": "attack-guided"}
    found = {}
    for verifier, tool in (("vnncomp", OURSELVES), ("native", None)):
        data = f"{relu_points_file}[0:1]"
        described = {**options, "data": data, "domain": "0:1", "verifier": verifier, "tool": tool}
        with Store.in_memory() as store:
            prepare(Experiment.from_options(described)).run(store)
            found[verifier] = [m.bracket for m in store.measurements()]
    assert found["vnncomp"] == found["native"]
    assert all(bracket.lower > 0 for bracket in found["native"])
