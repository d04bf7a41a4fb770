"""When does another class overtake the label? One-to-one radii, target by target.

python examples/one_to_one_targets.py

The one-to-any radius is the smallest of them. Property "become" asks when the input is taken for
the target.
"""

from __future__ import annotations

import radii
from radii import demo


def main() -> None:
    network = demo.load_network("cnn-standard")
    digit = radii.datasets.load("digits", split="test").take(2)
    targeted = radii.robustness_distribution(
        network, digit, property="one-to-one", grid="0.01:1:0.01"
    )
    for measured in sorted(targeted, key=lambda m: m.bracket.lower):
        bracket = measured.bracket
        print(
            f"class {measured.target} stays below {measured.label} "
            f"within {bracket.lower:.2f}, but reaches it at {bracket.upper:.4f}"
        )
    to_any = radii.robustness_distribution(network, digit, grid="0.01:1:0.01")
    print(f"for any other digit: between {to_any.lower[0]:.2f} and {to_any.upper[0]:.4f}")


if __name__ == "__main__":
    main()
