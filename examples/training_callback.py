"""Watch robustness while you train: a row of the distribution after each epoch.

python examples/training_callback.py

The log is fast because it is rough: ten images, an attack, and proofs of 0.2 s each. The brackets
are true all the same. With tensorboard="runs" it also writes TensorBoard's format.
"""

from __future__ import annotations

import torch
from torch import nn

import radii
from radii.training import RobustnessLog


def main() -> None:
    train = radii.datasets.load("digits", split="train")
    images, labels = torch.tensor(train.images), torch.tensor(train.labels)
    torch.manual_seed(0)
    module = nn.Sequential(nn.Flatten(), nn.Linear(64, 16), nn.ReLU(), nn.Linear(16, 10))
    optimizer = torch.optim.Adam(module.parameters(), lr=0.01)
    log = RobustnessLog("digits:test", domain=(0, 1), inputs=10, eps=(0.05,), csv="robustness.csv")
    for epoch in range(3):
        for rows in torch.randperm(len(images)).split(100):
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(module(images[rows]), labels[rows])
            torch.autograd.backward(loss)
            optimizer.step()
        log(epoch, module)
    shown = ["epoch", "accuracy", "median_lower", "median_upper", "robust_0.05_proven", "seconds"]
    print(log.table[shown].round(3).to_string(index=False))


if __name__ == "__main__":
    main()
