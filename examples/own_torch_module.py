"""Measure a torch module of your own, with its own normalisation.

python examples/own_torch_module.py

The module sees normalised images; eps stays in the data's units, pixels between 0 and 1.
"""

from __future__ import annotations

import torch
from torch import nn

import radii

MEAN, STD = 0.3, 0.35


def trained_module(images: torch.Tensor, labels: torch.Tensor) -> nn.Module:
    torch.manual_seed(0)
    module = nn.Sequential(nn.Flatten(), nn.Linear(64, 16), nn.ReLU(), nn.Linear(16, 10))
    optimizer = torch.optim.Adam(module.parameters(), lr=0.02)
    for _ in range(100):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(module((images - MEAN) / STD), labels)
        torch.autograd.backward(loss)
        optimizer.step()
    return module


def main() -> None:
    train = radii.datasets.load("digits", split="train")
    module = trained_module(torch.tensor(train.images), torch.tensor(train.labels))
    network = radii.from_torch(
        module, input_shape=(1, 8, 8), domain=(0, 1), mean=MEAN, std=STD, name="my-module"
    )
    test = radii.datasets.load("digits", split="test")
    distribution = radii.robustness_distribution(network, test.first(10), grid="0.01:0.6:0.01")
    print(distribution.to_pandas()[["input", "label", "correct", "lower", "upper"]])


if __name__ == "__main__":
    main()
