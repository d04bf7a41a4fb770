"""A published data set is one file: what follows from it, and the diff in CONTRIBUTING."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import official_files as made
import pytest

import radii
from radii.datasets import catalogue, published_names

ROOT = Path(radii.__file__).parents[2]


def test_each_file_is_a_set_of_its_name() -> None:
    folder = ROOT / "src/radii/datasets/published"
    names = {path.stem.strip("_").replace("_", "-") for path in folder.glob("_[a-z]*.py")}
    assert names == set(published_names()) == {known.name for known in catalogue()}


def test_listing_names_loads_no_set_and_no_numpy() -> None:
    code = "import sys; from radii.datasets import published_names as n; n(); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert "numpy" not in loaded
    assert not [name for name in loaded if name.startswith("radii.datasets.published._")]


@pytest.mark.parametrize(
    "file", ["docs/certificates.md", "docs/data.md", "docs/networks.md", "src/radii/api.py"]
)
def test_what_is_derived_is_as_it_would_be_written(
    monkeypatch: pytest.MonkeyPatch, file: str
) -> None:
    monkeypatch.syspath_prepend(ROOT / "scripts")
    import derived_texts

    text = (ROOT / file).read_text("utf-8")
    assert derived_texts.with_derived(file, text) == text, "run python scripts/derived_texts.py"


# --- the way that CONTRIBUTING shows


def added_set() -> tuple[str, str]:
    """Path and content of the file that CONTRIBUTING adds."""
    blocks = re.findall(r"```diff\n(.*?)```", (ROOT / "CONTRIBUTING.md").read_text(), re.S)
    (diff,) = [block for block in blocks if "datasets/published/" in block]
    path = re.search(r"^\+\+\+ b/src/radii/(\S+)$", diff, re.MULTILINE)
    assert path is not None
    lines = [line[1:] for line in diff.splitlines() if re.match(r"\+(?!\+\+)", line)]
    return path[1], "\n".join(lines) + "\n"


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A copy of the package with the set of CONTRIBUTING."""
    path, content = added_set()
    home, own = tmp_path / "radii", Path(path).parent
    for folder in (Path(), Path("datasets"), own):
        (home / folder).mkdir()
        for entry in (ROOT / "src/radii" / folder).iterdir():
            if entry.relative_to(ROOT / "src/radii") not in (Path("datasets"), own):
                (home / folder / entry.name).symlink_to(entry)
    (home / path).write_text(content)
    return tmp_path


def test_the_diff_in_contributing_is_all_that_a_data_set_takes(
    package: Path, tmp_path: Path
) -> None:
    made.write_mnist(tmp_path / "files", packed=True)
    environment = {
        "PYTHONPATH": str(package),
        "RADII_DATA": str(tmp_path / "data"),
        "COLUMNS": "100",
        "HOME": str(tmp_path),
    }

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "radii", *arguments]
        return subprocess.run(command, env=environment, capture_output=True, text=True)

    assert "kmnist" in run("data", "get", "--help").stdout
    network = str(ROOT / "src/radii/demo/mlp-standard.onnx")
    asked = ("run", "--network", network, "--data", "kmnist:test[0:2]", "--domain", "0:1")
    missing = run(*asked, "--out", str(tmp_path / "out"))
    assert missing.returncode == 2
    assert "data set 'kmnist' is not in place; run: radii data get kmnist" in missing.stderr
    put = run("data", "get", "kmnist", "--from", str(tmp_path / "files"))
    assert put.returncode == 0, put.stderr
    assert "20 train, 10 test images of 1x28x28" in put.stdout
    listed = json.loads(run("data", "list", "--json").stdout)["datasets"]
    (row,) = [row for row in listed if row["name"] == "kmnist"]
    assert (row["title"], row["test"], row["classes"]) == (
        "Kuzushiji-MNIST, cursive Japanese characters",
        10,
        10,
    )
    table = subprocess.run(
        [sys.executable, "-c", "import derived_texts; print(derived_texts.published_sets())"],
        env={**environment, "PYTHONPATH": f"{package}:{ROOT / 'scripts'}"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert "| `kmnist` | 1x28x28 | 60000 | 10000 | IDX files |" in table.stdout
