"""What the native verifier is tuned by. Other values cost time, and never change what is claimed.

Shares are parts of 1. The defaults were measured on the networks of the VNN-COMP and of the papers.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class CandidateSettings:
    """How hard points at which a relaxation is least are tried as counterexamples."""

    descent_steps: int = 10
    descent_first_step: float = 0.1
    """Of the box's sides, by the sign of the gradient."""
    descent_decay: float = 0.7
    """From one step to the next."""

    segment_points: int = 64
    """Points tried on the way from a witness to the centre of its ball."""

    replays: int = 4
    """Points of one call that are replayed with all checks, the most violating first."""

    near_violation: float = 1e-4
    """In units of the outputs: points farther from a violation in float64 are not replayed."""

    descent_starts: int = 8
    """Points of one call that an attack descends from."""

    eager_calls: int = 1
    """An attack goes with each of the first calls ..."""
    calls_between_attacks: int = 8
    """... and then with one in this many."""


@dataclass(frozen=True, slots=True)
class ClimbSettings:
    """Which eps is tried next, and for how long."""

    first_attempt_share: float = 0.7
    """Of the time that is left, at most, for the attempt at the goal ..."""
    later_attempt_share: float = 0.7
    """... for those at smaller values ..."""
    root_share: float = 0.1
    """... and for those that do not branch, so that still smaller values get their turn."""

    patient_share: float = 0.06
    """Of its time: how long an attempt runs before it may be found hopeless."""

    highest_next: float = 1 / 2
    """How far up between proven and given up the next value is at most."""

    doubling_eps: float = 0.05
    """By what part of itself an eps grows, about, for its proof to take twice as long."""

    quick_share: float = 1 / 64
    """Of the time that is left: quicker proofs say no more about larger values than this."""

    out_of_reach: float = 1.4
    """From this ratio of the goal to what quick proofs reach, branching does not get there: it
    gains 20 to 40 % on convolutional networks (convSmall, cifar_base_kw, resnet_2b)."""

    promising_share: float = 0.1
    """Of the tree that a probe has closed: below, what the root alone proves is looked for before
    the goal is tried again. Probes at goals that were reached later had closed 0.2 to 1, others
    0."""

    first_step: float = 1.25
    """From what a looser bound has proven to where a tighter one is tried first."""

    rising_share: float = 0.5
    """Of the time that is left, at most, for the quick proofs of one kind."""
    enough_share: float = 0.1
    """After this share of the time they go on only if the lower side can still grow ..."""
    worthwhile_rise: float = 0.1
    """... by more than this part of itself."""

    long_step: float = 8.0
    """From one proven value to the next, at most; small values say little of large ones."""

    short_of_zero: float = 0.7
    """How much of the way to the extrapolated zero of the margin is gone: margins fall faster than
    a line."""

    beyond_zero: float = 1.1
    """From this ratio of the next value to the extrapolated zero, it is not tried: margins fall
    faster than a line, up to the noise of bounds."""

    far_apart: float = 2.0
    """From this ratio of a failed value to a proven one, their geometric mean is tried."""


@dataclass(frozen=True, slots=True)
class TrialSettings:
    """How much time cheap nodes of a tree get beside rich ones."""

    first_share: float = 0.25
    """Of the time of rich nodes, at first ..."""
    least_share: float = 1 / 32
    """... at least, which is what a network where trials never help pays for them ..."""
    largest_share: float = 16.0
    """... and at most."""

    fading: float = 0.7
    """What earlier batches of rich nodes weigh against the latest."""


@dataclass(frozen=True, slots=True)
class RootSettings:
    """How the units of a whole region are bounded before the tree, and in which form they go on."""

    slope_steps: int = 4
    """Steps of ascent for each unit that CROWN leaves open: its bounds serve all specifications and
    all nodes."""

    spec_steps: int = 10
    """Steps of ascent for each specification before units get slopes of their own: as in the
    tree."""

    dense_gain: float = 1.5
    """Matrices of open units are used if they have at most this many entries for each product of
    the maps: both then take equally long (cifar_base_kw, convSmall: 1.1 and 1.8 ms for 2.8 times).
    """

    mapped_units_at_once: int = 256
    dense_units_at_once: int = 512
    """Units bounded together, at most, through maps and through matrices ..."""
    work_at_once: int = 1 << 28
    """... and times the products of one pass: a few tenths of a second, after which limits are
    asked."""

    dense_product_share: float = 0.3
    """From this share of entries on, a dense product is faster than a sparse one."""


@dataclass(frozen=True, slots=True)
class SplitSettings:
    """How splits are looked for."""

    short_list: int = 8
    """Units tried as splits: of those that lose most, in each of the two measures."""
    tie_break: float = 1e-3
    """The weight of a split's better child, where the worse ones are equal."""
    smallest_gap: float = 1e-9
    """Of a node: where a measure proves it already, no split can gain anything in it."""
    probed_units: int = 128
    """Units tried in a probe: of those that lose most in each of the two measures."""
    probed_again: int = 32
    """And of those that gained most in earlier probes."""
    probe_steps: int = 20
    """Steps of ascent for the children of a probe: as for cheap nodes."""
    probe_share: float = 0.1
    """Of a tree's CPU time, for probes."""
    probed_from: int = 128
    """Nodes that a tree must have visited before it is probed: small trees end without."""
    latest_weight: float = 0.5
    """Of the latest probe against what was known of a unit."""
    least_rule_share: float = 0.5
    """Where the rule's choices gain less than this part of the best that probes found, by the worse
    child, probes choose."""


@dataclass(frozen=True, slots=True)
class TreeSettings:
    """How a tree spends its time. Measurements are in benchmarks/LOG.md."""

    rows_at_once: int = 2048
    """Rows bounded together, at most: fills the matrix products and stays within a laptop's
    caches."""
    fewest_rows: int = 8
    """Rows bounded together, at least, however large the layers are."""
    row_work_at_once: int = 1 << 29
    """Rows times the entries of the layers: a few tenths of a second, after which limits are
    asked."""
    nodes_at_once: int = 16
    """Rich nodes, whose units are bounded again, that are split together, at most."""
    nodes_at_hand: int = 2048
    """Open nodes of a tree that are chosen from at every step; others wait aside."""
    cheap_nodes_at_once: int = 256
    """The same of cheap nodes, whose units keep their bounds."""
    node_batch_seconds: float = 1.0
    """How long a batch of rich nodes may take before it is halved: in CPU time of our own, so that
    a busy machine does not make batches inefficiently small as well."""
    spec_steps: int = 10
    """Steps of ascent for a node's own bound, each time its units' bounds have changed."""
    cheap_steps: int = 20
    """Steps of ascent for the bound of a cheap node."""
    polish_steps: int = 30
    """Steps of ascent before a node is split after all: its multipliers may be all that is
    missing."""
    tighten_steps: int = 3
    """Steps of ascent for the bounds of a node's units, in each round."""
    tightening_rounds: int = 10
    """Rounds of tightening at each node, at most."""
    leaf_steps: int = 300
    """Steps of ascent at a leaf, where only the splits' multipliers are left."""
    rounds_expected: int = 2
    """Of tightening, at the nodes that a tree starts from: what trials before it earn their time
    by."""
    worthwhile_rest: float = 0.25
    """Of a node: if a tree of cheap nodes leaves more than this open, the node is taken as it
    was."""
    loss_share: float = 0.95
    """Of a node's relaxation loss: only units that make up this much of it are bounded again."""
    worthwhile_shrinkage: float = 0.97
    """Another round only if the last one shrank the units' total width to less than this."""
    row_gain: float = 0.002
    """A new bound is worth its proof in float64 if it takes more than this off the unit's width."""
    unit_gain: float = 0.02
    """A unit is asked for again in the next round if the last took more than this off its width."""
    rounding_share: float = 0.8
    """Of what a bound lost to rounding: a point whose margin is less than this is out of its reach.
    Splits hardly lower what is lost."""
    stuck_rounds: int = 8
    """A tree that rounding alone keeps open is given up after so many rounds of splits that raise
    its worst bound too little (mnist-net_256x2 37: 60 rounds)."""
    stuck_gain: float = 0.01
    """What is too little, as a share of what is lost to rounding."""
    splits: SplitSettings = field(default_factory=SplitSettings)
    """How splits are looked for."""


@dataclass(frozen=True, slots=True)
class BoxSettings:
    """How boxes of inputs are bounded and cut."""

    round_seconds: float = 0.3
    """CPU time that a round should take: short against the time limits that it has to notice."""

    largest_batch: int = 4096
    smallest_chain_batch: int = 64
    """Boxes of a round. Chains look at the limits between parts of a batch, and fewer boxes would
    cost as much."""

    smallest_width: float = 2.0**-36
    """A box is not cut any more where all its sides are this small against the whole region's."""

    entries_kept: int = 1 << 20
    """How many intervals of units a batch may have: 16 MB, for each level of the depth-first
    order."""

    influence_inputs: int = 64
    """Beyond, the influence of each input would cost more than the bounds; slopes stand for it."""

    points_tried: int = 8
    """Points of a round that are tried as counterexamples, the most violating first."""

    eager_rounds: int = 6
    """This many rounds descend from their points at first, and one in this many later."""

    near_margins: float = 2.0
    """Tight bounds are worth it where loose ones miss by up to this many times the margin to
    spare."""

    tight_first_share: float = 0.5
    """Tight bounds are taken at once while more than this share of boxes is closed or nearly so."""

    halving_gain: float = 3.0
    most_halvings: int = 6
    """Each halving brings bounds closer by about this factor, or by less; at most this many follow
    each other without bounds."""


@dataclass(frozen=True, slots=True)
class LineSettings:
    """How lines are chosen where a region is proven whole."""

    share: float = 0.4
    """Of the time that is left, at most, before the region is split."""

    row_steps: int = 20
    """Steps of ascent for the violations' rows ..."""
    near_margins: float = 1.0
    """... on plain intervals only where those miss by up to this many times the margin in the
    middle."""

    unit_steps: tuple[int, ...] = (4, 12)
    """The same for the bounds of units, one stage after another: a step costs three passes."""


@dataclass(frozen=True, slots=True)
class SmoothTreeSettings:
    """How a tree on units of any kind spends its time."""

    steps: int = 12
    """Steps of ascent for the bound of a node."""
    nodes_at_once: int = 64
    """Nodes bounded together, at most ..."""
    work_at_once: int = 1 << 28
    """... times the products of one row's way back: a few tenths of a second."""
    tightened_rows: int = 64
    """Arguments of children are bounded again if these are at most so many rows for each step."""
    short_list: int = 3
    """Arguments tried as splits: of those whose units cost the bound most, ..."""
    least_loss: float = 0.05
    """... at least this part of what the first one costs."""
    trial_steps: int = 3
    """Steps of ascent for the children of a split that is tried."""
    split_inputs: int = 128
    """Up to so many inputs, cuts of inputs are tried beside those of units."""
    rounds: int = 6
    """How often a node is bounded again after its box of inputs was clipped, at most ..."""
    worthwhile_clip: float = 0.2
    """... if one of the sides has lost more than this part of itself."""
    edge_share: float = 0.1
    """Of an interval: no cut is nearer to one of its ends."""
    tie_break: float = 1e-3
    """The weight of an argument's width where its unit's lines cost nothing."""
    clip_weight: float = 1.0
    """The weight of what a split clips of its children's boxes beside what their bounds gain."""
    least_gain: float = 1e-3
    """What a child is taken to gain at least, so that its sibling still counts."""
    memory_bytes: int = 512 << 20
    """Of open nodes: beyond, those that came last are taken first, so that few are added."""


@dataclass(frozen=True, slots=True)
class ProofSettings:
    """Which way a question is decided, and what its parts may take."""

    splittable_inputs: int = 12
    """Up to here, splitting inputs beats splitting units (measured on networks of 6 x 50 units)."""

    smooth_splittable_inputs: int = 20
    """The same where units are smooth: on gates of 2 x 6 units behind 14 inputs, boxes are decided
    in 0.5 to 9 s where trees of units take 2 to more than 20."""

    crown_first_units: int = 2000
    """From this many units on, CROWN on the layers as they are is tried first: it takes a fraction
    of the time in which the tree's own form is bounded (0.15 s for 0.5 to 2 s)."""

    quick_proof_share: float = 0.25
    """Of the time that is left, for each pass of CROWN; units it does not reach keep intervals."""

    first_proof_share: float = 0.6
    """The same until one pass has proven something: one that is cut off proves nothing, and with
    nothing proven there is nothing else to spend the time on."""

    pass_variation: float = 1.2
    """A pass may take this many times as long as the last one: without so much time it is not
    begun, since one that is cut off proves nothing."""

    clipping_share: float = 0.5
    """Of the time that is left, for a tree that clips inputs before one that splits ReLU units."""

    split_attempt_share: float = 0.5
    """Of the time that is left, for each attempt of a climb that splits inputs."""

    root_slopes_share: float = 0.1
    """Of the time that is left, at most, for slopes of open units at the root."""

    near_goal: float = 1.05
    """Open nodes of an earlier climb are gone on from up to this ratio to the goal: what a much
    larger eps leaves open are many nodes, split where a smaller one needs no split."""

    multiplier_memory_bytes: int = 512 << 20
    """For the multipliers that children start from, at most ..."""
    multiplier_memory_share: float = 0.25
    """... and of the memory that is left."""

    certifying_share: float = 4.0
    """Of the time that a proof took: to prove it again in a way that can be certified ..."""
    least_certifying_seconds: float = 5.0
    """... and this many seconds more."""

    candidates: CandidateSettings = field(default_factory=CandidateSettings)
    climb: ClimbSettings = field(default_factory=ClimbSettings)
    trials: TrialSettings = field(default_factory=TrialSettings)
    root: RootSettings = field(default_factory=RootSettings)
    tree: TreeSettings = field(default_factory=TreeSettings)
    smooth: SmoothTreeSettings = field(default_factory=SmoothTreeSettings)
    boxes: BoxSettings = field(default_factory=BoxSettings)
    lines: LineSettings = field(default_factory=LineSettings)
