"""Which version of a foreign tool answers: asked from it where it can be."""

from __future__ import annotations

import hashlib
import math
import re
import subprocess
import tempfile
from functools import lru_cache
from pathlib import Path

import numpy as np

from radii.balls import Box, Norm
from radii.errors import SpecificationError
from radii.networks import Network
from radii.processes import ProgramEnd, run_program
from radii.properties import LinearRequirement, Requirement
from radii.queries import Specification
from radii.verdicts import Verdict
from radii.verifiers._base import Answer, Limits, Verifier
from radii.verifiers._case import check_bounded
from radii.verifiers._vnncomp_tools import KNOWN_TOOLS, Tool, is_interpreter, parse_tool
from radii.vnnlib import Outcome, parse_verification, specification_text

VERSION_SECONDS = 10.0
"""How long a tool may take to say its version."""

VERSION_LINE = re.compile(r"[\w .,:+()/-]{0,60}\d[\w .,:+()/-]{0,60}")
"""A line that can be a version: short, with a digit in it."""


@lru_cache(maxsize=16)
def version_of(tool: Tool) -> str:
    """The tool's name with its commit, what it says itself, or what its file's content is."""
    commit = None if tool.own is None else _commit(tool.own)
    said = None if commit else _reported_version(tool)
    if said is not None and said.startswith(tool.name):
        return said
    return f"{tool.name} {commit or said or _digest(tool.own) or 'of unknown version'}"


def _commit(own: Path) -> str | None:
    """The commit of the checkout that holds the tool; `+` if it was changed since.

    A file that merely lies in somebody's checkout is not of its commit.
    """
    folder = own if own.is_dir() else own.parent
    command = ["git", "-C", str(folder), "describe", "--always", "--dirty=+", "--tags"]
    try:
        told = subprocess.run(command, capture_output=True, text=True, timeout=VERSION_SECONDS)
        tracked = subprocess.run(
            ["git", "-C", str(folder), "ls-files", "--error-unmatch", str(own)],
            capture_output=True,
            timeout=VERSION_SECONDS,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return told.stdout.strip() if told.returncode == 0 == tracked.returncode else None


def _reported_version(tool: Tool) -> str | None:
    """The first line of `PROGRAM --version`, if it can be one."""
    if is_interpreter(Path(tool.words[0]).name):
        return None
    with tempfile.TemporaryDirectory(prefix="radii-", ignore_cleanup_errors=True) as place:
        ended = run_program([tool.words[0], "--version"], Path(place), Limits(VERSION_SECONDS))
    lines = ended.output.strip().splitlines()
    is_told = ended.missing is None and ended.code == 0 and lines
    return lines[0] if is_told and VERSION_LINE.fullmatch(lines[0]) else None


def _digest(own: Path | None) -> str | None:
    if own is None or not own.is_file():
        return None
    return f"sha256:{hashlib.sha256(own.read_bytes()).hexdigest()[:12]}"


# The verifier `vnncomp`: writes a query as ONNX and VNN-LIB files, runs a tool, reads its answer.
#
# What the tool claims is taken as follows. A counterexample is replayed like any other candidate.
# `unsat` is believed, with no margin, if the tool ended as it should; a witness that contradicts
# it
# makes it a disagreement. Everything else is a missing answer.


VNNCOMP_STATUS_MAP = {
    Outcome.SAT: Verdict.NOT_ROBUST,
    Outcome.UNSAT: Verdict.ROBUST,
    Outcome.UNKNOWN: Verdict.UNKNOWN,
    Outcome.TIMEOUT: Verdict.TIMEOUT,
    Outcome.ERROR: Verdict.ERROR,
}

LARGEST_ANSWER = 1 << 26
"""Bytes of a result file that are read: room for millions of inputs."""

VNNCOMP_NO_LIMIT_SECONDS = 10**7
"""Seconds that a tool is told where there is no limit."""


class VnnComp(Verifier):
    """Any tool that speaks VNN-COMP's protocol; decides boxes and balls in Linf.

    `tool` is a command with {onnx}, {vnnlib}, {out} and {timeout} in it, a path to a
    run_instance.sh or to its folder, or NAME:FOLDER of a tool that radii knows how to call.
    """

    name = "vnncomp"
    norms = frozenset({Norm.LINF})

    def __init__(self, *, tool: str | None = None) -> None:
        if not tool:
            raise SpecificationError(
                f"verifier '{self.name}' needs a tool: a command with {{onnx}} {{vnnlib}} {{out}}, "
                "a run_instance.sh, or one of "
                f"{', '.join(f'{name}:FOLDER' for name in KNOWN_TOOLS)}"
            )
        self.tool: Tool = parse_tool(tool)

    @property
    def version(self) -> str:
        return version_of(self.tool)

    def unsupported(
        self, network: Network, norm: Norm, kind: type[Requirement] = LinearRequirement
    ) -> str | None:
        reason = super().unsupported(network, norm, kind)
        if reason is None and (missing := self.tool.missing) is not None:
            reason = f"verifier '{self.name}': {missing}"
        return reason

    def run(self, network: Network, specification: Specification, limits: Limits) -> Answer:
        check_bounded(network, specification)
        expired = limits.expired
        if expired is not None:
            return Answer(expired)
        with tempfile.TemporaryDirectory(prefix="radii-", ignore_cleanup_errors=True) as name:
            place = Path(name)
            (place / "network.onnx").write_bytes(network.onnx_bytes)
            text = specification_text(_widened(specification), outputs=network.output_size)
            (place / "property.vnnlib").write_text(text)
            return self._answer(place, limits)

    def _answer(self, place: Path, limits: Limits) -> Answer:
        out = place / "result.txt"
        seconds = (
            VNNCOMP_NO_LIMIT_SECONDS
            if math.isinf(limits.remaining)
            else max(1, int(limits.remaining))
        )
        values = {
            "{onnx}": str(place / "network.onnx"),
            "{vnnlib}": str(place / "property.vnnlib"),
            "{out}": str(out),
            "{timeout}": str(seconds),
        }
        ended = None
        for command in self.tool.commands(values):
            if ended is not None and ended.peculiarity:  # the preparation failed
                return Answer(Verdict.ERROR, message=_words(self.tool, ended))
            ended = run_program(
                command,
                place,
                limits,
                environment=dict(self.tool.environment),
                scratch=place,
            )
            if ended.missing is not None:
                return Answer(Verdict(ended.missing), message=_words(self.tool, ended))
        assert ended is not None
        return read_answer(self.tool, out, ended)


def read_answer(tool: Tool, out: Path, ended: ProgramEnd) -> Answer:
    """What a tool that ended by itself left in its result file."""
    try:
        with out.open("rb") as file:
            content = file.read(LARGEST_ANSWER)
    except OSError:
        words = _words(tool, ended, "it wrote no result")
        return Answer(Verdict.ERROR, message=words)
    try:
        found = parse_verification(content.decode(errors="replace"))
    except (SpecificationError, RecursionError) as error:
        words = f"its answer is none of VNN-COMP: {str(error) or 'too deeply nested'}"
        return Answer(Verdict.ERROR, message=_words(tool, ended, words))
    verdict = VNNCOMP_STATUS_MAP[found.outcome]
    if verdict is Verdict.NOT_ROBUST and found.inputs is None:
        words = f"{tool.name}: it says {found.outcome.value} but gives no counterexample"
        return Answer(Verdict.UNKNOWN, message=words)
    if verdict is Verdict.ROBUST and ended.code != 0:
        words = _words(tool, ended, f"it says {found.outcome.value}, which is not believed")
        return Answer(Verdict.ERROR, message=words)
    message = _words(tool, ended) if verdict is Verdict.ERROR else ""
    return Answer(verdict, found.inputs, message=message)


def _widened(specification: Specification) -> Specification:
    """The region as a box whose sides are exact in float32, never smaller.

    Most tools read bounds as float32; one that is not exact in it could be rounded inward.
    """
    low, high = (np.asarray(side, np.float64) for side in specification.region.box())
    with np.errstate(over="ignore"):
        below, above = low.astype(np.float32), high.astype(np.float32)
    below = np.where(below > low, np.nextafter(below, np.float32(-np.inf)), below)
    above = np.where(above < high, np.nextafter(above, np.float32(np.inf)), above)
    low = np.where(np.isfinite(below), below.astype(np.float64), low)
    high = np.where(np.isfinite(above), above.astype(np.float64), high)
    return Specification(Box(low, high), specification.requirement, specification.inputs)


def _words(tool: Tool, ended: ProgramEnd, what: str = "") -> str:
    """One sentence: the tool, what went wrong, and its last words."""
    parts = [part for part in (what, ended.peculiarity) if part]
    said = f"; it printed: {ended.last_line}" if ended.last_line and ended.missing is None else ""
    return f"{tool.name}: {', '.join(parts) or 'it says error'}{said}"
