"""A network in ReLU form as a plain chain: each layer reads nothing but the layer before it.

Marabou derives bounds from the layers that it recognises, and those are wrong (it answers unsat
where there are counterexamples) where a layer reads several earlier ones, as in residual networks.
So values that are needed later are carried along by units that are always active: a unit's
output is never negative, and an input is carried as its distance from its lower bound.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array, hstack, vstack

from radii.bounds.relu_form import ReluForm

__all__ = ["as_chain"]

Float64 = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


def as_chain(form: ReluForm, low: Float64) -> list[csr_array]:
    """Layers, the output last, as rows over the previous layer's values and the constant 1.

    The first layer reads the input, which is nowhere below `low`.
    """
    rows = [csr_array(layer) for layer in (*form.layers, form.output)]
    first_units = np.cumsum([form.inputs + 1, *(layer.shape[0] for layer in form.layers)])
    needed = _needed_later(rows, form.inputs)
    chain, values = [], np.arange(form.inputs)
    shift = np.zeros(form.inputs)
    for k, layer in enumerate(rows):
        own = _over(layer, values, shift, form.inputs)
        carried = np.intersect1d(needed[k], values)
        place = np.searchsorted(values, carried)
        is_new = (k == 0) & (carried < form.inputs)
        least = np.where(is_new, low[np.minimum(carried, form.inputs - 1)], 0.0)
        passed = csr_array(
            (
                np.concatenate([np.ones(len(carried)), -least]),
                (
                    np.tile(np.arange(len(carried)), 2),
                    np.concatenate([place, np.full(len(carried), len(values))]),
                ),
            ),
            shape=(len(carried), len(values) + 1),
        )
        chain.append(csr_array(vstack([passed, own])))
        if k < len(form.layers):
            units = first_units[k] + np.arange(layer.shape[0])
            shift = np.concatenate([shift[place] + least, np.zeros(len(units))])
            values = np.concatenate([carried, units])
    return chain


def _needed_later(rows: list[csr_array], inputs: int) -> list[Integers]:
    """For each layer, the columns that layers behind it read."""
    needed = [np.zeros(0, np.int64)]
    for layer in reversed(rows[1:]):
        read = np.unique(layer.indices[layer.data != 0])
        needed.append(np.union1d(needed[-1], read[read != inputs]))
    return needed[::-1]


def _over(layer: csr_array, values: Integers, shift: Float64, inputs: int) -> csr_array:
    """Rows over all columns, as rows over the values at hand; each column is value + shift."""
    columns = layer.tocsc()
    at_hand = csr_array(columns[:, values])
    constant = columns[:, [inputs]].toarray() + (at_hand @ shift)[:, None]
    return csr_array(hstack([at_hand, csr_array(constant)]))
