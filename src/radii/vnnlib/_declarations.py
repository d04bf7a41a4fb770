"""The variables that a VNN-LIB file declares: X_i and Y_j in 1.0, one tensor each in 2.0."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

from radii.errors import SpecificationError
from radii.vnnlib._expressions import BLANK, SCALAR, Form, ItemRun, show

_SCALAR = re.compile(SCALAR)
# Comments are matched too, so that they declare nothing; the first group is empty there.
_DECLARED = re.compile(rf";[^\n]*|declare-const{BLANK}({SCALAR})")
_DIMENSION = re.compile(r"[1-9]\d*")
ELEMENT_TYPES = ("real", "float16", "float32", "float64")
MAX_ELEMENTS = 10_000_000


@dataclass(frozen=True, slots=True)
class Tensor:
    """The network's input or output as the file declares it.

    `shape` and `element_type` are None in VNN-LIB 1.0, which has neither; `real` leaves the type
    to the network.
    """

    names: tuple[str, ...]
    shape: tuple[int, ...] | None = None
    element_type: str | None = None

    @property
    def size(self) -> int:
        return len(self.names)


@dataclass(frozen=True, slots=True)
class Variables:
    """Inputs are numbered from 0 in row-major order, the outputs after them."""

    inputs: Tensor
    outputs: Tensor

    def numbers(self) -> dict[str, int]:
        """Each way to write a variable, and its number."""
        names = self.inputs.names + self.outputs.names
        found = {name: index for index, name in enumerate(names)}
        for tensor, start in ((self.inputs, 0), (self.outputs, self.inputs.size)):
            if tensor.shape == ():
                found.update({f"{tensor.names[0]}[]": start, f"{tensor.names[0]}[0]": start})
        return found


def declared_scalars(pieces: Sequence[Form | ItemRun]) -> Variables:
    """The variables of VNN-LIB 1.0: `(declare-const X_0 Real)`, or declare-fun of nothing."""
    found: dict[str, set[int]] = {"X": set(), "Y": set()}
    for piece in pieces:
        if isinstance(piece, Form):
            _declare(piece, found)
        elif not _declare_all(piece, found):
            for form in piece.forms():
                _declare(form, found)
    return Variables(_scalars("X", found["X"]), _scalars("Y", found["Y"]))


def _declare_all(run: ItemRun, found: dict[str, set[int]]) -> bool:
    """Take in all declarations of a run, or none if one is there already."""
    names = [name for name in _DECLARED.findall(run.text) if name]
    new = {kind: [int(name[2:]) for name in names if name[0] == kind] for kind in found}
    for kind, indices in new.items():
        if len(set(indices)) < len(indices) or not found[kind].isdisjoint(indices):
            return False
    for kind, indices in new.items():
        found[kind].update(indices)
    return True


def _declare(form: Form, found: dict[str, set[int]]) -> None:
    match form.parts:
        case ["declare-const", str(name), "Real"] | ["declare-fun", str(name), [], "Real"]:
            pass
        case _:
            raise _error(form, f"'{show(form.parts)}' does not declare a Real constant")
    if _SCALAR.fullmatch(name) is None:
        raise _error(form, f"variable '{name}' is neither an input X_0, ... nor an output Y_0")
    kind, index = name[0], int(name[2:])
    if index in found[kind]:
        raise _error(form, f"variable '{name}' is declared twice")
    found[kind].add(index)


def _scalars(kind: str, indices: set[int]) -> Tensor:
    if not indices:
        raise SpecificationError(f"no variable {kind}_0 is declared")
    for index in range(len(indices)):
        if index not in indices:
            raise SpecificationError(
                f"{kind}_{max(indices)} is declared but {kind}_{index} is not: "
                "numbers must have no gaps"
            )
    return Tensor(tuple(f"{kind}_{index}" for index in range(len(indices))))


def declared_tensors(forms: Sequence[Form]) -> Variables:
    """The variables of VNN-LIB 2.0, from its `declare-network` forms."""
    if len(forms) > 1:
        raise _error(
            forms[1], f"{len(forms)} networks are declared, but radii decides one network at a time"
        )
    form = forms[0]
    tensors: dict[str, list[Tensor]] = {"declare-input": [], "declare-output": []}
    name, *declarations = form.parts[1:] or [""]
    if not isinstance(name, str) or not name:
        raise _error(form, "declare-network needs a name")
    for declaration in declarations:
        match declaration:
            case ["declare-input" | "declare-output" as kind, str(tensor), str(type_and_shape), *_]:
                tensors[kind].append(_tensor(form, tensor, type_and_shape))
            case [("declare-hidden" | "equal-to" | "isomorphic-to") as other, *_]:
                raise _error(form, f"'{other}' in network '{name}' is not supported")
            case _:
                raise _error(form, f"'{show(declaration)}' does not declare an input or output")
    for what, found in tensors.items():
        if len(found) != 1:
            raise _error(form, f"network '{name}' has {len(found)} {what}s, but radii needs one")
    inputs, outputs = tensors["declare-input"][0], tensors["declare-output"][0]
    if set(inputs.names) & set(outputs.names):
        raise _error(form, f"network '{name}' calls its input and its output the same")
    return Variables(inputs, outputs)


def _tensor(form: Form, name: str, type_and_shape: str) -> Tensor:
    element_type, bracket, inside = type_and_shape.partition("[")
    dimensions = [text for text in inside.rstrip("]").split(",") if text]
    if not bracket or not all(_DIMENSION.fullmatch(text) for text in dimensions):
        raise _error(form, f"'{name} {type_and_shape}' needs a type and a shape such as [1,10]")
    if element_type.lower() not in ELEMENT_TYPES:
        known = ", ".join(ELEMENT_TYPES)
        raise _error(form, f"element type '{element_type}' of {name} is not one of {known}")
    shape = tuple(int(text) for text in dimensions)
    if math.prod(shape) > MAX_ELEMENTS:
        raise _error(form, f"{name} has {math.prod(shape)} elements, over {MAX_ELEMENTS}")
    indices = product(*(range(dimension) for dimension in shape))
    names = tuple(f"{name}[{','.join(map(str, index))}]" for index in indices)
    return Tensor(names if shape else (name,), shape, element_type.lower())


def _error(form: Form, message: str) -> SpecificationError:
    return SpecificationError(f"line {form.line}: {message}")
