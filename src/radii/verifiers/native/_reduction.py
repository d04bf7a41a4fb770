"""The root of a tree on matrices: a network over one region, reduced to the units left open there.

Layer by layer: units that never bend are replaced by what they are (zero, or their argument), so
that later layers read the input and the open units only. Active units that read the input are kept
where they are fewer than the inputs: replacing them would make every later layer read the input.
All in float64.

What the network rounds is bounded along with it: each argument's error from the bounds of what it
reads, and a unit that is replaced by its argument hands that error on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from scipy.sparse import csr_array
from torch import Tensor

from radii.bounds import (
    DUAL_ROUNDING,
    LOST_TO_UNDERFLOW,
    Block,
    DenseLayers,
    FloatErrors,
    Layers,
    Multipliers,
    ReluForm,
    Rows,
    Stage,
    StageUnits,
    box_of,
    evaluate,
    improve,
    lost_to_underflow,
    support_of,
)
from radii.networks import Interval, Operator, may_bend
from radii.problem import FLOAT, UNLIMITED, Arithmetic, Ball, Box, Halfspaces, Limits
from radii.verifiers.native._proof_log import Ground, rounded_down, stated
from radii.verifiers.native._settings import RootSettings

_DEFAULTS = RootSettings()

ROW_COPIES, FLOAT64_BYTES = 4, 8
"""Of a layer's rows over the columns, while they are bounded."""
CUT_SLACK = 1e-9
"""Of what a cut of the inputs adds up: inputs that miss it by less count as violating still."""


class PossibleOverflow(Exception):
    """The network may overflow in the region, at the node that is named."""

    def __init__(self, node: str | None) -> None:
        what = "a value" if node is None else f"node '{node}'"
        super().__init__(f"{what} may overflow in the region, so that nothing can be proven there")


@dataclass(frozen=True, slots=True, eq=False)
class Reduction:
    """Kept units with their bounds over the whole region.

    `names` are their columns in the form; `signs` has, for each of the form's columns, the sign
    that the region alone gives its unit: 1, -1, or 0 where it stays open. `grounds` are the bounds
    of all units, layers of `layer_sizes`, and what shows them; none where that was not kept.
    `first_unit` is the column of the first unit.
    """

    layers: Layers
    lower: Tensor
    upper: Tensor
    names: Tensor
    signs: Tensor
    region: Ball | Box
    grounds: tuple[Ground, ...] = ()
    layer_sizes: tuple[int, ...] = ()
    first_unit: int = 0

    @property
    def units(self) -> Tensor:
        """The kept units' numbers among all units."""
        return self.names - self.first_unit


def reduce(
    form: ReluForm,
    region: Ball | Box,
    violations: Sequence[Halfspaces],
    inputs: Halfspaces | None = None,
    limits: Limits = UNLIMITED,
    arithmetic: Arithmetic = FLOAT,
    settings: RootSettings = _DEFAULTS,
) -> Reduction:
    """Root bounds, and what they leave open. `inputs` must hold in a violation too.

    Once the limits are over, the cheapest bounds are used: still sound. A MemoryError where a layer
    would not fit into what is left of the memory, in bytes; a PossibleOverflow where the network
    may overflow in the region, so that nothing can be proven.
    """
    return _Reducer(form, region, limits, arithmetic, settings).run(violations, inputs)


class _Reducer:
    def __init__(
        self,
        form: ReluForm,
        region: Ball | Box,
        limits: Limits,
        arithmetic: Arithmetic,
        settings: RootSettings,
    ) -> None:
        self.form, self.settings = form, settings
        self.rounding = FloatErrors(form.fusion.graph, form.fusion.number, arithmetic)
        self.region = region
        self.limits = limits
        self.support = support_of(region)
        self.underflow = lost_to_underflow(self.support)
        self.blocks: list[Block] = []
        self.lower = torch.zeros(0, dtype=torch.float64)
        self.upper = torch.zeros(0, dtype=torch.float64)
        self.names = torch.zeros(0, dtype=torch.int64)
        inputs = form.inputs + 1
        self.signs = torch.zeros(inputs, dtype=torch.int8)
        self.shown_sides: list[tuple[Tensor, Tensor]] = []
        self.shown_slopes: list[tuple[Tensor, Tensor, Tensor, Tensor]] = []
        # What each of the form's columns is, over the columns that are kept; how large the absolute
        # values are that computing it adds up; how large it is itself; and how far what stands for
        # it is off from what the network has. All grow with the layers.
        self.known = torch.eye(inputs, dtype=torch.float64)
        one = torch.ones(1, dtype=torch.float64)
        self.sizes = torch.cat([self.support.sizes, one])
        low, high = (torch.from_numpy(side) for side in box_of(region))
        self.reach = torch.cat([torch.maximum(low.abs(), high.abs()), one])
        self.errors = torch.zeros(inputs, dtype=torch.float64)
        # The same of the values of the network's own nodes, a row each.
        self.node_reach = {0: self.reach[None, : form.inputs]}
        self.node_errors: dict[int, Tensor] = {}

    def run(self, violations: Sequence[Halfspaces], inputs: Halfspaces | None) -> Reduction:
        for units in self.form.stages:
            self.add_stage(units)
        self.output = self.over_kept(self.form.output)
        self.output_error = self.argument_error(self.form.end, self.form.fusion.behind)
        parts = [self.violation(polyhedron, inputs) for polyhedron in violations]
        longest = max((len(rows) for rows, _ in parts), default=1)
        repeated = [[min(i, len(rows) - 1) for i in range(longest)] for rows, _ in parts]
        rows = [rows[chosen] for (rows, _), chosen in zip(parts, repeated, strict=True)]
        slacks = [slack[chosen] for (_, slack), chosen in zip(parts, repeated, strict=True)]
        specs = self.block(torch.cat(rows), torch.cat(slacks))
        layers = DenseLayers(tuple(self.blocks), specs, longest, self.support)
        nothing = torch.zeros(0, dtype=torch.float64)
        lows, highs = zip(*self.shown_sides, strict=True) if self.shown_sides else ((), ())
        sides = torch.cat([nothing, *lows]), torch.cat([nothing, *highs])
        ground = Ground(*sides, tuple(self.shown_slopes))
        return Reduction(
            layers,
            self.lower,
            self.upper,
            self.names,
            self.signs,
            self.region,
            (ground,),
            tuple(layer.shape[0] for layer in self.form.layers),
            self.form.inputs + 1,
        )

    def violation(self, polyhedron: Halfspaces, inputs: Halfspaces | None) -> tuple[Tensor, Tensor]:
        """Its rows over the kept columns, and how far they may be off."""
        matrix = torch.from_numpy(polyhedron.matrix)
        offset = torch.from_numpy(polyhedron.offset)
        rows = matrix @ self.output
        rows[:, self.form.inputs] += offset
        sizes = matrix.abs() @ self.magnitudes(self.form.output) + offset.abs()
        slack = DUAL_ROUNDING * sizes + matrix.abs() @ self.error_of(
            self.form.output, self.output_error
        )
        if inputs is not None:
            cuts = torch.zeros(len(inputs.offset), rows.shape[1], dtype=torch.float64)
            cuts[:, : self.form.inputs] = torch.from_numpy(inputs.matrix)
            cuts[:, self.form.inputs] = torch.from_numpy(inputs.offset)
            on_inputs = cuts[:, : self.form.inputs + 1].abs() @ self.sizes[: self.form.inputs + 1]
            cuts[:, self.form.inputs] -= CUT_SLACK * on_inputs
            rows, slack = torch.cat([rows, cuts]), torch.cat([slack, DUAL_ROUNDING * on_inputs])
        return rows, slack

    def argument_error(self, stage: Stage, behind: Operator | None = None) -> Tensor:
        """E for each argument of a stage, from what is known of the values it reads."""
        sizes = {leaf: self.node_reach[leaf] for leaf in stage.leaves}
        errors = {leaf: self.node_errors[leaf] for leaf in stage.leaves if leaf in self.node_errors}
        found = self.rounding.of_arguments(
            stage.source, stage.between, sizes, errors, behind, stage.rounded
        )
        if not bool(torch.isfinite(found).all()):
            raise PossibleOverflow(self.rounding.overflowing(stage.between, sizes))
        return found[0]

    def error_of(self, matrix: csr_array, own: Tensor) -> Tensor:
        """How far rows over the form's columns may be off: `own`, and what the columns are."""
        own = own + self.underflow
        return own + torch.from_numpy(abs(matrix) @ self.errors.numpy())

    def add_stage(self, units: StageUnits) -> None:
        """All layers of a stage, and then what its values are."""
        error = self.argument_error(units.stage)
        for number, reads in zip(units.layers, units.reads, strict=True):
            own = torch.stack([error[torch.from_numpy(read)] for read in reads]).sum(0)
            self.add(self.form.layers[number], own)
        share = torch.from_numpy(units.share)
        lost = LOST_TO_UNDERFLOW[torch.float64]
        passed = share * error[torch.from_numpy(units.passed)]
        passed = passed + torch.where((share == 0) | (share.abs() == 1), 0.0, lost)
        reach = torch.from_numpy(abs(units.value) @ self.reach.numpy()) + passed
        within = Interval(-reach[None], reach[None])
        computed = self.rounding.of_values(units.stage.operator, within, within)
        if computed is not None:
            passed, reach = passed + computed[0], reach + computed[0]
        node = units.stage.node
        self.node_reach[node] = reach[None]
        if bool(passed.any()):
            self.node_errors[node] = passed[None]

    def magnitudes(self, matrix: csr_array) -> Tensor:
        return torch.from_numpy(abs(matrix) @ self.sizes.numpy())

    def block(self, rows: Tensor, slack: Tensor) -> Block:
        """Rows over the kept columns, seen from the region's centre."""
        on_inputs, earlier = rows[:, : self.form.inputs], rows[:, self.form.inputs :].clone()
        if not bool(on_inputs.any()):
            return Block(earlier, None, slack)
        earlier[:, 0] += on_inputs @ self.support.centre
        return Block(earlier, on_inputs * self.support.scale, slack)

    def add(self, layer: csr_array, own_error: Tensor) -> None:
        """A layer of units: bounded, then kept or replaced by what they are."""
        self.check_room(layer.shape[0], 0)
        rows = self.over_kept(layer)
        magnitudes, error = self.magnitudes(layer), self.error_of(layer, own_error)
        block = self.block(rows, DUAL_ROUNDING * magnitudes + error)
        lower, upper = self.bounds(block)
        lower, upper = rounded_down(lower), -rounded_down(-upper)
        self.shown_sides.append((lower, upper))
        is_open = may_bend(lower, upper)
        is_active = (lower >= 0) & ~is_open
        is_kept = is_open
        if block.steps is not None and int(is_active.sum()) < self.form.inputs:
            is_kept = is_open | is_active
        count = int(is_kept.sum())
        self.check_room(len(rows), count)
        earlier, columns = self.known.shape
        names = earlier + torch.arange(len(rows))
        known = self.known.new_zeros(earlier + len(rows), columns + count)
        known[:earlier, :columns] = self.known
        is_replaced = is_active & ~is_kept
        known[names[is_replaced], :columns] = rows[is_replaced]
        known[names[is_kept], columns + torch.arange(count)] = 1.0
        self.known = known
        reach = upper.clamp_min(0)
        self.sizes = torch.cat([self.sizes, torch.where(is_replaced, magnitudes, reach)])
        self.reach = torch.cat([self.reach, reach])
        self.errors = torch.cat([self.errors, torch.where(is_replaced, error, 0.0)])
        steps = None if block.steps is None else block.steps[is_kept]
        self.blocks.append(Block(block.earlier[is_kept], steps, block.slack[is_kept]))
        self.lower = torch.cat([self.lower, lower[is_kept]])
        self.upper = torch.cat([self.upper, upper[is_kept]])
        self.names = torch.cat([self.names, names[is_kept]])
        self.signs = torch.cat([self.signs, is_active.to(torch.int8) - (upper <= 0).to(torch.int8)])

    def check_room(self, rows: int, kept: int) -> None:
        """For what all columns are, with so many more, and for bounding the rows."""
        earlier, columns = self.known.shape
        entries = (earlier + rows) * (columns + kept) + ROW_COPIES * rows * columns
        if FLOAT64_BYTES * entries > self.limits.memory_left:
            raise MemoryError(f"a layer of {rows} units does not fit")

    def bounds(self, block: Block) -> tuple[Tensor, Tensor]:
        """Interval bounds of all units, then CROWN and better slopes where they stay open."""
        low, high = self.lower.clamp_min(0), self.upper.clamp_min(0)
        constant, on_units = block.earlier[:, 0], block.earlier[:, 1:]
        positive, negative = on_units.clamp_min(0), on_units.clamp_max(0)
        lower = constant + positive @ low + negative @ high - block.slack
        upper = constant + positive @ high + negative @ low + block.slack
        if block.steps is not None:
            lower += self.support.least(block.steps)[0]
            upper -= self.support.least(-block.steps)[0]
        lower = torch.where(lower.isfinite(), lower, -torch.inf)
        upper = torch.where(upper.isfinite(), upper, torch.inf)
        if len(self.lower):
            for steps in (0, self.settings.slope_steps):
                chosen = may_bend(lower, upper).nonzero().squeeze(1)
                for part in torch.split(chosen, self.rows_at_once):
                    if self.limits.is_over:
                        break
                    below, above, slopes = self.backward(block, part, steps)
                    if steps:
                        self.show(part, below > lower[part], slopes[: len(part)], 1)
                        self.show(part, above < upper[part], slopes[len(part) :], -1)
                    lower[part] = torch.maximum(lower[part], below)
                    upper[part] = torch.minimum(upper[part], above)
        return lower, upper

    @property
    def rows_at_once(self) -> int:
        """So many that limits are asked again after a few tenths of a second."""
        entries = sum(b.earlier.numel() for b in self.blocks)
        entries += sum(b.steps.numel() for b in self.blocks if b.steps is not None)
        return max(
            32, min(self.settings.dense_units_at_once, self.settings.work_at_once // (1 + entries))
        )

    def show(self, units: Tensor, is_better: Tensor, slopes: Tensor, side: int) -> None:
        """Keep the slopes that show bounds of some units of the layer that is next."""
        first = self.form.inputs + 1
        found = len(self.signs) - first + units[is_better]
        sides = torch.full_like(found, side)
        self.shown_slopes.append((found, sides, slopes[is_better], self.names - first))

    def backward(self, block: Block, chosen: Tensor, steps: int) -> tuple[Tensor, Tensor, Tensor]:
        """Lower and upper bounds of the block's chosen rows through all earlier layers, and the
        slopes of these rows as bytes."""
        earlier = block.earlier[chosen]
        on_steps = None if block.steps is None else block.steps[chosen]
        slack = block.slack[chosen]
        asked = Block(
            torch.cat([earlier, -earlier]),
            None if on_steps is None else torch.cat([on_steps, -on_steps]),
            torch.cat([slack, slack]),
        )
        layers = DenseLayers(tuple(self.blocks), asked, 1, self.support)
        count = len(asked)
        rows = Rows(self.lower.expand(count, -1), self.upper.expand(count, -1), torch.arange(count))
        multipliers = Multipliers.start(rows, 1)
        if steps:
            fast = layers.to(torch.float32, "cpu")
            multipliers, _ = improve(
                fast, rows.to(torch.float32), multipliers.to(torch.float32), steps
            )
        multipliers, slopes = stated(multipliers)
        values = evaluate(layers, rows, multipliers).values
        return values[: len(chosen)], -values[len(chosen) :], slopes

    def over_kept(self, matrix: csr_array) -> Tensor:
        """Rows over the form's columns as rows over the kept ones: dense over the columns that are
        read, unless there are few entries."""
        known, dense_share = self.known, self.settings.dense_product_share
        columns = np.unique(matrix.indices)
        if matrix.nnz < dense_share * matrix.shape[0] * len(columns):
            coordinates = matrix.tocoo()
            indices = torch.from_numpy(
                np.stack([coordinates.row, coordinates.col]).astype(np.int64)
            )
            sparse = torch.sparse_coo_tensor(
                indices, torch.from_numpy(coordinates.data), matrix.shape, check_invariants=False
            )
            product: Tensor = torch.sparse.mm(sparse, known)
            return product
        read = torch.from_numpy(matrix[:, columns].toarray())
        return read @ known[torch.from_numpy(columns.astype(np.int64))]
