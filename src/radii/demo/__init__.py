"""Four small classifiers of the embedded digits, trained by `scripts/train_demo_networks.py`.

`mlp` is dense (64-24-16-10), `cnn` convolutional (six 3x3 filters and a dense layer). Those called
`standard` were trained on the images as they are, the `adversarial` ones on PGD examples with an
Linf radius of 0.1. All take images of shape (1, 8, 8) with pixels between 0 and 1.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from radii.errors import NetworkError

if TYPE_CHECKING:
    from radii.networks import Network

__all__ = ["DOMAIN", "NETWORKS", "TRAINED_AT", "load_network", "network_path"]

NETWORKS = ("mlp-standard", "mlp-adversarial", "cnn-standard", "cnn-adversarial")

DOMAIN = (0.0, 1.0)

TRAINED_AT = 0.1
"""The Linf radius of the examples that the adversarial networks were trained on."""


def network_path(name: str) -> Path:
    """The ONNX file of one of the `NETWORKS`."""
    if name not in NETWORKS:
        raise NetworkError(f"demo network '{name}' is not one of {', '.join(NETWORKS)}")
    return Path(__file__).parent / f"{name}.onnx"


def load_network(name: str) -> Network:
    """One of the `NETWORKS`, ready to use."""
    from radii import networks

    return networks.load_network(network_path(name), domain=DOMAIN, name=name)
