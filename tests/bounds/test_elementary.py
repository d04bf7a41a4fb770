"""The stated errors of elementary functions: what the measuring script found, rounded up."""

from __future__ import annotations

import importlib.util
import math
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from radii.networks import MEASURED_ERRORS

SCRIPT = Path(__file__).parents[2] / "scripts" / "measure_elementary.py"

STRIDE = 1 << 13
"""Half a million numbers of each function."""


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("measure_elementary", SCRIPT)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


def test_what_is_stated_is_the_full_run_rounded_up_to_halves() -> None:
    """As measured with ONNX Runtime 1.31.1 on x86-64 with AVX-512."""
    stated = {name: error.stated for name, error in MEASURED_ERRORS.items()}
    assert {"Sigmoid": 3.0, "Tanh": 5.5, "Softmax": 3.5}.items() <= stated.items()


@pytest.mark.parametrize("name", MEASURED_ERRORS)
def test_a_sample_of_all_numbers_stays_below(name: str, script: ModuleType) -> None:
    (operator,) = (each for each in script.OPERATORS if each.name == name)
    total = script.joined(script.measured(operator, STRIDE))
    assert 0.5 < script.units(name, total) <= MEASURED_ERRORS[name].stated  # 0.5: one rounding
    (line,) = script.beside_stated({name: total})
    assert line.startswith(f"{name} ") and line.endswith(
        f"-> stated {MEASURED_ERRORS[name].stated:g}, ok"
    )


@pytest.mark.parametrize("name", MEASURED_ERRORS)
def test_the_worst_numbers_of_the_full_run_stay_below(name: str, script: ModuleType) -> None:
    """A block of neighbours of each, which the sample above may miss."""
    (operator,) = (each for each in script.OPERATORS if each.name == name)
    worst = MEASURED_ERRORS[name].at
    code = int(np.float32(abs(worst)).view(np.uint32))
    x = np.arange(code - 4096, code + 4096, dtype=np.uint32).view(np.float32)
    x = np.sort(np.float32(np.sign(worst)) * x)
    figures, _ = script.in_chunks(operator, operator.kernel(), x, math.nan)
    assert 0.9 < script.units(name, figures) <= MEASURED_ERRORS[name].stated


def test_more_than_is_stated_is_told(script: ModuleType) -> None:
    (operator,) = (each for each in script.OPERATORS if each.name == "Tanh")
    x = np.linspace(-1, 1, 100, dtype=np.float32)
    wrong = script.compared(operator, x, np.tanh(x) + np.float32(1e-6), math.nan)
    (line,) = script.beside_stated({"Tanh": wrong})
    assert line.endswith("-> stated 5.5, EXCEEDED")
