"""A study that is killed (SIGKILL) while it grows: nothing is lost, and nothing is done twice.

A process of its own, with torch loaded once, forks for every try. Each try copies a measured study,
lets it grow, and dies at one SQL statement of the growth, counted from its first: also between the
statements of one transaction. Then the same command is given again.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from conftest import write_linear, write_points
from python_scripts import run_script

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")

GROWING = """
import json, os, shutil, signal, sqlite3
from pathlib import Path
import torch
from radii.runs import Experiment, prepare
from radii.store import STORE_FILE, Store

torch.set_num_threads(1)
statements = 0

def described(data, grid):
    options = {"networks": ["linear.onnx"], "data": data, "domain": "0:1", "grid": grid}
    return Experiment.from_options({**options, "attack": "pgd"})

BEFORE = described("points.npz[0:2]", "0.1:0.5:0.1")
AFTER = described("points.npz", "0.05:0.5:0.05")

def grow(out, experiment, dies_at=0):
    def seen(_):
        global statements
        statements += 1
        if statements == dies_at:
            os.kill(os.getpid(), signal.SIGKILL)
    with Store.create_or_open(Path(out)) as store:
        store._db.set_trace_callback(seen)
        prepare(experiment).run(store, grows=True)
        store._db.set_trace_callback(None)
        return statements

def in_a_fork(function, *arguments):
    pid = os.fork()
    if pid == 0:
        function(*arguments)
        os._exit(0)
    return os.waitpid(pid, 0)[1]

def read(out):
    with sqlite3.connect(Path(out) / STORE_FILE) as db:
        columns = "id, instance, kind, eps, verdict, ended_at"
        rows = db.execute(f"SELECT {columns} FROM queries ORDER BY id").fetchall()
    db.close()
    with Store.open(Path(out)) as store:
        brackets = sorted((m.input, m.bracket.lower, m.bracket.upper) for m in store.measurements())
        steps = [(step.summary, step.ended_at is not None) for step in store.steps()]
    return {"rows": rows, "brackets": brackets, "steps": steps}

def tried(number):
    out = f"killed-{number}"
    shutil.copytree("base", out)
    code = in_a_fork(grow, out, AFTER, number)
    killed = read(out)
    assert in_a_fork(grow, out, AFTER) == 0
    return {"code": code, "killed": killed, "after": read(out)}

assert in_a_fork(grow, "base", BEFORE) == 0
shutil.copytree("base", "whole")
told, tells = os.pipe()
assert in_a_fork(lambda: os.write(tells, str(grow("whole", AFTER)).encode())) == 0
count = int(os.read(told, 20))
points = sorted({1 + place * (count - 1) // TRIES for place in range(TRIES)})
told = {"base": read("base"), "whole": read("whole"), "tries": [tried(one) for one in points]}
print(json.dumps({**told, "count": count}))
"""


def grown(directory: Path, tries: int) -> dict[str, Any]:
    write_linear(directory)
    write_points(directory)
    script = directory / "growing.py"
    script.write_text(f"TRIES = {tries}\n{GROWING}")
    found: dict[str, Any] = json.loads(run_script(script, directory))
    return found


@pytest.mark.parametrize(
    "tries", [12, pytest.param(10_000, marks=pytest.mark.slow)], ids=["some", "every-statement"]
)
def test_killed_at_any_statement_and_run_again(tmp_path: Path, tries: int) -> None:
    found = grown(tmp_path, tries)
    base, whole = found["base"], found["whole"]
    assert len(whole["brackets"]) == 4 and len(base["brackets"]) == 2
    assert all(is_ended for _, is_ended in whole["steps"]) and len(whole["steps"]) == 2
    assert len(found["tries"]) >= min(tries, found["count"] - 1)
    for one in found["tries"]:
        assert one["code"] == 9, "it was killed"
        killed, after = one["killed"], one["after"]
        assert killed["rows"][: len(base["rows"])] == base["rows"], "what was there is there"
        assert after["rows"][: len(killed["rows"])] == killed["rows"], "nothing is lost"
        questions = [tuple(row[1:4]) for row in after["rows"][len(base["rows"]) :]]
        assert len(set(questions)) == len(questions), "nothing is done twice"
        assert len(after["rows"]) == len(whole["rows"]), "nor more than undisturbed"
        assert after["brackets"] == whole["brackets"]
        assert after["steps"] == whole["steps"], "a step is begun once"
