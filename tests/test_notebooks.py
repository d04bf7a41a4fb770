"""The notebooks run, and print what is stored in them, up to numbers."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from python_scripts import run_script
from test_tutorial import shape

ROOT = Path(__file__).parents[1]
NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))

IN_A_KERNEL = """
import json, sys
from pathlib import Path
sys.path.insert(0, "scripts")
from run_notebooks import executed
# Without worker processes, whose start costs seconds each.
alone = "from radii.runs import Plan; Plan.default_jobs = lambda _: 0"
print(json.dumps(executed(Path(sys.argv[1]), alone)))
"""

IN_A_SHELL = """
import json
from IPython.core.interactiveshell import InteractiveShell
from IPython.display import display
from IPython.utils.capture import capture_output
from traitlets.config import Config
from radii.runs import Plan

class ShownResult:  # what a cell ends with
    def __call__(self, result=None):
        if result is not None:
            display(result)

class Shell(InteractiveShell):
    kernel = "as if there were one"

    def enable_gui(self, gui=None):
        pass

    def init_displayhook(self):
        super().init_displayhook()
        self.display_trap.hook = ShownResult()

Plan.default_jobs = lambda _: 0
shell = Shell.instance(config=Config(HistoryManager=dict(enabled=False)))
cells = []
for source in SOURCES:
    with capture_output() as found:
        shell.run_cell(source).raise_error()
    outputs = [
        dict(output_type="stream", name=name, text=[text])
        for name, text in (("stdout", found.stdout), ("stderr", found.stderr))
        if text
    ]
    outputs += [
        dict(output_type="display_data", data=each.data)
        for each in found.outputs
        if not each.update  # of what is shown already
    ]
    cells.append(dict(cell_type="code", outputs=outputs))
print(json.dumps(cells))
"""


def printed(cells: list[dict[str, Any]]) -> list[list[str]]:
    """Of each cell of code: the shapes of its printed lines, and the kinds of what it shows."""
    found = []
    for cell in cells:
        lines, kinds = [], []
        for output in cell.get("outputs", []):
            assert output["output_type"] != "error"
            if output["output_type"] == "stream":
                assert output["name"] == "stdout", "".join(output["text"])
                lines += [shape(line) for line in "".join(output["text"]).splitlines()]
            else:
                kinds += sorted(output["data"])
        found += [lines + kinds] if cell["cell_type"] == "code" else []
    return found


def test_there_are_notebooks() -> None:
    assert len(NOTEBOOKS) >= 3


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_runs_as_it_is_shown(path: Path, tmp_path: Path) -> None:
    """In the shell of a kernel, without its process."""
    pytest.importorskip("IPython")
    stored = json.loads(path.read_text())["cells"]
    sources = ["".join(cell["source"]) for cell in stored if cell["cell_type"] == "code"]
    script = tmp_path / "notebook.py"
    script.write_text(f"SOURCES = {sources!r}\n{IN_A_SHELL}")
    assert printed(json.loads(run_script(script, tmp_path))) == printed(stored)


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_runs_in_a_kernel(path: Path) -> None:
    pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    stored = json.loads(path.read_text())["cells"]
    done = subprocess.run(
        [sys.executable, "-c", IN_A_KERNEL, str(path)], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert printed(json.loads(done.stdout)["cells"]) == printed(stored)
