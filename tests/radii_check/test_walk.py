"""The README's walk through one certificate: every number in it is computed again here."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import radii_check
from radii_check import check, read_certificate
from radii_check._bounds import Bounds
from radii_check._numbers import Numbers
from radii_check._onnx import read_network
from radii_check._regions import Regions

FOLDER = Path(radii_check.__file__).parent
MODEL = (FOLDER / "example" / "walk.onnx").read_bytes()
CERTIFICATE = read_certificate((FOLDER / "example" / "walk.cert").read_bytes())
A = CERTIFICATE.arrays
U = 2.0**-24
OUTPUT = 2.9375


def rounding(size: float) -> float:
    """E of a sum of two products."""
    return 6 * U * size / (1 - 6 * U)


ARGUMENT, FIRST, SECOND = rounding(2.0), rounding(OUTPUT), rounding(4.0)
GAMMA = float(A["gamma"][0])
LOWER, UPPER = float(A["bound"][0]), float(A["upper"][0, 0])
CONSTANT_OF_D = OUTPUT - UPPER
LEMMA = GAMMA * (1 + CONSTANT_OF_D) - 2
LOST = ARGUMENT + GAMMA * (FIRST + SECOND)
SLOPE = UPPER / (UPPER - LOWER)
CONSTANT = -SLOPE * LOWER


def numbers() -> dict[str, str]:
    """What stands in the README, and where it comes from."""
    closing = OUTPUT - 2 * CONSTANT
    return {
        "E of an argument": f"{ARGUMENT:.3e}",
        "E of y_0": f"{FIRST:.3e}",
        "E of y_1": f"{SECOND:.3e}",
        "the ground bounds": f"{UPPER:.8f}",
        "what intervals show": f"{2 + ARGUMENT:.8f}",
        "d without lemmas": f"{CONSTANT_OF_D:.8f}",
        "the bound without lemmas": f"{CONSTANT_OF_D - 1:.8f}",
        "gamma": f"gamma {GAMMA:.8f}",
        "the bound that lemma 0 states": f"{LOWER:.8f}",
        "its row": f"{LEMMA:.8f}",
        "its losses": f"{LOST:.3e}",
        "its row less the losses": f"{LEMMA - LOST:.8f}",
        "the chord's slope": f"{SLOPE:.8f}",
        "the chord's constant": f"{CONSTANT:.8f}",
        "the constant of the closing row": f"{closing:.8f}",
        "the closing row": f"{closing - 2 * SLOPE:.8f}",
        "the smallest margin": f"{LEMMA - LOST - LOWER:.1e}",
    }


@pytest.mark.parametrize("what", numbers())
def test_the_readme_has_this_number(what: str) -> None:
    assert numbers()[what] in (FOLDER / "README.md").read_text(), f"{what}: {numbers()[what]}"


def test_the_example_is_what_the_readme_says() -> None:
    claim = CERTIFICATE.claim
    assert (claim["norm"], claim["eps"], claim["arithmetic"]) == ("linf", 1.0, "float")
    assert claim["requirement"] == {"kind": "one-to-any", "label": 0}
    assert A["parent"].tolist() == [-1]
    assert A["unit"].tolist() == [0, 1, -1]
    assert A["round"].tolist() == [0, 0, 1]
    assert A["gamma"].tolist() == [GAMMA, GAMMA, 1.0]
    assert A["slopes"].tolist() == [0] * 6
    assert not len(A["beta"])


def test_the_checker_comes_to_the_same_numbers() -> None:
    report = check((FOLDER / "example" / "walk.cert").read_bytes(), MODEL)
    assert report.accepted
    assert (report.nodes, report.lemmas) == (1, 3)
    assert report.smallest_margin == pytest.approx(LEMMA - LOST - LOWER, rel=1e-2)


def test_the_errors_are_those_of_the_checker() -> None:
    num = Numbers()
    _, network = read_network(MODEL, num)
    bounds = Bounds(network, Regions.of_claim(CERTIFICATE, A["eps"], num), 1.0, num)
    bounds.lower, bounds.upper = (A[name].T.astype(np.float64) for name in ("lower", "upper"))
    bounds.forward(lambda node, low, high: None)
    (relu,) = (n for n, node in enumerate(network.nodes) if getattr(node, "kind", "") == "Relu")
    assert bounds.loss[relu].ravel() == pytest.approx([ARGUMENT] * 2, rel=1e-5)
    assert bounds.loss[bounds.end].ravel() == pytest.approx([FIRST, SECOND], rel=1e-5)
