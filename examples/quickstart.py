"""Measure a network: brackets, robust accuracy, quantiles, a figure.

python examples/quickstart.py
"""

from __future__ import annotations

import radii
from radii import demo


def main() -> None:
    network = radii.load_network(demo.network_path("cnn-adversarial"), domain=(0, 1))
    data = radii.datasets.load("digits", split="test")
    distribution = radii.robustness_distribution(
        network, data.first(10), grid=radii.Grid(0.01, 0.6, 0.01)
    )

    for measured in distribution:
        bracket = measured.bracket
        print(
            f"digit {measured.label}: right for every change up to {bracket.lower:.2f} (proven), "
            f"taken for {measured.witness_class} at {bracket.upper:.4f} (witnessed)"
        )
    print("robust accuracy at 0.1, [proven, not refuted]:", distribution.robust_accuracy(0.1))
    print("median radius, between:", distribution.quantile(0.5))
    distribution.plot_ecdf().savefig("ecdf.png")


if __name__ == "__main__":
    main()
