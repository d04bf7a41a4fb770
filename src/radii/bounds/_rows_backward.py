"""The backward pass, written once: linear functions of outputs become linear functions of inputs.

A row is a linear function of one layer's values. Going back through layer k, whose units give
v = f(z) and read z = A u + b + e of earlier values u, |e| <= E (`_float_errors`), it takes
two steps:

    a v        >=  l z + c             lines around f: a > 0 takes the one below, a < 0 that above
    l z + c    >=  (l A) u + (l b + c) - |l| E

until only the input is left, whose least value over the region is known (`_regions`, `_supports`).
What is subtracted is the rounding of the network, and our own: coefficients that are off by some
share of |l| |A| change the result by no more than that share of |l| |A| |u|.

This is CROWN (Zhang et al. 2018; as DeepPoly, Singh et al. 2019; as the dual of the planet
relaxation, Wong and Kolter 2018). What differs is how rows are kept and what their layers are:

- over the nodes of a network, whole or as windows of feature maps (`_linear`);
- over matrices of open units (`_dense_layers`), or over a network's own maps of which only the open
  units take part (`_mapped_layers`), with multipliers of splits (`_duals`);
- over chains of matrices and many boxes (input splitting), over torch modules (certified training).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Generic, TypeVar, final

Coefficients = TypeVar("Coefficients")


class RowsBackward(ABC, Generic[Coefficients]):
    """Rows on their way back through some layers, with what is added and lost on the way."""

    @property
    @abstractmethod
    def depth(self) -> int:
        """How many layers lie between the rows and the input."""

    @abstractmethod
    def on_values(self, number: int) -> Coefficients | None:
        """The coefficients on the values of a layer; None where the rows do not read it."""

    @abstractmethod
    def relaxed(self, number: int, rows: Coefficients) -> Coefficients | None:
        """The first step, through the lines of a layer; None where constants bound its values."""

    @abstractmethod
    def pull(self, number: int, rows: Coefficients) -> None:
        """The second step, through the maps of a layer to the values that it reads."""

    @final
    def run(self) -> None:
        """Down to the input."""
        for number in range(self.depth - 1, -1, -1):
            on_values = self.on_values(number)
            if on_values is None:
                continue
            on_arguments = self.relaxed(number, on_values)
            if on_arguments is not None:
                self.pull(number, on_arguments)
