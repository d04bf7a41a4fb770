"""Follow one instance through radii: which files does it pass from `radii run` to its bracket?

    python scripts/walk.py [--source DIR]

One demo network and one digit go through `radii run` into a store in a temporary directory, with
the native search and verifier. The command runs with --quiet, so it ends when the bracket is
stored. Printed are the files of radii, in the order in which they were first entered, and three
figures:

files               A file counts when one of its functions is called (methods, lambdas and
                    generators included), whether in this process or in one that radii starts.
                    Module and class bodies do not count, nor does anything that they call while
                    radii is being imported: a file that is only imported is not passed through.
                    Functions that Python calls when a process exits do not count either. The
                    parsers of the other commands do, if the command builds them.
changes of package  Two neighbours in that list are a change if they lie in different packages. The
                    package of a file is the first part of its path below src/radii, so a module at
                    the top is its own package.
before the first    The files that were entered until a search was first asked for its question
question            (`Search.ask`).

The script uses nothing but the command line, so `--source` can name the `src` of any version.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import threading
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from types import FrameType

SOURCE_VARIABLE = "RADII_WALK_SOURCE"
TRACE_VARIABLE = "RADII_WALK_TRACE"

BOOTSTRAP = "import walk\nwalk.trace_calls()\n"
"""A sitecustomize.py: Python imports it at the start of every process that finds it."""

FIRST_QUESTION = "?"
"""A line of the trace where a search is first asked for its question."""

SEARCH_FILES = ("strategy/_base.py", "search/_base.py")
"""Where `Search.ask` stands, now and in older versions."""

CODE_OF_FUNCTIONS = 1
"""CO_OPTIMIZED: set in the code of functions, but not of modules and classes."""


def trace_calls() -> None:
    """From now on, append each file of radii that this process enters to the trace.

    A line is written at the first entry, not at the end: workers are killed when they are no longer
    needed. All processes append to one file, so that its order is the order of entry.
    """
    root = os.environ[SOURCE_VARIABLE] + "/radii/"
    trace = os.open(os.environ[TRACE_VARIABLE], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    entered = set()

    def enter(frame: FrameType, event: str, _: object) -> None:
        if event != "call" or not frame.f_code.co_flags & CODE_OF_FUNCTIONS:
            return
        path = frame.f_code.co_filename
        if frame.f_code.co_name == "ask" and path.removeprefix(root) in SEARCH_FILES:
            os.write(trace, f"{FIRST_QUESTION}\n".encode())
        if path in entered or not path.startswith(root) or _is_aside(frame, root):
            return
        entered.add(path)
        os.write(trace, f"{path.removeprefix(root)}\n".encode())

    threading.setprofile(enter)
    sys.setprofile(enter)


def _is_aside(frame: FrameType, root: str) -> bool:
    """Is this called by the body of a module that is being imported, or at a process's exit?"""
    code, caller = frame.f_code, frame.f_back
    while caller is not None:
        code = caller.f_code
        is_main = caller.f_globals.get("__name__") == "__main__"
        if code.co_name == "<module>" and code.co_filename.startswith(root) and not is_main:
            return True
        caller = caller.f_back
    return code.co_filename.startswith(root) and code.co_name != "<module>"


@dataclass(frozen=True, slots=True)
class Walk:
    """The files that one instance passes through, relative to radii, in order of first entry, and
    how many of them come before the first question."""

    files: tuple[str, ...]
    before_question: int

    @property
    def changes(self) -> int:
        """Neighbours that lie in different packages."""
        packages = [file.split("/")[0] for file in self.files]
        return sum(first != second for first, second in pairwise(packages))

    def __str__(self) -> str:
        return (
            f"{len(self.files)} files, {self.changes} changes of package, "
            f"{self.before_question} files before the first question"
        )


def walk(source: Path) -> Walk:
    """Run the command with the version in `source`. A process can do this once."""
    with tempfile.TemporaryDirectory() as folder:
        trace = Path(folder, "trace.txt")
        Path(folder, "sitecustomize.py").write_text(BOOTSTRAP)
        scripts = str(Path(__file__).resolve().parent)
        os.environ["PYTHONPATH"] = os.pathsep.join((folder, scripts, str(source)))
        os.environ[SOURCE_VARIABLE] = str(source)
        os.environ[TRACE_VARIABLE] = str(trace)
        sys.path.insert(0, str(source))
        _run(source, Path(folder, "results"))
        lines = list(dict.fromkeys(trace.read_text().splitlines()))
        question = lines.index(FIRST_QUESTION)
        return Walk((*lines[:question], *lines[question + 1 :]), question)


def _run(source: Path, out: Path) -> None:
    from radii.cli import main

    network = source / "radii" / "demo" / "mlp-standard.onnx"
    arguments = ["run", "--network", str(network), "--data", "digits:test[0:1]"]
    arguments += ["--domain", "0:1", "--search", "native", "--verifier", "native"]
    arguments += ["--quiet", "--out", str(out)]
    trace_calls()
    try:
        exit_code = main(arguments)
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    if exit_code != 0:
        raise SystemExit(f"radii run ended with {exit_code}: there is no bracket to walk to")


def main() -> None:
    parser = argparse.ArgumentParser(description="Which files does one instance pass through?")
    default = Path(__file__).parents[1] / "src"
    parser.add_argument("--source", type=Path, default=default, help="another version's src folder")
    walked = walk(parser.parse_args().source.resolve())
    print(*walked.files, sep="\n")
    print(walked)


if __name__ == "__main__":
    main()
