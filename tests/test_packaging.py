"""What is built holds everything, installs, and runs outside the repository; the Dockerfile."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
import zipfile
from email import message_from_string
from pathlib import Path

import pytest

import radii

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
NEEDED = ("pyproject.toml", "README.md", "LICENSE")

BUILD = """
import sys, tarfile
from pathlib import Path
from setuptools import build_meta
out = Path(sys.argv[1])
with tarfile.open(out / build_meta.build_sdist(str(out))) as source:
    source.extractall(out, filter="data")
import os
os.chdir(next(out.glob("radii-*/")))
build_meta.build_wheel(str(out))
"""


def package_files() -> set[str]:
    """Everything of both packages, as a wheel names it; what Python makes there is not meant."""
    source = ROOT / "src"
    return {
        str(path.relative_to(source))
        for package in ("radii", "radii_check")
        for path in (source / package).rglob("*")
        if path.is_file() and path.suffix != ".pyc"
    }


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with an sdist, and with the wheel that is built from it alone."""
    directory = tmp_path_factory.mktemp("built")
    copy = directory / "copy"
    shutil.copytree(
        ROOT / "src", copy / "src", ignore=shutil.ignore_patterns("__pycache__", "*.egg-info")
    )
    for name in NEEDED:
        shutil.copy(ROOT / name, copy)
    out = directory / "dist"
    out.mkdir()
    subprocess.run([sys.executable, "-c", BUILD, out], cwd=copy, check=True, capture_output=True)
    return out


def wheel_of(built: Path) -> Path:
    (wheel,) = built.glob("radii-*-py3-none-any.whl")
    return wheel


def test_the_wheel_holds_every_file_of_the_package(built: Path) -> None:
    with zipfile.ZipFile(wheel_of(built)) as wheel:
        names = {name for name in wheel.namelist() if ".dist-info/" not in name}
    assert names == package_files()
    assert {"radii/py.typed", "radii_check/py.typed"} <= names


def test_the_wheel_says_what_it_is(built: Path) -> None:
    with zipfile.ZipFile(wheel_of(built)) as wheel:
        (folder,) = {name.split("/")[0] for name in wheel.namelist() if ".dist-info/" in name}
        told = message_from_string(wheel.read(f"{folder}/METADATA").decode())
        commands = wheel.read(f"{folder}/entry_points.txt").decode()
        assert f"{folder}/licenses/LICENSE" in wheel.namelist()
    assert (told["Name"], told["Version"]) == ("radii", radii.__version__)
    assert set(told.get_all("Provides-Extra", [])) == set(PROJECT["optional-dependencies"])
    assert "radii = radii.cli:main" in commands
    assert "radii-check = radii_check.__main__:main" in commands


def test_the_source_distribution_holds_what_builds_it(built: Path) -> None:
    (path,) = built.glob("radii-*.tar.gz")
    with tarfile.open(path) as source:
        names = {name.partition("/")[2] for name in source.getnames()}
    assert names >= {f"src/{name}" for name in package_files()} | set(NEEDED)


def test_all_is_every_extra() -> None:
    extras = dict(PROJECT["optional-dependencies"])
    (everything,) = extras.pop("all")
    assert re.fullmatch(r"radii\[(.*)\]", everything)
    for_users = set(extras) - {"docs"}  # which builds the site
    assert set(everything[len("radii[") : -1].split(",")) == for_users


@pytest.mark.slow
def test_the_wheel_runs_outside_the_repository(built: Path, tmp_path: Path) -> None:
    """A new environment that shares only the packages radii needs, not radii itself."""
    environment = tmp_path / "environment"
    subprocess.run([sys.executable, "-m", "venv", environment], check=True)
    own = Path(sysconfig.get_path("purelib", "venv", {"base": str(environment)}))
    (own / "shared.pth").write_text(sysconfig.get_path("purelib") + "\n")
    python, outside = environment / "bin" / "python", tmp_path / "elsewhere"
    outside.mkdir()
    install = ["-m", "pip", "install", "--quiet", "--no-deps", "--no-index", str(wheel_of(built))]
    subprocess.run([python, *install], check=True)

    def run(*command: str | Path) -> str:
        clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        done = subprocess.run(command, cwd=outside, env=clean, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout

    place = run(python, "-c", "import radii; print(radii.__file__)")
    assert Path(place.strip()).is_relative_to(environment)
    command = environment / "bin" / "radii"
    run(command, "demo", "--inputs", "2", "--out", "demo")
    assert (outside / "demo" / "report.html").stat().st_size > 10**6
    run(command, "doctor")


# --- the Dockerfile, as far as it can be checked without docker

WHEEL = "$(echo /wheels/radii-*.whl)[all]"


def instructions() -> list[tuple[str, str]]:
    text = (ROOT / "Dockerfile").read_text()
    lines = re.sub(r"\\\n\s*", "", re.sub(r"^#.*\n", "", text, flags=re.MULTILINE))
    return [tuple(line.split(maxsplit=1)) for line in lines.splitlines() if line]  # type: ignore[misc]


def pinned(name: str) -> str:
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    (version,) = (line.split("==")[1] for line in lines if line.startswith(f"{name}=="))
    return version


def test_the_image_copies_what_is_there() -> None:
    copied = [words.split()[:-1] for name, words in instructions() if name == "COPY"]
    here = {path for paths in copied if not paths[0].startswith("--from") for path in paths}
    assert {*NEEDED, "src", "constraints.txt"} == here
    sent = (ROOT / ".dockerignore").read_text().splitlines()
    for path in here:
        assert (ROOT / path).exists()
        assert f"!{path}" in sent


def test_the_image_installs_what_is_pinned() -> None:
    steps = [step for name, words in instructions() if name == "RUN" for step in words.split("||")]
    installs = [shlex.split(step) for step in steps if "pip install" in step]
    asked = [words[-1] for words in installs]
    assert asked == [f"torch=={pinned('torch')}+cpu", f"torch=={pinned('torch')}", WHEEL]
    assert all("-c /wheels/constraints.txt" in shlex.join(words) for words in installs)
    assert f"torch=={pinned('torch')}" in (ROOT / "Makefile").read_text()


def test_the_image_runs_radii_and_not_as_root() -> None:
    last = dict(instructions())
    assert last["USER"] == "radii"
    assert json.loads(last["ENTRYPOINT"]) == ["radii"]
    assert json.loads(last["CMD"]) == ["--help"]
    bases = [words.split()[0] for name, words in instructions() if name == "FROM"]
    assert {base.removesuffix("-slim") for base in bases} == {"python:3.11"}
    assert PROJECT["requires-python"] == ">=3.11"


def test_citation_is_of_this_version() -> None:
    """CITATION.cff and the README's BibTeX name what is installed."""
    yaml = pytest.importorskip("yaml")
    told = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert told["version"] == radii.__version__ and told["license"] == "Apache-2.0"
    readme = (ROOT / "README.md").read_text()
    assert f"version = {{{radii.__version__}}}" in readme and told["title"] in readme
