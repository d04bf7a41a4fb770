"""What a page says of the proof of an input: its size, and who has checked it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from made_experiments import HOSTILE, STANDARD, write_experiment
from opened_pages import BROWSER, browser, open_page

from radii.problem import FLOAT, CertificateCheck, CheckOutcome, Proof, ProofStatus, Result, Verdict
from radii.statistics import FollowedStore, read_store
from radii.store import CertifiedStatement, Store, content_hash
from radii.strategy import Question, QuestionKind
from radii.views import make_payload, render_page

__all__ = ["browser"]


def certify(place: Path) -> Path:
    """The first input is checked, the second is not, the fourth is refused."""
    accepted = CertificateCheck(
        "radii_check 1.0",
        "2030-01-02T03:04:05Z",
        CheckOutcome.ACCEPTED,
        nodes=41,
        lemmas=1234,
        seconds=0.25,
    )
    refused = CertificateCheck(
        "radii_check 1.0", "2030-01-02T03:04:05Z", CheckOutcome.REFUSED, reason=HOSTILE
    )
    told = {0: (0.05, 1, accepted), 1: (0.10, 18, None), 3: (0.02, 2000, refused)}
    with Store.create_or_open(place) as store:
        keys = store.instance_keys()
        for row, (eps, size, check) in told.items():
            content = bytes([row]) * (1000 * size)
            proof = Proof(eps, 0.0, FLOAT, content)
            result = Result(Verdict.ROBUST, eps, "native", "1", 1.0, proof=proof)
            store.record([(keys[row], Question(QuestionKind.PROVE, eps), result)])
            if check is not None:
                statement = CertifiedStatement(content_hash(content), keys[row], eps, FLOAT)
                store.record_checks([(statement, check)])
    return place


@pytest.fixture
def experiment(tmp_path: Path) -> Path:
    return write_experiment(tmp_path / "run", {"net": STANDARD})


def test_where_nothing_has_a_certificate_the_page_says_so(experiment: Path) -> None:
    facts = make_payload([experiment]).facts
    assert any(
        one.endswith(" proofs has a certificate: their provers are believed.")
        for one in facts["summary"]
    )
    assert set(facts["checks"]["status"]) == {"believed", ""}


def test_what_was_checked_is_in_sentences_and_notes(experiment: Path) -> None:
    facts = make_payload([certify(experiment)]).facts
    assert (
        "1 of 5 proofs checked by radii_check 1.0, 1 certified and not checked yet, 2 believed, "
        "1 REFUSED by the checker." in facts["summary"]
    )
    assert any(note.endswith("failed the check of its certificate.") for note in facts["notes"])
    assert facts["checks"]["checker"] == [
        *("radii_check 1.0 on 2030-01-02", "", "milp 2"),
    ]
    assert HOSTILE in facts["checks"]["reason"]
    assert HOSTILE not in render_page(make_payload([experiment]))


def test_a_live_page_learns_of_checks(experiment: Path) -> None:
    followed = FollowedStore(experiment)
    followed.refresh()
    assert followed.run().records[0].measurement.proof is ProofStatus.BELIEVED
    certify(experiment)
    assert followed.refresh()
    assert followed.run().records[0].measurement.proof is ProofStatus.CHECKED
    assert read_store(experiment).columns["proof"].tolist() == [
        *("checked", "unchecked", "", "failed", "believed", "believed")
    ]
    assert followed.refresh() == []


@pytest.mark.skipif(BROWSER is None, reason="there is no Chromium to open pages with")
def test_the_detail_view_says_it(experiment: Path, browser: Any, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    page.write_text(render_page(make_payload([certify(experiment)])))
    said = {
        0: "Its certificate (1 kB, 41 nodes and 1,234 lemmas) was "
        "checked by radii_check 1.0 on 2030-01-02 in 0.25 s.",
        1: "Its certificate (18 kB) has not been checked yet; radii check does that.",
        3: f"Its certificate (2 MB) was refused by radii_check 1.0 on 2030-01-02: {HOSTILE}.",
        4: "Its proof has no certificate: milp 2 is trusted.",
    }
    for row, text in said.items():
        for opened in open_page(browser, page, at=f"#row-{row}"):
            assert opened.page.locator("#detail .proof").inner_text() == text
            assert opened.wrong == []
    for opened in open_page(browser, page, at="#row-2"):
        assert opened.page.locator("#detail .proof").count() == 0, "it has no proof"
