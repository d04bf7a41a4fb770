"""Joining a matrix product with the addition behind it, which many exporters write apart."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from torch import Tensor

from radii.networks.graph import Graph, Node
from radii.networks.operators import AddConstant, Dense

__all__ = ["with_biases"]


def with_biases(nodes: Sequence[Node], output: int) -> Graph:
    """The graph in which a constant added to a product that nothing else reads is its bias."""
    readers = Counter(source for node in nodes for source in node.inputs)
    readers[output] += 1
    kept: list[Node] = []
    position: list[int] = []
    for node in nodes:
        source = nodes[node.inputs[0]] if node.inputs else node
        bias = _bias(source, node)
        if bias is not None and readers[node.inputs[0]] == 1:
            index = position[node.inputs[0]]
            assert isinstance(source.operator, Dense)
            dense = Dense(source.operator.weight, bias)
            dense.gain = source.operator.gain
            kept[index] = Node(source.name, dense, kept[index].inputs, source.shape)
            position.append(index)
        else:
            position.append(len(kept))
            inputs = tuple(position[i] for i in node.inputs)
            kept.append(Node(node.name, node.operator, inputs, node.shape))
    return Graph(kept, position[output])


def _bias(product: Node, addition: Node) -> Tensor | None:
    """What the addition adds to every row of the product, if that is what it does."""
    dense, added = product.operator, addition.operator
    if not (isinstance(dense, Dense) and dense.bias is None and isinstance(added, AddConstant)):
        return None
    constant, columns = added.constant, dense.weight.shape[1]
    is_row = constant.numel() == 1 or tuple(constant.shape[-1:]) == (constant.numel(),)
    if not is_row or addition.shape != product.shape:
        return None
    return constant.reshape(-1).expand(columns).clone()
