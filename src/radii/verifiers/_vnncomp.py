"""The verifier `vnncomp`: writes a query as ONNX and VNN-LIB files, runs a tool, reads its answer.

What the tool claims is taken as follows. A counterexample is replayed like any other candidate.
`unsat` is believed, with no margin, if the tool ended as it should; a witness that contradicts it
makes it a disagreement. Everything else is a missing answer. `--tool` says which program decides a
VNN-LIB file and how it is called; its version is asked from it where that is possible.
"""

from __future__ import annotations

import hashlib
import math
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np

from radii.errors import SpecificationError
from radii.networks import Network
from radii.problem import Box, Limits, LinearRequirement, Norm, Requirement, Specification, Verdict
from radii.processes import Allowance, Ending, ProgramEnd, run_program
from radii.verifiers._base import Answer, Verifier
from radii.verifiers._case import check_bounded
from radii.vnnlib import Outcome, parse_verification, specification_text

VERSION_SECONDS = 10.0
"""How long a tool may take to say its version."""

VERSION_LINE = re.compile(r"[\w .,:+()/-]{0,60}\d[\w .,:+()/-]{0,60}")
"""A line that can be a version: short, with a digit in it."""


@lru_cache(maxsize=16)
def version_of(tool: Tool) -> str:
    """The tool's name with its commit, what it says itself, or what its file's content is."""
    commit = None if tool.own is None else _commit(tool.own)
    reported = None if commit else _reported_version(tool)
    if reported is not None and reported.startswith(tool.name):
        return reported
    return f"{tool.name} {commit or reported or _digest(tool.own) or 'of unknown version'}"


def _commit(own: Path) -> str | None:
    """The commit of the checkout that holds the tool; `+` if it was changed since.

    A file that merely lies in somebody's checkout is not of its commit.
    """
    folder = own if own.is_dir() else own.parent
    command = ["git", "-C", str(folder), "describe", "--always", "--dirty=+", "--tags"]
    try:
        described = subprocess.run(command, capture_output=True, text=True, timeout=VERSION_SECONDS)
        tracked = subprocess.run(
            ["git", "-C", str(folder), "ls-files", "--error-unmatch", str(own)],
            capture_output=True,
            timeout=VERSION_SECONDS,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return described.stdout.strip() if described.returncode == 0 == tracked.returncode else None


def _reported_version(tool: Tool) -> str | None:
    """The first line of `PROGRAM --version`, if it can be one."""
    if is_interpreter(Path(tool.words[0]).name):
        return None
    with tempfile.TemporaryDirectory(prefix="radii-", ignore_cleanup_errors=True) as place:
        ended = run_program([tool.words[0], "--version"], Path(place), Allowance(VERSION_SECONDS))
    lines = ended.output.strip().splitlines()
    is_reported = ended.missing is None and ended.code == 0 and lines
    return lines[0] if is_reported and VERSION_LINE.fullmatch(lines[0]) else None


def _digest(own: Path | None) -> str | None:
    if own is None or not own.is_file():
        return None
    return f"sha256:{hashlib.sha256(own.read_bytes()).hexdigest()[:12]}"


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
                return _failed(self.tool, ended)
            ended = run_program(
                command,
                place,
                limits.allowance,
                limits.cancelled,
                environment=dict(self.tool.environment),
                scratch=place,
            )
            if ended.missing is not None:
                return _failed(self.tool, ended)
        assert ended is not None
        return read_answer(self.tool, out, ended)


def read_answer(tool: Tool, out: Path, ended: ProgramEnd) -> Answer:
    """What a tool that ended by itself left in its result file."""
    try:
        with out.open("rb") as file:
            content = file.read(LARGEST_ANSWER)
    except OSError:
        return _failed(tool, ended, "it wrote no result")
    try:
        verification = parse_verification(content.decode(errors="replace"))
    except (SpecificationError, RecursionError) as error:
        words = f"its result is not one of VNN-COMP's: {str(error) or 'too deeply nested'}"
        return _failed(tool, ended, words)
    verdict = VNNCOMP_STATUS_MAP[verification.outcome]
    if verdict is Verdict.NOT_ROBUST and verification.inputs is None:
        words = f"{tool.name}: it says {verification.outcome.value} but gives no counterexample"
        return Answer(Verdict.UNKNOWN, message=words)
    if verdict is Verdict.ROBUST and ended.code != 0:
        return _failed(tool, ended, f"it says {verification.outcome.value}, which is not believed")
    if verdict is Verdict.ERROR:
        return _failed(tool, ended, f"it says {verification.outcome.value}")
    return Answer(verdict, verification.inputs)


def _failed(tool: Tool, ended: ProgramEnd, what: str = "") -> Answer:
    """A missing answer: what went wrong, and why it did as far as the program says so."""
    ending = Ending.FAILED if ended.ending is Ending.ANSWERED else ended.ending
    return Answer.stopped(ending, _words(tool, ended, what))


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
    quote = f"; it printed: {ended.last_line}" if ended.last_line and ended.missing is None else ""
    return f"{tool.name}: {', '.join(parts)}{quote}"


PLACEHOLDERS = ("{onnx}", "{vnnlib}", "{out}", "{timeout}")
NEEDED_PLACEHOLDERS = PLACEHOLDERS[:3]

KNOWN_TOOLS = {
    "alpha-beta-crown": (
        "{python} {tool}/complete_verifier/abcrown.py --onnx_path {onnx} --vnnlib_path {vnnlib} "
        "--results_file {out} --timeout {timeout} --save_adv_example"
    ),
    "nnenum": (
        "OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 PYTHONPATH={tool}/src "
        "{python} -m nnenum.nnenum {onnx} {vnnlib} {timeout} {out}"
    ),
    "oval-bab": (
        "PYTHONPATH={tool} {python} {tool}/tools/bab_tools/bab_from_vnnlib.py --mode run_instance "
        "--onnx {onnx} --vnnlib {vnnlib} --result_file {out} --instance_timeout {timeout} "
        "--json {tool}/bab_configs/mnistfc_vnncomp21.json"
    ),
}
"""How tools are called from a checkout at {tool}; words behind the place are added at the end."""

PROTOCOL = ("v1", "radii", "{onnx}", "{vnnlib}")
"""What both scripts of the protocol get first: its version, a category, the two files."""

INTERPRETER = re.compile(r"python[\d.]*|bash|sh|zsh|env|conda|nice|timeout|taskset|docker")
"""Programs that run a tool and are not it."""


def is_interpreter(name: str) -> bool:
    """A program of this name only runs others: neither its name nor its version is the tool's."""
    return INTERPRETER.fullmatch(name) is not None


@dataclass(frozen=True, slots=True)
class Tool:
    """A program and how it is called: words that hold `{onnx}` and so on.

    `own` is the file or folder that is the tool, for its version; None if it is found on the path.
    """

    name: str
    words: tuple[str, ...]
    own: Path | None = None
    environment: tuple[tuple[str, str], ...] = ()
    prepare: tuple[str, ...] = ()

    def commands(self, values: Mapping[str, str]) -> list[list[str]]:
        """What to run, one after the other, with the places filled in."""
        return [[_filled(word, values) for word in words] for words in self._runs]

    @property
    def missing(self) -> str | None:
        """Why the tool cannot be run here; None if it can, as far as one sees from outside."""
        for words in self._runs:
            if shutil.which(words[0]) is None and Path(words[0]).is_file():
                return f"'{words[0]}' is not executable: chmod +x makes it so"
            if shutil.which(words[0]) is None:
                return f"'{words[0]}' is not a program that can be run here"
        if self.own is not None and not self.own.exists():
            return f"'{self.own}' does not exist"
        return None

    @property
    def _runs(self) -> list[tuple[str, ...]]:
        return [words for words in (self.prepare, self.words) if words]


def parse_tool(text: str) -> Tool:
    """A command with {onnx} {vnnlib} {out}, NAME:FOLDER of a ready one, or a run_instance.sh."""
    if any(place in text for place in PLACEHOLDERS):
        return _command(text)
    name, _, rest = text.partition(":")
    if name in KNOWN_TOOLS and rest:
        return _ready(name, rest)
    if name == "prepare" and rest:
        return _scripts(rest, with_preparation=True)
    return _scripts(text, with_preparation=False)


def _command(text: str) -> Tool:
    for place in NEEDED_PLACEHOLDERS:
        if place not in text:
            raise SpecificationError(
                f"tool '{text}' lacks {place}: a command needs {', '.join(NEEDED_PLACEHOLDERS)}"
            )
    environment, words = _split(text)
    files = (Path(word) for word in words if Path(word).is_absolute())
    own = next((file for file in files if file.is_file() and not is_interpreter(file.name)), None)
    return Tool(Path(words[0]).name if own is None else own.name, words, own, environment)


def _ready(name: str, rest: str) -> Tool:
    _, (place, *added) = _split(rest)
    folder = Path(place)
    python = folder / ".venv" / "bin" / "python"
    values = {
        "{tool}": shlex.quote(place),
        "{python}": shlex.quote(str(python)) if python.exists() else "python3",
    }
    environment, words = _split(_filled(KNOWN_TOOLS[name], values))
    return Tool(name, (*words, *added), folder, environment)


def _scripts(text: str, *, with_preparation: bool) -> Tool:
    place = Path(text).expanduser().absolute()
    inside = (place, place / "run_instance.sh", place / "vnncomp_scripts" / "run_instance.sh")
    script = next((path for path in inside if path.is_file()), None)
    if script is None:
        raise SpecificationError(
            f"tool '{text}' is no command with {', '.join(NEEDED_PLACEHOLDERS)}, none of "
            f"{', '.join(f'{name}:FOLDER' for name in KNOWN_TOOLS)}, and holds no run_instance.sh"
        )
    prepare = script.with_name("prepare_instance.sh")
    if with_preparation and not prepare.is_file():
        raise SpecificationError(f"tool '{text}': there is no {prepare}")
    name = script.name if script.name != "run_instance.sh" else _folder_name(script)
    return Tool(
        name,
        ("bash", str(script), *PROTOCOL, "{out}", "{timeout}"),
        script,
        prepare=("bash", str(prepare), *PROTOCOL) if with_preparation else (),
    )


def _folder_name(script: Path) -> str:
    folder = script.parent
    return folder.parent.name if folder.name == "vnncomp_scripts" else folder.name


def _split(text: str) -> tuple[tuple[tuple[str, str], ...], tuple[str, ...]]:
    """Leading NAME=VALUE words, and the others, with paths that exist made absolute."""
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise SpecificationError(f"tool '{text}' cannot be split into words: {error}") from None
    environment = []
    while words and "=" in words[0] and words[0].partition("=")[0].isidentifier():
        name, _, value = words.pop(0).partition("=")
        environment.append((name, value))
    if not words:
        raise SpecificationError(f"tool '{text}' names no program")
    return tuple(environment), (_absolute(words[0]), *map(_absolute_file, words[1:]))


def _absolute(word: str) -> str:
    """The tool runs in a folder of its own, so paths must not depend on where radii runs."""
    path = Path(word).expanduser()
    return str(path.absolute()) if "/" in word and path.exists() else word


def _absolute_file(word: str) -> str:
    """The same of an argument: the name of a script in this folder needs no slash."""
    path = Path(word).expanduser()
    return str(path.absolute()) if path.suffix and path.is_file() else _absolute(word)


def _filled(word: str, values: Mapping[str, str]) -> str:
    for place, value in values.items():
        word = word.replace(place, value)
    return word
