"""The notebooks run, and print what is stored in them, up to numbers."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from test_tutorial import shape

ROOT = Path(__file__).parents[1]
NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))

RUN = """
import json, sys
from pathlib import Path
sys.path.insert(0, "scripts")
from run_notebooks import executed
# Without worker processes, whose start costs seconds each.
alone = "from radii.runs import Plan; Plan.default_jobs = lambda _: 0"
print(json.dumps(executed(Path(sys.argv[1]), alone)))
"""


def printed(cells: list[dict[str, Any]]) -> list[list[str]]:
    """Of each cell: the shapes of its printed lines, and the kinds of what it shows."""
    found = []
    for cell in cells:
        lines = []
        for output in cell.get("outputs", []):
            assert output["output_type"] != "error"
            if output["output_type"] == "stream":
                assert output["name"] == "stdout", "".join(output["text"])
                lines += [shape(line) for line in "".join(output["text"]).splitlines()]
            else:
                lines += sorted(output["data"])
        found.append(lines)
    return found


def test_there_are_notebooks() -> None:
    assert len(NOTEBOOKS) >= 3


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_runs_as_it_is_shown(path: Path) -> None:
    pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    stored = json.loads(path.read_text())["cells"]
    done = subprocess.run(
        [sys.executable, "-c", RUN, str(path)], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert printed(json.loads(done.stdout)["cells"]) == printed(stored)
