"""LSTM, GRU and RNN, step by step: of sequences of a fixed length, in one direction or both.

Every step is made of matrix products with constants, of sigmoids, tanhs and products of two values.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from radii.networks.operators._arithmetic import Add, AddConstant, scaled
from radii.networks.operators._arrangement import Concat, Reshape, Slice
from radii.networks.operators._base import OnnxNode, Operator, OperatorKind, translates
from radii.networks.operators._bilinear import multiplied
from radii.networks.operators._piecewise_linear import Relu
from radii.networks.operators._products import Dense, constant_as_node
from radii.networks.operators._tanh import Sigmoid, Tanh

ACTIVATIONS: dict[str, type[Operator]] = {"relu": Relu, "sigmoid": Sigmoid, "tanh": Tanh}


@dataclass(slots=True)
class _Cell:
    """The weights of one direction. `state` and `memory` are nodes, or None where they are 0."""

    call: OnnxNode
    inputs: Tensor
    hidden: Tensor
    bias: Tensor
    functions: list[type[Operator]]
    state: int | None = None
    memory: int | None = None

    @property
    def size(self) -> int:
        return self.hidden.shape[1]

    def part(self, weight: Tensor, gate: int) -> Tensor:
        return weight[gate * self.size : (gate + 1) * self.size]

    def applied(self, number: int, node: int) -> int:
        """One of the cell's functions, by its number."""
        return self.call.emit(self.functions[number](), node)

    def bias_of(self, gate: int, *, of_hidden: bool) -> Tensor:
        count = len(self.bias) // 2
        return self.part(self.bias[count:] if of_hidden else self.bias[:count], gate)

    def from_input(self, x: int, gate: int) -> int:
        """W x, with both biases."""
        bias = self.bias_of(gate, of_hidden=False) + self.bias_of(gate, of_hidden=True)
        return self.call.emit(Dense(self.part(self.inputs, gate).T, bias), x)

    def gate(self, x: int, gate: int) -> int:
        """W x + R h + b."""
        own = self.from_input(x, gate)
        if self.state is None:
            return own
        product = self.call.emit(Dense(self.part(self.hidden, gate).T), self.state)
        return self.call.emit(Add(), own, product)

    def times(self, x: int | None, y: int | None) -> int | None:
        return None if x is None or y is None else multiplied(self.call, x, y)

    def plus(self, x: int | None, y: int | None) -> int | None:
        if x is None or y is None:
            return y if x is None else x
        return self.call.emit(Add(), x, y)

    def step(self, x: int) -> int:
        """The state after one more input (batch, inputs)."""
        raise NotImplementedError


class _Plain(_Cell):
    def step(self, x: int) -> int:
        return self.applied(0, self.gate(x, 0))


class _LongShortTerm(_Cell):
    """Gates in the order input, output, forget, candidate."""

    def step(self, x: int) -> int:
        entering, leaving, kept = (self.applied(0, self.gate(x, gate)) for gate in range(3))
        candidate = self.applied(1, self.gate(x, 3))
        self.memory = self.plus(self.times(kept, self.memory), self.times(entering, candidate))
        assert self.memory is not None
        return multiplied(self.call, leaving, self.applied(2, self.memory))


class _Gated(_Cell):
    """Gates in the order update, reset, candidate."""

    def step(self, x: int) -> int:
        call = self.call
        update, reset = (self.applied(0, self.gate(x, gate)) for gate in range(2))
        candidate = self.applied(1, self.candidate(x, reset))
        one = torch.ones((), dtype=torch.float64)
        rest = call.emit(AddConstant(one), scaled(call, update, -1.0))
        result = self.plus(self.times(rest, candidate), self.times(update, self.state))
        assert result is not None
        return result

    def candidate(self, x: int, reset: int) -> int:
        call, weight = self.call, self.part(self.hidden, 2).T
        if call.int_attribute("linear_before_reset", 0):
            inner = self.bias_of(2, of_hidden=True)
            own = call.emit(Dense(self.part(self.inputs, 2).T, self.bias_of(2, of_hidden=False)), x)
            if self.state is not None:
                product = call.emit(Dense(weight, inner), self.state)
                return call.emit(Add(), own, multiplied(call, reset, product))
            # Without a state the reset gate meets the bias alone.
            diagonal = torch.diag(inner)
            return call.emit(Add(), own, call.emit(Dense(diagonal), reset))
        own = self.from_input(x, 2)
        if self.state is None:
            return own
        kept = multiplied(call, reset, self.state)
        return call.emit(Add(), own, call.emit(Dense(weight), kept))


@dataclass(frozen=True, slots=True)
class _Kind:
    cell: type[_Cell]
    functions: tuple[str, ...]


KINDS = {
    "GRU": _Kind(_Gated, ("Sigmoid", "Tanh")),
    "LSTM": _Kind(_LongShortTerm, ("Sigmoid", "Tanh", "Tanh")),
    "RNN": _Kind(_Plain, ("Tanh",)),
}


@translates("GRU", "LSTM", "RNN", kind=OperatorKind.SMOOTH)
def _recurrent(call: OnnxNode) -> list[int]:
    """Inputs are the sequence (steps, batch, inputs), W, R, B, lengths, states and peepholes."""
    _refuse_unknown(call)
    steps, batch, _ = call.shape(0)
    direction = call.text_attribute("direction", "forward")
    sides = {"forward": (False,), "reverse": (True,), "bidirectional": (False, True)}[direction]
    sequence = [_taken(call, call.node(0), step) for step in range(steps)]
    outputs: list[list[int]] = []
    cells = [_cell(call, number, len(sides)) for number in range(len(sides))]
    for cell, is_reversed in zip(cells, sides, strict=True):
        states = []
        for x in reversed(sequence) if is_reversed else sequence:
            cell.state = cell.step(x)
            states.append(cell.state)
        outputs.append(states[::-1] if is_reversed else states)
    shape = (1, 1, batch, cells[0].size)
    rows = [
        _joined(call, [call.emit(Reshape(shape), each) for each in row], axis=1)
        for row in zip(*outputs, strict=True)
    ]
    results = [_joined(call, rows, axis=0)]
    if any(call.proto.output[1:]):
        results.append(_last(call, [cell.state for cell in cells], shape[1:]))
    if any(call.proto.output[2:]):
        results.append(_last(call, [cell.memory for cell in cells], shape[1:]))
    return results


def _refuse_unknown(call: OnnxNode) -> None:
    kind = KINDS[call.proto.op_type]
    if call.int_attribute("layout", 0):
        raise call.unsupported("with layout 1")
    if call.float_attribute("clip", 0.0) or call.int_attribute("input_forget", 0):
        raise call.unsupported("with clip or input_forget")
    if call.floats_attribute("activation_alpha") or call.floats_attribute("activation_beta"):
        raise call.unsupported("with parameters of its activations")
    steps = call.shape(0)[0]
    if call.has(4) and any(length != steps for length in call.integers(4)):
        raise call.unsupported("of sequences of several lengths")
    if call.proto.op_type == "LSTM" and call.has(7) and bool(call.weight(7).any()):
        raise call.unsupported("with peepholes")
    names = call.texts_attribute("activations") or list(kind.functions)
    if any(name.lower() not in ACTIVATIONS for name in names):
        raise call.unsupported(f"with activations {', '.join(names)}")


def _cell(call: OnnxNode, number: int, directions: int) -> _Cell:
    kind = KINDS[call.proto.op_type]
    names = call.texts_attribute("activations") or list(kind.functions) * directions
    count = len(kind.functions)
    own = names[number * count : (number + 1) * count]
    inputs, hidden = call.weight(1)[number], call.weight(2)[number]
    bias = call.weight(3)[number] if call.has(3) else torch.zeros(2 * len(inputs)).double()
    functions = [ACTIVATIONS[name.lower()] for name in own]
    cell = kind.cell(call, inputs, hidden, bias, functions)
    cell.state = _initial(call, 5, number)
    if call.proto.op_type == "LSTM":
        cell.memory = _initial(call, 6, number)
    return cell


def _initial(call: OnnxNode, position: int, number: int) -> int | None:
    """The state of a direction before the first step; None if it is 0."""
    if not call.has(position) or (call.is_constant(position) and not call.weight(position).any()):
        return None
    if call.is_constant(position):
        return constant_as_node(call, call.weight(position)[number])
    return _taken(call, call.node(position), number)


def _taken(call: OnnxNode, node: int, number: int) -> int:
    """One entry of the first axis, without the axis."""
    part = call.emit(Slice(0, number, number + 1), node)
    return call.emit(Reshape(call.shape_of(part)[1:]), part)


def _joined(call: OnnxNode, nodes: list[int], axis: int) -> int:
    return nodes[0] if len(nodes) == 1 else call.emit(Concat(axis, [None] * len(nodes)), *nodes)


def _last(call: OnnxNode, nodes: list[int | None], shape: tuple[int, ...]) -> int:
    """The last states of all directions, (directions, batch, size)."""
    held = [node for node in nodes if node is not None]
    return _joined(call, [call.emit(Reshape(shape), node) for node in held], axis=0)
