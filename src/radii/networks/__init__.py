"""Networks: ONNX files and torch modules as one graph that runs, differentiates and is bounded."""

from __future__ import annotations

from radii.networks.exporting import from_torch
from radii.networks.foolbox_models import from_foolbox
from radii.networks.given import as_network, telling_names
from radii.networks.graph import Graph, Node
from radii.networks.network import Network, load_network
from radii.networks.operators import Kind, Operator

__all__ = [
    "Graph",
    "Kind",
    "Network",
    "Node",
    "Operator",
    "as_network",
    "from_foolbox",
    "from_torch",
    "load_network",
    "telling_names",
]
