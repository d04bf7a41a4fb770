"""Four small classifiers of the embedded digits, trained by `scripts/train_demo_networks.py`.

`mlp` is dense (64-24-16-10), `cnn` convolutional (six 3x3 filters and a dense layer). Those called
`standard` were trained on the images as they are, the `adversarial` ones on PGD examples with an
Linf radius of 0.1. All take images of shape (1, 8, 8) with pixels between 0 and 1.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

_HOMES = {
    "DOMAIN": "_networks",
    "NETWORKS": "_networks",
    "TRAINED_AT": "_networks",
    "closest_counterexamples": "_figures",
    "load_network": "_networks",
    "network_path": "_networks",
    "write_figures": "_figures",
}

__all__ = [
    "DOMAIN",
    "NETWORKS",
    "TRAINED_AT",
    "closest_counterexamples",
    "load_network",
    "network_path",
    "write_figures",
]

if TYPE_CHECKING:
    from radii.demo._figures import closest_counterexamples, write_figures
    from radii.demo._networks import DOMAIN, NETWORKS, TRAINED_AT, load_network, network_path


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
