"""A table: eps in units of each feature, features that stay, integers, and a category that moves.

python examples/credit_table.py

The data are made up, by the rule in `applications`: nobody's credit is in them. It writes
credit.csv, credit.onnx (one output: the score, approved above 0) and credit_features.csv, which
docs/tabular.md goes on with, and then measures ten applications in Python.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from torch import nn

import radii
from radii import datasets, statistics

NAMES = ("income", "debt", "age", "late_payments", "purpose_car", "purpose_home", "purpose_other")

FEATURES = """\
feature,kind,low,high,scale,group
income,number,0,250000,10000,
debt,number,0,150000,10000,
age,fixed,18,100,,
late_payments,integer,0,12,2,
purpose_car,one-hot,,,2,purpose
purpose_home,one-hot,,,2,purpose
purpose_other,one-hot,,,2,purpose
"""


def applications(count: int = 600) -> tuple[np.ndarray, np.ndarray]:
    """Synthetic rows and whether they are approved; the same on every machine."""
    rng = np.random.Generator(np.random.PCG64(2026))
    income = np.round(20_000 + 90_000 * rng.random(count) ** 2, -2)
    debt = np.round(60_000 * rng.random(count), -2)
    age = np.floor(20 + 50 * rng.random(count))
    late = np.floor(6 * rng.random(count) ** 3)
    purpose = np.eye(3)[np.floor(3 * rng.random(count)).astype(int)]
    score = income / 30_000 - debt / 25_000 - 0.6 * late + purpose @ [0.0, 0.5, -0.5] + age / 100
    approved = score + 0.3 * (rng.random(count) - 0.5) > 0.4
    table = np.column_stack([income, debt, age, late, purpose])
    return table.astype(np.float32), approved.astype(int)


def train(table: np.ndarray, approved: np.ndarray) -> nn.Module:
    """On columns of mean 0 and deviation 1; one output, the score."""
    torch.manual_seed(0)
    network = nn.Sequential(nn.Linear(7, 12), nn.ReLU(), nn.Linear(12, 1))
    inputs = torch.from_numpy((table - table.mean(0)) / table.std(0)).float()
    wanted = torch.from_numpy(approved).float()[:, None]
    optimizer = torch.optim.Adam(network.parameters(), lr=0.02)
    for _ in range(200):
        optimizer.zero_grad()
        nn.functional.binary_cross_entropy_with_logits(network(inputs), wanted).backward()
        optimizer.step()
    return network


def main() -> None:
    table, approved = applications()
    words = np.where(approved == 1, "yes", "no")
    rows = [
        ",".join([*(f"{v:g}" for v in row), word]) for row, word in zip(table, words, strict=True)
    ]
    Path("credit.csv").write_text("\n".join([",".join([*NAMES, "approved"]), *rows]) + "\n")
    Path("credit_features.csv").write_text(FEATURES)
    module = train(table, approved)
    exported = radii.from_torch(module, input_shape=(7,), domain=(-9, 9), name="credit")
    Path("credit.onnx").write_bytes(exported.onnx_bytes)

    features = datasets.read_features("credit_features.csv")
    radii.robustness_distribution(
        "credit.onnx",
        datasets.load_spec("credit.csv[0:10]", label="approved"),
        domain=features.domain(None),
        mean=table.mean(0),
        std=table.std(0),
        features=features,
        grid="0.05:2.05:0.05",
        out="credit-results",
    )
    for witness in statistics.named_witnesses(Path("credit-results")).values():
        found = witness.measurement
        print(f"application {found.input}, radius below {found.bracket.upper:.3g}: {witness}")


if __name__ == "__main__":
    main()
