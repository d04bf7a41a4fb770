"""What a distribution shows of itself: numbers known by hand, and a small picture."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import numpy as np
import pytest

from radii import Distribution
from radii.errors import DataError

KNOWN = Distribution.from_arrays(
    lower=[0.1, 0.2, 0.3, 0.0],
    upper=[0.15, 0.25, np.inf, 0.0],
    network="mine",
    arithmetic=["float", "float", "float", ""],
)


def test_the_text_has_the_numbers() -> None:
    title, *lines = str(KNOWN).splitlines()
    facts = dict(re.split(r"\s{2,}", line.strip(), maxsplit=1) for line in lines[:-1])
    assert title == "Distribution of 4 brackets: 4 inputs on mine, one-to-any"
    assert facts == {
        "correct": "3 of 4",
        "median radius": "[0.2, 0.25)",
        "lowest radius": "[0.1, 0.15)",
        "mean gap": "0.05",
        "robust accuracy at 0.1": "0.75",
        "robust accuracy at 0.2": "0.5",
        "robust accuracy at 0.3": "0.25",
    }
    assert lines[-1] == "  proofs hold for floating point"
    assert repr(KNOWN) == str(KNOWN)


def test_what_is_open_is_an_interval_and_what_is_unanswered_is_counted() -> None:
    text = str(Distribution.from_arrays([0.1, 0.0, 0.0], [0.3, np.inf, 0.0]))
    assert "robust accuracy at 0.2  0 to 0.667" in text
    assert re.search(r"without any answer +1\n", text)
    assert "lowest radius           [0, 0.3)" in text


def test_nothing_is_made_up_where_nothing_is_right() -> None:
    text = str(Distribution.from_arrays([0.0], [0.0]))
    assert re.search("correct +0 of 1", text)
    assert re.search("median radius +-$", text, re.MULTILINE)
    assert "robust accuracy" not in text


def test_a_column_for_each_network() -> None:
    several = [KNOWN.labelled(network=f"net-{place}") for place in range(7)]
    text = str(Distribution.union(several))
    assert text.splitlines()[0].endswith("4 inputs on 7 networks, one-to-any")
    assert text.splitlines()[1].split() == [f"net-{place}" for place in range(5)]
    assert "and 2 more networks" in text


@pytest.mark.parametrize("name", ["mine", "<script>alert(1)</script>\x1b[2J"])
def test_notebooks_get_a_table_and_a_curve(name: str) -> None:
    both = Distribution.union([KNOWN.labelled(network=name), KNOWN.labelled(network="b & c")])
    page = ElementTree.fromstring(both._repr_html_())
    assert page.find(".//script") is None
    assert "[0.2, 0.25)" in "".join(page.itertext())
    assert "b & c" in "".join(page.itertext())
    assert "\x1b" not in "".join(page.itertext())
    (picture,) = page.iter("svg")
    assert len(list(picture.iter("polyline"))) == 4  # proven and not refuted, of two networks
    assert picture.get("fill") == "currentColor"  # light and dark
    assert "http" not in both._repr_html_()


def test_the_curve_steps_where_the_brackets_are() -> None:
    """Axes from 0 to 0.3; proven: 3 of 4 up to 0.1, 2 up to 0.2, 1 up to the end."""
    (picture,) = ElementTree.fromstring(KNOWN._repr_html_()).iter("svg")
    not_refuted, proven = (line.attrib["points"].split() for line in picture.iter("polyline"))
    heights = [float(point.split(",")[1]) for point in proven]
    assert np.unique(heights).size == 4 - 1
    assert len(set(not_refuted)) >= 6
    lowest, highest = min(heights), max(heights)
    assert 0 < lowest < highest < float(picture.attrib["height"])


def test_targets_are_of_one_property() -> None:
    targeted = KNOWN.labelled(property=[f"one-to-one:{t}" for t in range(4)], target=range(4))
    assert str(targeted).splitlines()[0].endswith("on mine, one-to-one")
    mixed = Distribution.union([targeted, KNOWN])
    assert str(mixed).splitlines()[0].endswith("on mine, 2 properties")


def test_an_empty_part_is_named_in_one_line() -> None:
    with pytest.raises(DataError, match=r"^no bracket on mine is left$"):
        KNOWN.where(lambda _: False)


def test_thin_is_proven_and_thick_is_not_refuted() -> None:
    """As in the report, on the board and in comparisons."""
    open_one = Distribution.from_arrays([0.1, 0.2], [np.inf, np.inf])
    (picture,) = ElementTree.fromstring(open_one._repr_html_()).iter("svg")
    not_refuted, proven = sorted(
        picture.iter("polyline"), key=lambda line: len(line.get("points", ""))
    )
    assert len(set(re.findall(r",(\S+)", not_refuted.attrib["points"]))) == 1  # it never falls
    assert float(proven.attrib["stroke-width"]) < float(not_refuted.attrib["stroke-width"])
    assert "stroke-dasharray" not in {**proven.attrib, **not_refuted.attrib}
    assert "thin proven, thick not refuted" in "".join(picture.itertext())


def asked_at(
    eps: float, lower: list[float], upper: list[float], name: str = "mine"
) -> Distribution:
    columns = {"lower": np.array(lower), "upper": np.array(upper), "network": name}
    return Distribution.of_columns(columns, only_eps=eps)


def test_where_one_eps_was_asked_about_robust_accuracy_is_told_there() -> None:
    """Two of four proven at 0.07, one open, one broken at 0.03."""
    one = asked_at(0.07, [0.07, 0.07, 0.0, 0.0], [np.inf, np.inf, np.inf, 0.03])
    for part in (
        one,
        one.labelled(split="test"),
        one.select([0, 1, 2, 3]),
        one.by_network()["mine"],
    ):
        assert re.findall("robust accuracy at .*", str(part)) == [
            "robust accuracy at 0.07  0.5 to 0.75"
        ]
    assert "robust accuracy at 0.07" in one._repr_html_()
    both = Distribution.union([one, asked_at(0.07, [0.0], [0.0], "wrong")])
    assert re.search("robust accuracy at 0.07 +0.5 to 0.75 +0$", str(both), re.MULTILINE)
    other = Distribution.union([one, asked_at(0.2, [0.2], [np.inf], "other")])
    assert "robust accuracy at 0.07" not in str(other)


def test_the_curve_reaches_the_one_eps_that_was_asked_about() -> None:
    broken_early = asked_at(0.1, [0.0, 0.0], [0.012, 0.013])
    assert "robust accuracy at 0.1  0" in str(broken_early)
    (picture,) = ElementTree.fromstring(broken_early._repr_html_()).iter("svg")
    assert "0.1" in [text.text for text in picture.iter("text")]
