"""What the live page can start, and above all what it cannot; the history; ensembles."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from live_runs import TOKEN, Served, begin, broken, proven, serving
from test_live_page import BROWSER, browser, open_live
from test_report_ensembles import kept

from radii import demo
from radii.cli import main
from radii.errors import StoreError
from radii.processes import Allowance, ProgramEnd
from radii.statistics import read_store
from radii.store import Store
from radii.views import Gate, LiveServer
from radii.views.page._live import WatchedExperiment, find_experiments
from radii.views.page._progress import Sitting
from radii.views.page._starts import ExperimentStarter

__all__ = ["browser", "kept", "open_live"]

PATIENCE = 120.0
TINY = """networks = ["net.onnx"]
data = "digits:test[0:2]"
domain = [0, 1]
grid = "0.1:0.3:0.1"
search = "attack-only"
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Experiment files, and files that are none."""
    made = tmp_path / "descriptions"
    (made / "below").mkdir(parents=True)
    shutil.copy(demo.network_path("mlp-standard"), made / "net.onnx")
    (made / "tiny.toml").write_text(TINY)
    (made / "below" / "wrong.toml").write_text(TINY.replace("net.onnx", "absent.onnx"))
    (made / "pyproject.toml").write_text("[project]\nname = 'other'\n")
    (made / "broken.toml").write_text("networks = [")
    (made / "notes.txt").write_text(TINY)
    (made / ".hidden.toml").write_text(TINY)
    (tmp_path / "outside.toml").write_text(TINY)
    (made / "link.toml").symlink_to(tmp_path / "outside.toml")
    return made


@pytest.fixture
def out(tmp_path: Path) -> Path:
    (tmp_path / "results").mkdir()
    return tmp_path / "results"


@pytest.fixture
def served(out: Path, folder: Path) -> Iterator[Served]:
    with serving(out, experiments=folder) as running:
        yield running


def files(served: Served) -> dict[str, dict[str, Any]]:
    return {one["name"]: one for one in served.state()["files"]}


def wait_until(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < end, "it took too long"
        time.sleep(0.2)


def test_lists_experiment_files_and_nothing_else(served: Served) -> None:
    assert sorted(files(served)) == ["below/wrong.toml", "tiny.toml"]


def test_starts_a_run_whose_results_are_served(served: Served, out: Path) -> None:
    status, _, _ = served.ask("/start", method="POST", file=files(served)["tiny.toml"]["id"])
    assert status == 200
    wait_until(lambda: files(served)["tiny.toml"]["state"] == "finished")
    assert len(read_store(out / "tiny")) == 2
    # directories are walked every few seconds
    wait_until(lambda: [one["name"] for one in served.state()["experiments"]] == ["tiny"])


def test_what_fails_says_why(served: Served) -> None:
    served.ask("/start", method="POST", file=files(served)["below/wrong.toml"]["id"])
    wait_until(lambda: files(served)["below/wrong.toml"]["state"] == "failed")
    assert "absent.onnx" in files(served)["below/wrong.toml"]["message"]


@pytest.mark.parametrize("what", ["/start", "/stop"])
def test_nothing_starts_without_the_token(served: Served, out: Path, what: str) -> None:
    id_ = files(served)["tiny.toml"]["id"]
    for token in (None, "", "wrong", TOKEN[:-1]):
        assert served.ask(what, method="POST", token=token, file=id_)[0] == 403
    assert served.ask(what, method="GET", file=id_)[0] == 404, "reading starts nothing"
    foreign = {"Origin": "http://evil.example"}
    assert served.ask(what, method="POST", headers=foreign, file=id_)[0] == 403
    renamed = {"Host": "evil.example"}
    assert served.ask(what, method="POST", headers=renamed, file=id_)[0] == 403
    assert files(served)["tiny.toml"]["state"] == ""
    assert list(out.iterdir()) == []


@pytest.mark.parametrize(
    "file",
    ["", "tiny.toml", "../outside.toml", "/etc/passwd", "link.toml", "0" * 16, "tiny.toml;x"],
)
def test_requests_cannot_name_a_path(served: Served, out: Path, file: str) -> None:
    status, _, body = served.ask("/start", method="POST", file=file)
    assert (status, body) == (409, b"there is no such experiment file here")
    assert list(out.iterdir()) == []


def test_nothing_starts_unless_a_folder_was_named(out: Path) -> None:
    with serving(out) as served:
        assert served.state()["files"] is None
        assert served.ask("/start", method="POST", file="0" * 16)[0] == 404


def test_results_stay_below_the_served_directory(out: Path, folder: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (out / "tiny").symlink_to(tmp_path / "elsewhere")
    starter = ExperimentStarter(folder, out)
    id_ = next(one["id"] for one in starter.listed() if one["name"] == "tiny.toml")
    with pytest.raises(StoreError, match="leads out of"):
        starter.start(id_)
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_one_at_a_time_and_stopped_with_the_server(
    out: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lasting(
        command: list[str], place: Path, allowance: Allowance, cancelled: Callable[[], bool]
    ) -> ProgramEnd:
        end = time.monotonic() + PATIENCE
        while not cancelled():
            assert time.monotonic() < end
            time.sleep(0.01)
        return ProgramEnd(None, -9, "", "")

    monkeypatch.setattr("radii.views.page._starts.run_program", lasting)
    starter = ExperimentStarter(folder, out)
    ids = {one["name"]: one["id"] for one in starter.listed()}
    starter.start(ids["tiny.toml"])
    with pytest.raises(StoreError, match=r"tiny\.toml runs: one at a time"):
        starter.start(ids["below/wrong.toml"])
    with pytest.raises(StoreError, match="not started here"):
        starter.stop(ids["below/wrong.toml"])
    starter.close()
    assert {one["name"]: one["state"] for one in starter.listed()} == {
        "tiny.toml": "stopped",
        "below/wrong.toml": "",
    }


def test_a_directory_that_is_written_is_left_alone(out: Path, folder: Path) -> None:
    with Store.create_or_open(out / "tiny"):
        starter = ExperimentStarter(folder, out)
        id_ = next(one["id"] for one in starter.listed() if one["name"] == "tiny.toml")
        with pytest.raises(StoreError, match="another run is writing"):
            starter.start(id_)


def test_a_folder_that_is_none(out: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["serve", str(out), "--experiments", str(out / "nowhere")]) == 2
    assert "--experiments" in capsys.readouterr().err
    with pytest.raises(StoreError):
        LiveServer([out], Gate(TOKEN, "127.0.0.1"), 0, experiments=out / "nowhere")


def test_history_tells_when_answers_came(out: Path) -> None:
    made = begin(out / "run")
    with Store.create_or_open(out / "run") as store:
        store.record([broken(made[0], 0.105), proven(made[0], 0.1)])
    with serving(out) as served:
        (run,) = served.state()["experiments"]
    (sitting,) = run["sittings"]
    assert sitting["answers"] == 2
    assert abs(sitting["began"] - time.time()) < PATIENCE
    assert run["asked"].startswith("digits:test[0:9], linf, one-to-any")


def test_long_after_the_last_answer_another_sitting_begins(out: Path) -> None:
    begin(out / "run")
    found = WatchedExperiment(find_experiments([out])[0])
    found.refresh()
    progress = found._progress
    assert progress is not None
    for moment in (0.0, 100.0, 600.0, 5000.0):
        progress._seat(moment)
    assert progress.sittings == [Sitting(0.0, 600.0, 3), Sitting(5000.0, 5000.0, 1)]


def test_ensembles_are_found_and_shown(kept: Path) -> None:
    with serving(kept.parent) as served:
        (told,) = served.state()["ensembles"]
        assert (told["name"], told["is_shown"]) == ("kept", False)
        served.state(show=told["id"])
        status, _, body = served.ask("/facts.json", show=told["id"])
        assert status == 200
        (ensemble,) = json.loads(body)["ensembles"]
        assert ensemble["networks"][0] == "dark" and len(ensemble["values"]) == 4
    with serving(kept) as served:
        assert served.state()["ensembles"][0]["is_shown"], "its directory was named"


# --- in a browser

in_browser = pytest.mark.skipif(BROWSER is None, reason="there is no Chromium to open pages with")


@in_browser
def test_page_starts_a_run_and_tells_its_history(
    open_live: Callable[..., Any], served: Served
) -> None:
    page = open_live(served)
    row = page.locator('[data-file="tiny.toml"]')
    row.get_by_role("button", name="Start tiny.toml").click()
    page.locator('[data-file="tiny.toml"][data-state="running"]').wait_for()
    page.locator("#loading", has_text="tiny.toml is starting").wait_for()
    page.locator('[data-file="tiny.toml"][data-state="finished"]').wait_for()
    page.wait_for_selector("html[data-ready]")
    assert page.locator("#accuracy .name").all_inner_texts() == ["net"]
    page.locator(".history summary").click()
    assert "digits:test[0:2]" in page.locator(".history li").first.inner_text()
    wrong = page.locator('[data-file="below/wrong.toml"]')
    wrong.get_by_role("button").click()
    page.locator('[data-file="below/wrong.toml"][data-state="failed"]').wait_for()
    assert "absent.onnx" in wrong.inner_text()


@in_browser
def test_page_shows_an_ensemble_beside_a_run(
    open_live: Callable[..., Any], kept: Path, tmp_path: Path
) -> None:
    shutil.copytree(kept, tmp_path / "all" / "game")
    made = begin(tmp_path / "all" / "run")
    with Store.create_or_open(tmp_path / "all" / "run") as store:
        store.record([broken(made[0], 0.105), proven(made[0], 0.1)])
    with serving(tmp_path / "all") as served:
        page = open_live(served)
        page.wait_for_selector("html[data-ready]")
        page.locator(".run-list li", has_text="game").get_by_role("checkbox").check()
        page.locator("#ensembles h2").wait_for()
        assert "2 networks (dark" in page.locator("#ensembles").inner_text()
        assert page.locator(".run").count() == 1
