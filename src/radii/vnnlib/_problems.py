"""A VNN-LIB file, read: the variables it declares and the formula a counterexample satisfies."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from radii.datasets import gunzip
from radii.errors import SpecificationError
from radii.problem import Specification
from radii.vnnlib._disjuncts import specifications
from radii.vnnlib._expressions import (
    Form,
    ItemRun,
    ItemShape,
    Variables,
    declared_scalars,
    declared_tensors,
    read_pieces,
    show,
)
from radii.vnnlib._formulas import Conjunction, Formula, is_strict, read_formula, satisfied
from radii.vnnlib._terms import read_comparisons

_GZIP_MAGIC = b"\x1f\x8b"
# Commands of SMT-LIB that state nothing.
_IGNORED = frozenset(
    {"set-logic", "set-info", "set-option", "check-sat", "get-model", "get-value", "exit", "echo"}
)


@dataclass(frozen=True, slots=True, eq=False)
class Problem:
    """Is there an input that, together with the network's output, satisfies the formula?

    `strict` says that the formula has strict comparisons, which `specifications` can only
    approach: see there.
    """

    name: str
    variables: Variables
    formula: Formula
    strict: bool

    def specifications(
        self, shape: tuple[int, ...], *, slack: float = 0.0
    ) -> tuple[Specification, ...]:
        """What is to be proven for inputs of `shape` (without batch) so that the answer is no.

        Strict comparisons count as weak ones; with `slack` they are tightened by that much instead
        (relative to their constant, at least 1), which serves the search for counterexamples.
        """
        if math.prod(shape) != self.variables.inputs.size:
            raise self._unfit("inputs", self.variables.inputs.size, math.prod(shape))
        try:
            return specifications(self.formula, self.variables, shape, slack=slack)
        except SpecificationError as error:
            raise SpecificationError(f"{self.name}: {error}") from None

    def is_solved_by(self, inputs: npt.ArrayLike, outputs: npt.ArrayLike) -> bool:
        """The file's formula itself is true for this input and output, in exact arithmetic."""
        values = np.concatenate([np.ravel(inputs), np.ravel(outputs)]).astype(np.float64)
        return bool(np.isfinite(values).all()) and satisfied(self.formula, values)

    def check_fits(
        self, input_shape: tuple[int, ...], output_size: int, dtype: npt.DTypeLike
    ) -> None:
        """Raise a SpecificationError unless the variables are those of such a network."""
        inputs, outputs = self.variables.inputs, self.variables.outputs
        for tensor, size, what in (
            (inputs, math.prod(input_shape), "inputs"),
            (outputs, output_size, "outputs"),
        ):
            if tensor.size != size:
                raise self._unfit(what, tensor.size, size)
            if tensor.element_type not in {None, "real", np.dtype(dtype).name}:
                raise SpecificationError(
                    f"{self.name}: declares {what} of type {tensor.element_type}, "
                    f"but the network has {np.dtype(dtype).name}"
                )
        if inputs.shape is not None:
            declared, actual = ([d for d in s if d > 1] for s in (inputs.shape, input_shape))
            # A flat declaration, or a flat network, has only one order of elements.
            if declared != actual and min(len(declared), len(actual)) > 1:
                raise SpecificationError(
                    f"{self.name}: declares an input of shape {list(inputs.shape)}, "
                    f"but the network's is {list(input_shape)}"
                )

    def _unfit(self, what: str, declared: int, actual: int) -> SpecificationError:
        return SpecificationError(
            f"{self.name}: declares {declared} {what}, but the network has {actual}"
        )


def read_problem(path: str | Path) -> Problem:
    """The problem in a VNN-LIB file of version 1.0 or 2.0, gzipped or not."""
    path = Path(path)
    try:
        data = path.read_bytes()
        if data.startswith(_GZIP_MAGIC):
            data = gunzip(data, str(path), SpecificationError)
        text = data.decode("utf-8")
    except FileNotFoundError:
        raise SpecificationError(f"{path} does not exist") from None
    except UnicodeDecodeError:
        raise SpecificationError(f"{path} is not a text file, so not VNN-LIB") from None
    except OSError as error:
        raise SpecificationError(f"{path} cannot be read: {error.strerror}") from None
    return parse_problem(text, name=path.name)


def parse_problem(text: str, *, name: str = "VNN-LIB text") -> Problem:
    """The problem that `text` states; `name` is what errors call it."""
    try:
        return _problem(text, name)
    except SpecificationError as error:
        raise SpecificationError(f"{name}: {error}") from None


def _problem(text: str, name: str) -> Problem:
    scalars: list[Form | ItemRun] = []
    networks: list[Form] = []
    asserted: list[Form | ItemRun] = []
    for form in read_pieces(text):
        if isinstance(form, ItemRun):
            (asserted if form.shape is ItemShape.ASSERTIONS else scalars).append(form)
            continue
        match form.parts:
            case ["assert", _]:
                asserted.append(form)
            case [("declare-const" | "declare-fun"), *_]:
                scalars.append(form)
            case ["declare-network", *_]:
                networks.append(form)
            case ["vnnlib-version", str(version)]:
                if version.strip("<>").split(".")[0] not in {"1", "2"}:
                    raise SpecificationError(f"version {version} is not one of 1.0, 2.0")
            case [str(command), *_] if command in _IGNORED:
                pass
            case _:
                raise SpecificationError(
                    f"line {form.line}: '{show(form.parts)}' is not a declaration or an assertion"
                )
    if scalars and networks:
        raise SpecificationError("declare-network (2.0) and declare-const (1.0) do not mix")
    variables = declared_tensors(networks) if networks else declared_scalars(scalars)
    formula = _asserted(asserted, variables)
    return Problem(name, variables, formula, is_strict(formula))


def _asserted(pieces: list[Form | ItemRun], variables: Variables) -> Formula:
    if not pieces:
        raise SpecificationError("nothing is asserted")
    numbers = variables.numbers()
    parts: list[Formula] = []
    for piece in pieces:
        rows = _in_columns(piece, numbers, variables.inputs.size)
        if rows is not None:
            parts.append(rows)
            continue
        for form in piece.forms() if isinstance(piece, ItemRun) else [piece]:
            try:
                parts.append(read_formula(form.parts[1], numbers, variables.inputs.size))
            except SpecificationError as error:
                raise SpecificationError(f"line {form.line}: {error}") from None
    return Conjunction(tuple(parts))


def _in_columns(piece: Form | ItemRun, numbers: Mapping[str, int], inputs: int) -> Formula | None:
    """What a run asserts, if it can be read as a whole."""
    comparisons = read_comparisons(piece, numbers, inputs) if isinstance(piece, ItemRun) else None
    return None if comparisons is None else comparisons.rows
