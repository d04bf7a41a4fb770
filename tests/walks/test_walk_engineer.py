"""The first hour of an engineer: a torch model, and a build that fails when it gets fragile.

What docs/networks.md, docs/gate.md and docs/ci.md show: the module becomes an ONNX file that is
checked against it, a run measures it, the gate and a test require, and the card goes into the log.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

import radii
from conftest import work_in_this_process
from radii import demo
from radii.cli import main
from radii.testing import assert_robust

MEAN, STD = 0.3, 0.35
RUN = "run --network model.onnx --data images.npz --domain 0:1 --grid 0.01:0.3:0.01 --timeout 30"


@pytest.fixture
def module() -> nn.Module:
    """The engineer's model: it sees normalised images of digits."""
    torch.manual_seed(0)
    data = radii.datasets.load("digits", split="train")
    images = (torch.tensor(data.images) - MEAN) / STD
    labels = torch.tensor(data.labels)
    model = nn.Sequential(nn.Flatten(), nn.Linear(64, 16), nn.ReLU(), nn.Linear(16, 10))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    for _ in range(60):
        optimizer.zero_grad()
        torch.autograd.backward(nn.functional.cross_entropy(model(images), labels))
        optimizer.step()
    return model.eval()


def test_from_a_module_to_a_check(
    module: nn.Module,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    work_in_this_process(monkeypatch)
    network = radii.from_torch(module, input_shape=(1, 8, 8), domain=(0, 1), mean=MEAN, std=STD)
    Path("model.onnx").write_bytes(network.onnx_bytes)
    test = radii.datasets.load("digits", split="test").first(12)
    np.savez("images.npz", images=test.images, labels=test.labels)
    with torch.no_grad():
        logits = module((torch.tensor(test.images) - MEAN) / STD)
    right = int((logits.argmax(1).numpy() == test.labels).sum())

    assert main([*RUN.split(), "--out", "results"]) == 0
    capsys.readouterr()
    assert main(["show", "results", "--json"]) == 0
    (measured,) = json.loads(capsys.readouterr().out)["networks"]
    assert sum(instance["correct"] for instance in measured["instances"]) == right

    assert main(["gate", "results", "--require", "accuracy >= 0.7", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["passed"]
    assert main(["gate", "results", "--require", "robust_accuracy(0.25) >= 0.9"]) == 1
    assert "NOT MET" in capsys.readouterr().out
    assert main(["gate", "results", "--require", "robust_accuracy(lots) >= 0.9"]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1

    assert assert_robust("model.onnx", test, eps=0.01, at_least=0.5, domain=(0, 1)).statement
    with pytest.raises(AssertionError, match=r"not robust at eps 0\.25"):
        assert_robust("model.onnx", test, eps=0.25, at_least=0.9, domain=(0, 1))

    assert main(["card", "results", "-o", "ROBUSTNESS.md"]) == 0
    assert "model" in Path("ROBUSTNESS.md").read_text()


def test_a_failing_assertion_is_read_and_fixed() -> None:
    """The message tells what was required and what there is, and an input to look at; a network
    trained on adversarial examples meets it."""
    data = radii.datasets.load("digits", split="test").first(12)
    fragile, robust = (demo.network_path(f"mlp-{name}") for name in ("standard", "adversarial"))
    with pytest.raises(AssertionError) as caught:
        assert_robust(fragile, data, eps=0.1, at_least=0.5, domain=(0, 1))
    message = str(caught.value)
    assert "not robust at eps 0.1" in message
    assert "required is >= 0.5" in message
    proven, shown = re.findall(r"(\d+) of (\d+)", message)[0]
    assert int(shown) <= 12 and int(proven) < 6
    met = assert_robust(robust, data, eps=0.1, at_least=0.5, domain=(0, 1))
    # Two inputs were attacked together with the others, but no longer had to be proven.
    assert "at least 6 of 12 inputs are proven at eps 0.1" in met.statement
    assert "stopped, the requirement is met" in met.statement
