"""Every name that the documentation writes in code style exists: Python, files and commands."""

from __future__ import annotations

import argparse
import builtins
import re
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType

import onnx.defs
import torch

from conftest import parsers
from radii.cli import build_parser
from test_documentation import FENCE, PAGES, ROOT, by_name
from test_imports import LAYERS

OWNERS = {
    "CONTRIBUTING adds them": ("src/radii/verifiers/_mine.py", "--restarts"),
    "GitHub and HTTP": ("GITHUB_STEP_SUMMARY", "Bearer"),
    "SLURM": ("SLURM_JOB_ID", "SLURM_GPUS_ON_NODE", "SLURM_NNODES"),
    "VNN-COMP": ("run_instance.sh", "prepare_instance.sh", "vnncomp_scripts", "NET_PROP"),
    "a formula": ("L_C",),
    "alpha-beta-CROWN": ("abcrown.py", "--config"),
    "files of the reader": ("cifar10.toml", "fashion.toml", "main.py", "mnist.toml", "study.toml"),
    "foolbox": ("LInfFMNAttack",),
    "keras": ("from_logits",),
    "oval-bab": ("bab_from_json", "bab_from_vnnlib.py", "bab_runner.py"),
    "pytest": ("--junitxml",),
    "scikit-learn": ("LinearSVC", "RidgeClassifier", "SGDClassifier"),
    "timing another program": ("--cpu",),
    "what the reader puts in": ("PLACE", "RESULT", "TOKEN"),
}
FOREIGN = frozenset(name for names in OWNERS.values() for name in names)
"""What the documentation names and radii does not have."""

TOPS = ("src", "papers", "tests", "docs", "scripts", "benchmarks", "examples")
SOURCES = ("src", "papers/src", "benchmarks")
FILES = ("py", "pyi", "toml", "md", "yml", "sh", "cff")
SPAN = re.compile(r"(?<!`)`([^`]+)`(?!`)")
FLAG = re.compile(r"(?<![\w-])--[a-z][\w-]*")
FILE = re.compile(rf"(?<![\w./-])(?:[\w.-]+/)*[\w-]+\.(?:{'|'.join(FILES)})(?!\w)")
FOLDER = re.compile(r"(?:src|radii|papers|tests|docs|scripts|benchmarks)(?:/[a-z_.]+)+/?")
DATA = re.compile(
    r"[\w/~.*-]+\.(?:cert|csv|fish|gz|json|npz|onnx|pdf|png|sbatch|sqlite|svg|vnnlib)\b"
)
WORD = re.compile(r"(?<![\w.*-])[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*(?![\w*-])")
CLASS = re.compile(r"[A-Z]\w*[a-z]\w*")
CAPITALS = re.compile(r"(?<![\w$.-])[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+(?![\w-])")
DOCSTRING = re.compile(r'^\s*"""(?:.|\n)*?"""', re.MULTILINE)
COMMENT = re.compile(r"(?<=\s)# .*")


def test_no_page_has_a_placeholder() -> None:
    """Words in capitals are constants, variables of the environment, or of VNN-LIB."""
    found = [
        f"{by_name(page)}: {word}"
        for page in PAGES
        for word in CAPITALS.findall(page.read_text())
        if not (unnumbered(word) in vocabulary() or word in FOREIGN)
    ]
    assert not found, listed(found)


def test_names_of_python_and_files_exist() -> None:
    missing = []
    for page in pages():
        own = set(re.findall(r"\w+", " ".join(text for _, text in FENCE.findall(page.read_text()))))
        for span in spans(page):
            files = FILE.findall(span)
            words = WORD.findall(DATA.sub("", FILE.sub("", FLAG.sub("", span))))
            names = [word for word in words if not is_name(word, own)]
            lost = [file for file in files if not is_file(file)]
            if FOLDER.fullmatch(span) and span not in FOREIGN:
                lost += [] if (ROOT / span).exists() or (ROOT / "src" / span).exists() else [span]
            missing += [f"{by_name(page)}: {name} in `{span}`" for name in (*names, *lost)]
    assert not missing, listed(missing)


def test_commands_and_their_flags_exist() -> None:
    parser = build_parser()
    everywhere = {flag for one in parsers(parser) for flag in flags_of(one)}
    missing = []
    for page in pages():
        for span in spans(page):
            words = span.removeprefix("radii ").split()
            known, is_ours = everywhere, words[0].startswith("-")
            if span.startswith("radii ") or words[0] in commands_below(parser):
                command = command_of(parser, words)
                if command is None:
                    missing.append(f"{by_name(page)}: {span}")
                    continue
                known, is_ours = flags_of(command), True
            unknown = [f for f in FLAG.findall(span) if f not in known and f not in FOREIGN]
            missing += [f"{by_name(page)}: {flag} in `{span}`" for flag in unknown if is_ours]
    assert not missing, listed(missing)


def test_the_layout_lists_every_package() -> None:
    section = (ROOT / "CONTRIBUTING.md").read_text().partition("## Layout\n")[2]
    layout = next(text for _, text in FENCE.findall(section))
    entries = re.findall(r"^((?:\w+(?:/|\.py) ?)+)", layout, re.MULTILINE)
    listed_names = [re.sub(r"/|\.py", "", name) for line in entries for name in line.split()]
    assert sorted(listed_names) == sorted(set(LAYERS) - {"__main__"})


# --- what pages name


def listed(lines: list[str]) -> str:
    return "\n" + "\n".join(lines)


def pages() -> Iterator[Path]:
    """What a changelog says was true once."""
    return (page for page in PAGES if page.name != "CHANGELOG.md")


def spans(page: Path) -> list[str]:
    return [" ".join(span.split()) for span in SPAN.findall(FENCE.sub("", page.read_text()))]


# --- what there is


def is_name(word: str, own: set[str]) -> bool:
    """It is one, or a word like any other; `own` are names that the page itself defines."""
    first, *rest = word.split(".")
    if first in ("radii", "radii_check"):
        return is_path_of(first, rest)
    if not (rest or "_" in word or CLASS.fullmatch(word) or word.isupper()):
        return True
    return all(part in own or is_known(part) for part in (first, *rest))


def is_path_of(package: str, names: list[str]) -> bool:
    found: object = import_module(package)
    for place, name in enumerate(names):
        if hasattr(found, name):
            found = getattr(found, name)
        elif isinstance(found, ModuleType):
            try:
                found = import_module(".".join((package, *names[: place + 1])))
            except ImportError:
                return False
        else:
            return name in getattr(found, "__annotations__", {})
    return True


def is_known(name: str) -> bool:
    """A name of the sources but for its numbers, or two of them that are put together there, such
    as `x_` and `test`."""
    name = unnumbered(name)
    cuts = [at for at, letter in enumerate(name) if letter == "_"]
    halves = [(name[: at + end], name[at + end :]) for at in cuts for end in (0, 1)]
    return (
        name in vocabulary()
        or name in map(unnumbered, FOREIGN)
        or name in operators_of_onnx()
        or any(hasattr(owner, name) for owner in (builtins, torch, torch.nn))
        or any(half in vocabulary() and rest in vocabulary() for half, rest in halves)
    )


def is_file(name: str) -> bool:
    """One of the repository; or one that somebody else has or radii writes, in any folder."""
    last = name if name.split("/")[0] in TOPS else name.rpartition("/")[2]
    return {name, last} & (FOREIGN | ends_of_paths()) != set()


@cache
def vocabulary() -> frozenset[str]:
    """Words of the sources, other than their docstrings and comments."""
    return frozenset(unnumbered(word) for path in sources() for word in words_of(path))


def unnumbered(word: str) -> str:
    """Architectures such as `relu_7_1024` are named by their numbers."""
    return re.sub(r"\d+", "0", word)


@cache
def operators_of_onnx() -> frozenset[str]:
    return frozenset(unnumbered(schema.name) for schema in onnx.defs.get_all_schemas())


@cache
def ends_of_paths() -> frozenset[str]:
    """Of files in the repository, and names of files in strings of the sources."""
    paths = [*ROOT.iterdir(), *(path for top in TOPS for path in (ROOT / top).rglob("*.*"))]
    parts = [path.relative_to(ROOT).parts for path in paths]
    ends = ("/".join(each[-count:]) for each in parts for count in range(1, len(each) + 1))
    written = (FILE.findall(path.read_text()) for path in sources())
    return frozenset([*ends, *(name for names in written for name in names)])


def sources() -> list[Path]:
    return [path for top in SOURCES for path in sorted((ROOT / top).rglob("*.py"))]


def words_of(path: Path) -> list[str]:
    text = COMMENT.sub("", DOCSTRING.sub("", path.read_text()))
    return [*path.relative_to(ROOT).with_suffix("").parts, *re.findall(r"\w+", text)]


def flags_of(parser: argparse.ArgumentParser) -> set[str]:
    return {option for action in parser._actions for option in action.option_strings}


def commands_below(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    """The commands below a parser."""
    below = [a for a in parser._actions if isinstance(a, argparse._SubParsersAction)]
    return dict(below[0].choices) if below else {}


def command_of(parser: argparse.ArgumentParser, words: list[str]) -> argparse.ArgumentParser | None:
    """The parser of a command line; None if there is no such command."""
    for word in words:
        commands = commands_below(parser)
        if not commands or not re.fullmatch(r"[a-z-]+", word):
            return parser
        if word not in commands:
            return None
        parser = commands[word]
    return parser
