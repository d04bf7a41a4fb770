"""The root of a tree on a network's own maps: only open units take part, all else stays as it is.

CROWN bounds every layer at the root; units that it leaves open are bounded once more by slopes of
their own, those first that the specifications lose most at, as far as the time for it allows.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from radii.bounds import (
    DUAL_ROUNDING,
    Fusion,
    HeldValues,
    MappedLayer,
    MappedLayers,
    MappedSpecifications,
    Multipliers,
    Rows,
    State,
    evaluate,
    improve,
    lost_to_underflow,
    support_of,
)
from radii.networks import Relu, may_bend
from radii.problem import UNLIMITED, Ball, Box, Halfspaces, Limits
from radii.verifiers.native._proof_log import Ground, rounded_down, stated
from radii.verifiers.native._reduction import CUT_SLACK, PossibleOverflow, Reduction
from radii.verifiers.native._settings import RootSettings

_DEFAULTS = RootSettings()


def keeps_structure(fusion: Fusion) -> bool:
    """Whether its layers are ReLU units one by one, with maps that are smaller than matrices."""
    if not all(isinstance(stage.operator, Relu | HeldValues) for stage in fusion.stages):
        return False
    if any(fusion.graph.nodes[stage.node].shape != stage.shape for stage in fusion.stages):
        return False
    maps = [held for stage in fusion.stages for held in stage.maps.values()]
    return 2 * sum(held.work for held in maps) < sum(held.inputs * held.outputs for held in maps)


def mapped_reduction(
    state: State,
    region: Ball | Box,
    violations: Sequence[Halfspaces],
    inputs: Halfspaces | None = None,
    limits: Limits = UNLIMITED,
    root_seconds: float = 0.0,
    settings: RootSettings = _DEFAULTS,
) -> Reduction:
    """Root bounds from a pass of CROWN over the region, then by slopes for `root_seconds`, and what
    they leave open.

    `inputs` must hold in a violation too. A PossibleOverflow where the network may overflow.
    """
    with torch.no_grad():
        return _Mapped(state, region, violations, inputs, settings).run(limits, root_seconds)


class _Mapped:
    def __init__(
        self,
        state: State,
        region: Ball | Box,
        violations: Sequence[Halfspaces],
        inputs: Halfspaces | None,
        settings: RootSettings,
    ) -> None:
        self.state, self.region, self.settings = state, region, settings
        self.support = support_of(region)
        if not all(bool(torch.isfinite(loss).all()) for loss in state.losses):
            raise PossibleOverflow(None)
        # Values that are held as they are count as active units, whatever their sign.
        self.is_held = [isinstance(layer.operator, HeldValues) for layer in state.network.layers]
        sides = list(zip(state.arguments, self.is_held, strict=True))
        self.lows = [held.low[0].clamp_min(0 if h else -torch.inf) for held, h in sides]
        self.highs = [held.high[0].clamp_min(0 if h else -torch.inf) for held, h in sides]
        self.specs, self.parts = self.specifications(violations, inputs)
        self.shown_slopes: list[tuple[Tensor, Tensor, Tensor, Tensor]] = []

    def ground(self) -> Ground:
        """What is known of all units now."""
        return Ground(torch.cat(self.lows), torch.cat(self.highs), tuple(self.shown_slopes))

    def run(self, limits: Limits, root_seconds: float) -> Reduction:
        grounds = [self.ground()]
        if not self.is_proven(limits):
            self.refine(limits.within(root_seconds))
            grounds.append(self.ground())
        mapped = self.layers()
        kept = [layer.places for layer in mapped.layers]
        lower, upper = self.bounds(kept)
        is_small = self.dense_entries(kept) < self.settings.dense_gain * mapped.entries
        layers = mapped.condensed(upper.clamp_min(0)) if is_small else mapped
        first, names, signs = 0, [], []
        for low, high, places in zip(self.lows, self.highs, kept, strict=True):
            names.append(first + places)
            first += len(low)
            signs.append((low >= 0).to(torch.int8) - ((low < 0) & (high <= 0)).to(torch.int8))
        return Reduction(
            layers,
            lower,
            upper,
            torch.cat(names),
            torch.cat(signs),
            self.region,
            () if any(self.is_held) else tuple(grounds),
            tuple(len(low) for low in self.lows),
        )

    def dense_entries(self, kept: Sequence[Tensor]) -> int:
        """Of matrices over the input and the kept units before each layer."""
        entries, columns = 0, 1 + self.support.centre.numel()
        for places in kept:
            entries += len(places) * columns
            columns += len(places)
        return entries

    def bounds(self, kept: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
        lower = torch.cat([low[i] for low, i in zip(self.lows, kept, strict=False)])
        upper = torch.cat([high[i] for high, i in zip(self.highs, kept, strict=False)])
        return lower, upper

    def layers(self) -> MappedLayers:
        """The layers with what is known of their units now."""
        found = []
        for number, layer in enumerate(self.state.network.layers):
            low, high = self.lows[number], self.highs[number]
            is_open = may_bend(low, high)
            found.append(
                MappedLayer(
                    layer.node,
                    layer.maps,
                    layer.offset,
                    self.state.losses[number][0],
                    (low >= 0).double(),
                    is_open.nonzero().squeeze(1),
                )
            )
        return MappedLayers(tuple(found), self.specs, self.parts, self.support)

    def specifications(
        self, violations: Sequence[Halfspaces], inputs: Halfspaces | None
    ) -> tuple[MappedSpecifications, int]:
        """All violations with equally many rows each: the last one of a shorter one is repeated."""
        output = self.state.network.output
        _, loss = output.arguments(self.state.values, self.state.errors)
        if not bool(torch.isfinite(loss).all()):
            raise PossibleOverflow(None)
        cuts = 0 if inputs is None else len(inputs.offset)
        longest = max((len(held.offset) for held in violations), default=1)
        chosen = [[min(i, len(held.offset) - 1) for i in range(longest)] for held in violations]
        pairs = list(zip(violations, chosen, strict=True))
        matrix = torch.cat([torch.from_numpy(held.matrix)[rows] for held, rows in pairs])
        offset = torch.cat([torch.from_numpy(held.offset)[rows] for held, rows in pairs])
        specs = MappedSpecifications(
            {source: held.pulled(matrix) for source, held in output.maps.items()},
            matrix @ output.offset + offset,
            matrix.abs() @ loss[0] + DUAL_ROUNDING * offset.abs() + lost_to_underflow(self.support),
        )
        if inputs is None:
            return specs, longest
        return self.with_cuts(specs, longest, len(violations), inputs), longest + cuts

    def with_cuts(
        self, specs: MappedSpecifications, parts: int, count: int, inputs: Halfspaces
    ) -> MappedSpecifications:
        """Behind each specification's rows those that hold for inputs."""
        on_input, offset = torch.from_numpy(inputs.matrix), torch.from_numpy(inputs.offset)
        size = on_input.abs() @ self.support.sizes + offset.abs()
        offset = offset - CUT_SLACK * size

        def joined(own: Tensor, cut: Tensor) -> Tensor:
            grouped = own.view(count, parts, -1)
            return torch.cat([grouped, cut.expand(count, -1, -1)], 1).flatten(0, 1)

        maps = {s: joined(h, h.new_zeros(len(size), h.shape[1])) for s, h in specs.maps.items()}
        nothing = on_input.new_zeros(len(specs.offset), on_input.shape[1])
        own = specs.maps.get(0, nothing)
        maps[0] = joined(own, on_input)
        return MappedSpecifications(
            maps,
            joined(specs.offset[:, None], offset[:, None]).squeeze(1),
            joined(specs.slack[:, None], DUAL_ROUNDING * size[:, None]).squeeze(1),
        )

    def is_proven(self, limits: Limits) -> bool:
        """Every specification is bounded away by slopes of its own: no unit needs any.

        Some at a time: most often the first ones fail, and limits are asked in between.
        """
        layers = self.layers()
        lower, upper = self.bounds([layer.places for layer in layers.layers])
        fast = layers.to(torch.float32, "cpu")
        at_once = max(1, self.settings.work_at_once // (1 + layers.entries))
        for part in torch.arange(layers.spec_rows // layers.parts).split(at_once):
            if limits.is_over:
                return False
            count = len(part)
            rows = Rows(lower.expand(count, -1), upper.expand(count, -1), part)
            start = Multipliers.start(rows, layers.parts)
            found, _ = improve(
                fast,
                rows.to(torch.float32),
                start.to(torch.float32),
                self.settings.spec_steps,
                limits,
            )
            values = evaluate(layers, rows, found.to(torch.float64)).values
            if not bool((values > 0).all()):
                return False
        return True

    # --- better bounds of open units

    def refine(self, limits: Limits) -> None:
        """Each layer's open units by slopes of their own, from the second layer on."""
        for number in range(1, len(self.lows)):
            layers = self.layers().until(number + 1)
            count = len(layers.layers[-1])
            if not count or not layers.units > count:
                continue
            self.refine_layer(layers, number, limits)

    def refine_layer(self, layers: MappedLayers, number: int, limits: Limits) -> None:
        kept = [layer.places for layer in layers.layers]
        lower, upper = self.bounds(kept)
        places = kept[-1]
        first = layers.units - len(places)
        fast = layers.to(torch.float32, "cpu")
        at_once = max(
            16,
            min(
                self.settings.mapped_units_at_once,
                self.settings.work_at_once // (1 + layers.entries),
            ),
        )
        for part in torch.arange(len(places)).split(at_once):
            if limits.is_over:
                return
            unit = first + part.repeat(2)
            sign = torch.ones(len(unit), dtype=torch.float64)
            sign[len(part) :] = -1.0
            count = len(unit)
            rows = Rows(
                lower.expand(count, -1),
                upper.expand(count, -1),
                torch.zeros(count, dtype=torch.int64),
                unit=unit,
                sign=sign,
            )
            start = Multipliers.start(rows, 1, 0.0).to(torch.float32)
            found, _ = improve(
                fast, rows.to(torch.float32), start, self.settings.slope_steps, limits
            )
            exact, slopes = stated(found)
            values = rounded_down(evaluate(layers, rows, exact).values)
            own = places[part]
            self.show(number, own, values, slopes, kept)
            self.lows[number][own] = torch.maximum(self.lows[number][own], values[: len(part)])
            self.highs[number][own] = torch.minimum(self.highs[number][own], -values[len(part) :])

    def show(
        self, number: int, units: Tensor, values: Tensor, slopes: Tensor, kept: Sequence[Tensor]
    ) -> None:
        """Keep the slopes that show better bounds of some units of a layer."""
        firsts = [0]
        for low in self.lows[: number + 1]:
            firsts.append(firsts[-1] + len(low))
        names = torch.cat([first + own for first, own in zip(firsts, kept, strict=False)])
        known = torch.cat([self.lows[number][units], -self.highs[number][units]])
        better = (values > known).nonzero().squeeze(1)
        side = torch.where(better < len(units), 1, -1)
        found = firsts[number] + units[better % len(units)]
        self.shown_slopes.append((found, side, slopes[better], names))
