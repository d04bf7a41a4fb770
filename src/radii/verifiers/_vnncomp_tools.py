"""What `--tool` says: which program decides a VNN-LIB file, and how it is called."""

from __future__ import annotations

import re
import shlex
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from radii.errors import SpecificationError

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
    return tuple(environment), tuple(_absolute(word) for word in words)


def _absolute(word: str) -> str:
    """The tool runs in a folder of its own, so paths must not depend on where radii runs."""
    path = Path(word).expanduser()
    return str(path.absolute()) if "/" in word and path.exists() else word


def _filled(word: str, values: Mapping[str, str]) -> str:
    for place, value in values.items():
        word = word.replace(place, value)
    return word
