"""Linear maps between flattened values, with their structure: W of an affine operator W x + b.

Rows and points are row vectors along the last axis, with any axes ahead of it. Rows of coefficients
on a map's results are `pulled` back to its arguments, points are `pushed` forward. A map becomes a
matrix only where somebody asks for it, and then by index arithmetic.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cached_property
from typing import final

import numpy as np
import numpy.typing as npt
import torch
from scipy.sparse import coo_array, csr_array, diags_array, identity, kron
from torch import Tensor

from radii.networks.operators._memo import Memo

ENTRIES_AT_ONCE = 1 << 22
"""How many entries of a matrix are numbered at once: a few times 32 MB."""

Float64 = npt.NDArray[np.float64]


class LinearMap(ABC):
    """M as a map of row vectors: points @ M.T forward, rows @ M back.

    `terms` bounds how often a product is rounded on its way into a result, or into a coefficient
    pulled back: for one sum of products their number. `work` is the number of multiplications of
    one push. `rounded` bounds how often an entry of the map, or of its `matrix`, was rounded while
    it was put together of several maps. `memo` has forms of it that are faster somewhere.
    """

    def __init__(self, inputs: int, outputs: int, terms: int, work: int, rounded: int = 0) -> None:
        self.inputs = inputs
        self.outputs = outputs
        self.terms = max(1, terms)
        self.work = work
        self.rounded = rounded
        self.memo = Memo()

    @abstractmethod
    def pulled(self, rows: Tensor) -> Tensor:
        """rows @ M: coefficients (..., outputs) on results as ones (..., inputs) on arguments."""

    @abstractmethod
    def pushed(self, points: Tensor) -> Tensor:
        """The results (..., outputs) of points (..., inputs)."""

    @abstractmethod
    def chosen(self, units: Tensor) -> Tensor:
        """The rows of these results, dense, each in place of its number: (*units.shape, inputs)."""

    @abstractmethod
    def to(self, dtype: torch.dtype, device: torch.device | str = "cpu") -> LinearMap:
        """The same map in another number type on another device."""

    @abstractmethod
    def _absolute(self) -> LinearMap:
        """A map whose entries are at least the absolute values of this one's."""

    @abstractmethod
    def _made_matrix(self) -> csr_array:
        """The matrix; entries may be 0 or in several parts."""

    @final
    @cached_property
    def magnitude(self) -> LinearMap:
        """The absolute values of the entries; of several maps in a row, those of each of them.

        The latter are more than those of the whole where entries cancel, and bound the rounding.
        """
        return self._absolute()

    @final
    def spread(self, radii: Tensor) -> Tensor:
        """`pushed` with the absolute values of the entries."""
        return self.magnitude.pushed(radii)

    @final
    @cached_property
    def _matrix(self) -> csr_array:
        made = csr_array(self._made_matrix())
        made.sum_duplicates()
        made.eliminate_zeros()
        return made

    @final
    def matrix(self) -> csr_array:
        """(outputs, inputs) in float64, without zeros; made once."""
        return self._matrix

    @property
    def dense(self) -> Tensor | None:
        """The whole matrix, where that is what the map holds."""
        return None

    @property
    def is_zero(self) -> bool:
        """Every entry is 0; False where finding out would cost more than a look at the parts."""
        return False

    def with_scaled_results(self, factors: Tensor) -> LinearMap | None:
        """The map with its results multiplied by (outputs,) factors, if it has the same structure;
        None if it has another."""
        return None

    def with_scaled_arguments(self, factors: Tensor) -> LinearMap | None:
        """The same for its arguments, by (inputs,) factors."""
        return None


class MatrixMap(LinearMap):
    """A dense matrix (m, n), along the second of three axes that the values have.

    Arguments are (outer, n, inner), results (outer, m, inner), both flattened.
    """

    def __init__(self, weight: Tensor, *, outer: int = 1, inner: int = 1, rounded: int = 0) -> None:
        results, arguments = weight.shape
        super().__init__(
            outer * arguments * inner,
            outer * results * inner,
            max(arguments, results),
            outer * inner * results * arguments,
            rounded,
        )
        self.weight = weight
        self.outer, self.inner = outer, inner

    @property
    def dense(self) -> Tensor | None:
        return self.weight if self.outer == self.inner == 1 else None

    @property
    def is_zero(self) -> bool:
        return not bool(self.weight.any())

    def pulled(self, rows: Tensor) -> Tensor:
        return self._multiplied(rows, self.weight.t())

    def pushed(self, points: Tensor) -> Tensor:
        return self._multiplied(points, self.weight)

    def _multiplied(self, values: Tensor, matrix: Tensor) -> Tensor:
        lead, length = values.shape[:-1], matrix.shape[1]
        if self.inner > 1:
            parts = values.reshape(*lead, self.outer, length, self.inner)
            return (matrix @ parts).reshape(*lead, -1)
        if self.outer > 1:
            return (values.reshape(*lead, self.outer, length) @ matrix.t()).reshape(*lead, -1)
        return values @ matrix.t()

    def chosen(self, units: Tensor) -> Tensor:
        results, length = self.weight.shape
        if self.dense is not None:
            return self.weight[units]
        flat = units.flatten()
        rows = self.weight[flat // self.inner % results]
        first = flat // (results * self.inner) * (length * self.inner) + flat % self.inner
        places = first[:, None] + torch.arange(length, device=units.device) * self.inner
        empty = rows.new_zeros(len(flat), self.inputs)
        return empty.scatter(1, places, rows).reshape(*units.shape, -1)

    def to(self, dtype: torch.dtype, device: torch.device | str = "cpu") -> MatrixMap:
        return self._with(self.weight.to(device, dtype))

    def _absolute(self) -> MatrixMap:
        return self._with(self.weight.abs())

    def _made_matrix(self) -> csr_array:
        held = csr_array(as_float64(self.weight))
        if self.inner > 1:
            held = kron(held, identity(self.inner), format="csr")
        return kron(identity(self.outer), held, format="csr") if self.outer > 1 else held

    def with_scaled_results(self, factors: Tensor) -> LinearMap | None:
        if self.dense is None:
            return None
        return MatrixMap(self.weight * factors[:, None], rounded=self.rounded + 1)

    def with_scaled_arguments(self, factors: Tensor) -> LinearMap | None:
        if self.dense is None:
            return None
        return MatrixMap(self.weight * factors, rounded=self.rounded + 1)

    def _with(self, weight: Tensor) -> MatrixMap:
        return MatrixMap(weight, outer=self.outer, inner=self.inner, rounded=self.rounded)


class SparseMap(LinearMap):
    """A matrix of which few entries are not 0."""

    def __init__(
        self,
        entries: csr_array,
        dtype: torch.dtype = torch.float64,
        device: torch.device | str = "cpu",
        *,
        rounded: int = 0,
    ) -> None:
        held = csr_array(entries, dtype=np.float64)
        held.sum_duplicates()
        held.eliminate_zeros()
        in_rows = np.diff(held.indptr).max(initial=0)
        in_columns = np.bincount(held.indices, minlength=1).max(initial=0)
        outputs, inputs = held.shape
        super().__init__(inputs, outputs, int(max(in_rows, in_columns)), held.nnz, rounded)
        self.entries = held
        self._type, self._device = dtype, device

    @cached_property
    def _held(self) -> Tensor:
        held = self.entries.tocoo()
        places = torch.stack([torch.tensor(held.row), torch.tensor(held.col)]).long()
        values = torch.tensor(held.data, dtype=self._type)
        return torch.sparse_coo_tensor(
            places, values, held.shape, device=self._device, check_invariants=True
        ).coalesce()

    @cached_property
    def _turned(self) -> Tensor:
        return self._held.t().coalesce()

    @property
    def is_zero(self) -> bool:
        return bool(self.entries.nnz == 0)

    def pulled(self, rows: Tensor) -> Tensor:
        return _sparse_product(self._turned, rows)

    def pushed(self, points: Tensor) -> Tensor:
        return _sparse_product(self._held, points)

    def chosen(self, units: Tensor) -> Tensor:
        rows = self._held.index_select(0, units.flatten())
        return rows.to_dense().reshape(*units.shape, -1)

    def to(self, dtype: torch.dtype, device: torch.device | str = "cpu") -> SparseMap:
        return SparseMap(self.entries, dtype, device, rounded=self.rounded)

    def _absolute(self) -> SparseMap:
        return SparseMap(abs(self.entries), self._type, self._device, rounded=self.rounded)

    def _made_matrix(self) -> csr_array:
        return self.entries

    def with_scaled_results(self, factors: Tensor) -> LinearMap | None:
        scale = diags_array(as_float64(factors))
        return SparseMap(csr_array(scale @ self.entries), rounded=self.rounded + 1)

    def with_scaled_arguments(self, factors: Tensor) -> LinearMap | None:
        scale = diags_array(as_float64(factors))
        return SparseMap(csr_array(self.entries @ scale), rounded=self.rounded + 1)


def _sparse_product(matrix: Tensor, rows: Tensor) -> Tensor:
    """rows @ matrix.T for a sparse matrix."""
    product: Tensor = torch.sparse.mm(matrix, rows.reshape(-1, rows.shape[-1]).t())
    return product.t().reshape(*rows.shape[:-1], -1)


class ScaleMap(LinearMap):
    """Every entry times a factor of its own: a diagonal matrix."""

    def __init__(self, factors: Tensor, *, rounded: int = 0) -> None:
        count = len(factors)
        super().__init__(count, count, 1, count, rounded)
        self.factors = factors
        self.is_identity = bool((factors == 1).all())

    @classmethod
    def identity(cls, size: int) -> ScaleMap:
        return cls(torch.ones(size, dtype=torch.float64))

    @property
    def is_zero(self) -> bool:
        return not bool(self.factors.any())

    def pulled(self, rows: Tensor) -> Tensor:
        return rows if self.is_identity else rows * self.factors

    def pushed(self, points: Tensor) -> Tensor:
        return points if self.is_identity else points * self.factors

    def chosen(self, units: Tensor) -> Tensor:
        empty = self.factors.new_zeros(*units.shape, self.inputs)
        return empty.scatter(-1, units[..., None], self.factors[units][..., None])

    def to(self, dtype: torch.dtype, device: torch.device | str = "cpu") -> ScaleMap:
        return ScaleMap(self.factors.to(device, dtype), rounded=self.rounded)

    def _absolute(self) -> ScaleMap:
        return ScaleMap(self.factors.abs(), rounded=self.rounded)

    def _made_matrix(self) -> csr_array:
        return csr_array(diags_array(as_float64(self.factors)))

    def with_scaled_results(self, factors: Tensor) -> LinearMap | None:
        return ScaleMap(self.factors * factors, rounded=self.rounded + 1)

    def with_scaled_arguments(self, factors: Tensor) -> LinearMap | None:
        return self.with_scaled_results(factors)


class SelectionMap(LinearMap):
    """Result i is the argument `places[i]`, or 0 where that is -1: entries moved and copied."""

    def __init__(self, places: Tensor, inputs: int, dtype: torch.dtype = torch.float64) -> None:
        used = places[places >= 0]
        copies = int(torch.bincount(used, minlength=1).max()) if len(used) else 1
        super().__init__(inputs, len(places), copies, len(places))
        self.places = places
        self._type = dtype
        self.is_identity = inputs == len(places) and bool(
            (places == torch.arange(inputs, device=places.device)).all()
        )
        self._is_whole = len(used) == len(places)
        self._copies = copies > 1

    @property
    def is_zero(self) -> bool:
        return bool((self.places < 0).all())

    @cached_property
    def _back(self) -> SelectionMap:
        """Where each argument goes to; only where none goes to several places."""
        used = self.places >= 0
        back = self.places.new_full((self.inputs,), -1)
        back[self.places[used]] = torch.arange(self.outputs, device=back.device)[used]
        return SelectionMap(back, self.outputs)

    def pulled(self, rows: Tensor) -> Tensor:
        if not self._copies:
            return self._back.pushed(rows)
        kept = rows if self._is_whole else torch.where(self.places >= 0, rows, 0.0)
        empty = rows.new_zeros(*rows.shape[:-1], self.inputs)
        return empty.index_add(-1, self.places.clamp_min(0), kept)

    def pushed(self, points: Tensor) -> Tensor:
        if self.inputs == 0:
            return points.new_zeros(*points.shape[:-1], self.outputs)
        taken = points[..., self.places.clamp_min(0)]
        return taken if self._is_whole else torch.where(self.places >= 0, taken, 0.0)

    def chosen(self, units: Tensor) -> Tensor:
        places = self.places[units][..., None]
        empty = torch.zeros(*units.shape, self.inputs, dtype=self._type, device=places.device)
        return empty.scatter(-1, places.clamp_min(0), (places >= 0).to(empty))

    def to(self, dtype: torch.dtype, device: torch.device | str = "cpu") -> SelectionMap:
        return SelectionMap(self.places.to(device), self.inputs, dtype)

    def _absolute(self) -> SelectionMap:
        return self

    def _made_matrix(self) -> csr_array:
        places = self.places.cpu().numpy()
        used = np.flatnonzero(places >= 0)
        entries = (np.ones(len(used)), (used, places[used]))
        return csr_array(entries, shape=(self.outputs, self.inputs))


def as_float64(values: Tensor) -> Float64:
    """A tensor as an array, on the CPU."""
    return np.asarray(values.detach().to("cpu", torch.float64).numpy())


def matrix_of_products(
    rows: Tensor, columns: Tensor, values: Tensor, shape: tuple[int, int]
) -> csr_array:
    """Entries at places that broadcast against each other; those at the same place add up."""
    parts = torch.broadcast_tensors(rows, columns, values)
    row, column, value = (part.flatten().numpy() for part in parts)
    return csr_array(coo_array((value, (row, column)), shape=shape))
