"""Write src/radii/datasets/digits.npz from scikit-learn, which is needed for this script only."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits

TARGET = Path(__file__).parents[1] / "src" / "radii" / "datasets" / "digits.npz"


def main() -> None:
    digits = load_digits()
    images = digits.images.astype(np.uint8)
    if not np.array_equal(images, digits.images) or images.max() > 16:
        raise SystemExit("the pixels are not whole numbers from 0 to 16")
    np.savez_compressed(TARGET, images=images, labels=digits.target.astype(np.uint8))
    print(f"{TARGET}: {len(images)} images, {TARGET.stat().st_size} bytes")


if __name__ == "__main__":
    main()
