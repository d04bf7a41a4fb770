"""Run the documentation's notebooks and keep their outputs: what the site shows.

python scripts/run_notebooks.py [NAME ...]
"""

from __future__ import annotations

import sys
from pathlib import Path

import nbformat
from nbclient import NotebookClient

NOTEBOOKS = Path(__file__).parents[1] / "docs" / "notebooks"


def executed(path: Path, before: str = "") -> nbformat.NotebookNode:
    """The notebook with the outputs of a fresh run; the first error in a cell is raised.

    The code in `before` runs ahead of it, and is no part of what is returned.
    """
    notebook: nbformat.NotebookNode = nbformat.read(path, as_version=4)
    notebook.cells.insert(0, nbformat.v4.new_code_cell(before))
    NotebookClient(notebook, timeout=600, kernel_name="python3").execute()
    del notebook.cells[0]
    notebook.metadata.language_info = {"name": "python"}  # not the version of who ran it
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)  # times of day
    return notebook


def main(names: list[str]) -> None:
    for path in sorted(NOTEBOOKS.glob("*.ipynb")):
        if not names or path.stem in names:
            nbformat.write(executed(path), path)
            print(path)


if __name__ == "__main__":
    main(sys.argv[1:])
