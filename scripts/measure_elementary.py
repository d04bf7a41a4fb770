"""Measure how exact ONNX Runtime's elementary functions are, over all float32 values.

    python scripts/measure_elementary.py [--operator NAME ...] [--stride N] [--out DIR]

Every finite float32 is given to the runtime's kernel in increasing order, in blocks of an eighth of
a binade, on one thread, and compared with the same function in float64. For Softmax and LogSoftmax
it is the first of the pair [x, 0]; the second is that of [-x, 0], which is checked. Then a
million random values are given again in arrays of 1 to 20 elements, where vectorised kernels take
another path, and in float64. One operator takes some minutes. A table goes to standard output,
progress to standard error, and the figures of each block to DIR/NAME.csv. At the end stand the
errors that `radii.networks` states beside those that were measured.
"""

from __future__ import annotations

import argparse
import csv
import math
import platform
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, fields
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnxruntime
from onnx import TensorProto, helper
from scipy import special

from radii.networks import MEASURED_ERRORS, ErrorMeasure

Float32 = npt.NDArray[np.float32]
Float64 = npt.NDArray[np.float64]
Values = npt.NDArray[np.floating]

UNIT = 2.0**-24
SMALLEST_NORMAL = 2.0**-126
BLOCK = 1 << 20
"""An eighth of a binade: 9, 18 and 88, where kernels clamp, are limits of blocks."""
CHUNK = 1 << 16
"""Compared at once: what fits into the processor's cache, which is three times as fast."""
FINITE = 255 << 23
"""How many float32 values are finite and not negative."""
SAMPLES = 1_000_000
OPSET = 20


@dataclass(frozen=True, slots=True)
class Operator:
    """A function of one number as a node of ONNX: its exact value, and what is known of its form.

    `direction` is 1 where it never decreases, -1 where it never increases, 0 where neither holds.
    `edges` divide the line where the kernel may change its behaviour.
    """

    name: str
    node: str
    exact: Callable[[Float64], Float64]
    direction: int
    edges: tuple[float, ...] = ()
    limits: tuple[float, float] = (-math.inf, math.inf)
    is_pair: bool = False
    attributes: tuple[tuple[str, float | str], ...] = ()

    def kernel(self, dtype: type[np.floating] = np.float32) -> Callable[[Values], Values]:
        """The runtime's own function, from a flat array to a flat array."""
        session = _session(self, dtype)
        if not self.is_pair:
            return lambda x: session.run(None, {"x": x})[0]

        def of_pairs(x: Values) -> Values:
            pairs = np.zeros((len(x), 2), dtype)
            pairs[:, 0] = x
            return np.ascontiguousarray(session.run(None, {"x": pairs})[0][:, 0])

        return of_pairs


def _session(operator: Operator, dtype: type[np.floating]) -> onnxruntime.InferenceSession:
    element = TensorProto.FLOAT if dtype is np.float32 else TensorProto.DOUBLE
    shape: list[str | int] = ["n", 2] if operator.is_pair else ["n"]
    attributes: dict[str, Any] = dict(operator.attributes)
    node = helper.make_node(operator.node, ["x"], ["y"], **attributes)
    graph = helper.make_graph(
        [node],
        "elementary",
        [helper.make_tensor_value_info("x", element, shape)],
        [helper.make_tensor_value_info("y", element, shape)],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)])
    model.ir_version = 9
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )


def _sigmoid(x: Float64) -> Float64:
    # 1 + exp(-x) is rounded once and never cancels, so both tails are exact to 2^-52. Beyond -700
    # all is below 2^-1000, and numpy is slow where it overflows.
    return 1.0 / (1.0 + np.exp(-np.maximum(x, -700.0)))


def _softplus(x: Float64) -> Float64:
    return np.maximum(x, 0.0) + np.log1p(np.exp(-np.abs(x)))


def _elu(x: Float64) -> Float64:
    return np.where(x > 0, x, np.expm1(np.minimum(x, 0.0)))


def _gelu(x: Float64) -> Float64:
    return np.asarray(0.5 * x * special.erfc(-x / math.sqrt(2.0)), np.float64)


def _gelu_by_tanh(x: Float64) -> Float64:
    """0.5 x (1 + tanh(w)) = x sigmoid(2 w), which does not cancel in the left tail."""
    return np.asarray(x * _sigmoid(2 * math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)), np.float64)


def _hard_sigmoid(x: Float64) -> Float64:
    return np.clip(float(np.float32(0.2)) * x + 0.5, 0.0, 1.0)


def _hard_swish(x: Float64) -> Float64:
    return np.asarray(x * np.clip(float(np.float32(1 / 6)) * x + 0.5, 0.0, 1.0), np.float64)


def _mish(x: Float64) -> Float64:
    return np.asarray(x * np.tanh(_softplus(x)), np.float64)


def _selu(x: Float64) -> Float64:
    alpha, gamma = float(np.float32(1.6732632)), float(np.float32(1.0507010))
    return np.asarray(gamma * np.where(x > 0, x, alpha * np.expm1(np.minimum(x, 0.0))))


TAILS = (-104.0, -88.0, -18.0, -9.0, -1.0, 0.0, 1.0, 9.0, 18.0, 88.0, 104.0)
OPERATORS = (
    Operator("Exp", "Exp", np.exp, 1, (-104, -88, -80, -1, 0, 1, 80, 88), (0, math.inf)),
    Operator("Tanh", "Tanh", np.tanh, 1, (-9, -5, -1, -0.0009765625, 0, 1, 9), (-1, 1)),
    Operator("Sigmoid", "Sigmoid", _sigmoid, 1, TAILS, (0, 1)),
    Operator("Softmax", "Softmax", _sigmoid, 1, TAILS, (0, 1), is_pair=True),
    Operator(
        "LogSoftmax", "LogSoftmax", lambda x: -_softplus(-x), 1, TAILS, (-math.inf, 0), is_pair=True
    ),
    Operator("Erf", "Erf", lambda x: special.erf(x), 1, (-4, -1, 0, 1, 4), (-1, 1)),
    Operator("Log", "Log", np.log, 1, (0, 0.5, 0.875, 1, 1.125, 2)),
    Operator("Sqrt", "Sqrt", np.sqrt, 1, (0,)),
    Operator("Reciprocal", "Reciprocal", lambda x: 1.0 / x, -1, (-(2.0**126), 0, 2.0**126)),
    Operator("Softplus", "Softplus", _softplus, 1, TAILS, (0, math.inf)),
    Operator("Elu", "Elu", _elu, 1, (-18, -1, -0.0009765625, 0), (-1, math.inf)),
    Operator("Gelu", "Gelu", _gelu, 0, (-16, -4, -1, 0, 1, 4)),
    Operator(
        "Gelu by tanh",
        "Gelu",
        _gelu_by_tanh,
        0,
        (-16, -4, -1, 0, 1, 4),
        attributes=(("approximate", "tanh"),),
    ),
    Operator("HardSigmoid", "HardSigmoid", _hard_sigmoid, 1, (-4, 0, 4), (0, 1)),
    Operator("HardSwish", "HardSwish", _hard_swish, 0, (-4, -3, 0, 3, 4)),
    Operator("Mish", "Mish", _mish, 0, TAILS),
    Operator("Selu", "Selu", _selu, 1, (-18, -1, -0.0009765625, 0)),
    Operator("Celu", "Celu", _elu, 1, (-18, -1, -0.0009765625, 0), (-1, math.inf)),
    Operator("Atan", "Atan", np.arctan, 1, (-16, -1, 0, 1, 16), (-math.pi / 2, math.pi / 2)),
    Operator("Sin", "Sin", np.sin, 0, (-100000, -100, -4, 0, 4, 100, 100000), (-1, 1)),
    Operator("Cos", "Cos", np.cos, 0, (-100000, -100, -4, 0, 4, 100, 100000), (-1, 1)),
)


@dataclass(frozen=True, slots=True)
class Figures:
    """What was measured on the values from `first` to `last`.

    `relative` is the largest |y - f| / |f| where f is a normal number that fits into float32,
    `tiny` the largest |y - f| below that; `by_argument` is the largest |y - f| / max(1, |x|), and
    `by_result` the largest |y - f| / max(1, |f|). `undefined` counts NaN where f is a number, or
    the other way around; `overflows` results that are infinite where f fits into float32, or finite
    where it does not; `turns` steps against the function's direction.
    """

    first: float
    last: float
    absolute: float
    absolute_at: float
    relative: float
    relative_at: float
    tiny: float
    tiny_at: float
    by_argument: float
    by_argument_at: float
    by_result: float
    by_result_at: float
    undefined: int
    overflows: int
    turns: int
    lowest: float
    highest: float

    def joined(self, other: Figures) -> Figures:
        """The figures of both ranges together."""

        def larger(name: str) -> tuple[float, float]:
            best = max(self, other, key=lambda figures: getattr(figures, name))
            return getattr(best, name), getattr(best, f"{name}_at")

        return Figures(
            min(self.first, other.first),
            max(self.last, other.last),
            *larger("absolute"),
            *larger("relative"),
            *larger("tiny"),
            *larger("by_argument"),
            *larger("by_result"),
            self.undefined + other.undefined,
            self.overflows + other.overflows,
            self.turns + other.turns,
            min(self.lowest, other.lowest),
            max(self.highest, other.highest),
        )


def compared(operator: Operator, x: Float32, y: Float32, before: float) -> Figures:
    """The figures of one block; `before` is the result just below it, for the direction."""
    if len(x) > 2 and (y == y[0]).all() and _is_plain(operator, x):
        # Beside a constant the error of a monotone function is largest at either end.
        x, y = x[[0, -1]], y[[0, -1]]
    with np.errstate(all="ignore"):
        exact = operator.exact(x.astype(np.float64))
        size = np.abs(exact)
        error = np.abs(y - exact)
        fits = size <= float(np.finfo(np.float32).max)
        overflows = np.count_nonzero(np.isinf(y) & fits)
        # Just above the largest float32, rounding down to it is right.
        overflows += np.count_nonzero(np.isfinite(y) & (size >= 2.0**128))
        relative = np.where(fits & (size >= SMALLEST_NORMAL), error / size, 0.0)
        tiny = np.where(size < SMALLEST_NORMAL, error, 0.0)
        steps = np.diff(y, prepend=np.float32(before)) * operator.direction
    error = np.where(fits & np.isfinite(y), error, 0.0)
    relative, tiny = np.nan_to_num(relative), np.nan_to_num(tiny)
    by_argument = error / np.maximum(1.0, np.abs(x, dtype=np.float64))
    by_result = np.where(fits, error / np.maximum(1.0, size), 0.0)
    number = y[~np.isnan(y)]
    return Figures(
        float(x[0]),
        float(x[-1]),
        *_largest(error, x),
        *_largest(relative, x),
        *_largest(tiny, x),
        *_largest(by_argument, x),
        *_largest(by_result, x),
        int(np.count_nonzero(np.isnan(y) != np.isnan(exact))),
        int(overflows),
        int(np.count_nonzero(steps < 0)),
        float(number.min()) if len(number) else math.inf,
        float(number.max()) if len(number) else -math.inf,
    )


def _is_plain(operator: Operator, x: Float32) -> bool:
    """The exact function is monotone here, and normal everywhere or nowhere."""
    with np.errstate(all="ignore"):
        ends = np.abs(operator.exact(x[[0, -1]].astype(np.float64)))
    is_normal = ends >= SMALLEST_NORMAL
    return operator.direction != 0 and bool(is_normal[0] == is_normal[1])


def in_chunks(
    operator: Operator, kernel: Callable[[Values], Values], x: Float32, before: float
) -> tuple[Figures, float]:
    """The figures of one block, and its last result."""
    parts = []
    for start in range(0, len(x), CHUNK):
        part = x[start : start + CHUNK]
        y = kernel(part).astype(np.float32, copy=False)
        parts.append(compared(operator, part, y, before))
        before = float(y[-1])
    return joined(parts), before


def _largest(error: Float64, x: Float32) -> tuple[float, float]:
    place = int(np.argmax(error))
    return float(error[place]), float(x[place])


def blocks(stride: int) -> Iterator[Float32]:
    """All finite float32 values in increasing order, from the lowest negative one."""
    for start in range(FINITE - BLOCK, -1, -BLOCK):
        codes = np.arange(start, start + BLOCK, stride, dtype=np.uint32)[::-1]
        yield np.ascontiguousarray(codes | np.uint32(1 << 31)).view(np.float32)
    for start in range(0, FINITE, BLOCK):
        yield np.arange(start, start + BLOCK, stride, dtype=np.uint32).view(np.float32)


def measured(operator: Operator, stride: int) -> list[Figures]:
    """The figures of every block, in increasing order of x."""
    kernel = operator.kernel()
    figures: list[Figures] = []
    before, started = math.nan, time.monotonic()
    total = 2 * FINITE // BLOCK
    for number, x in enumerate(blocks(stride)):
        if operator.name == "Reciprocal" and number == total // 2:
            before = math.nan  # it falls on either side of its pole
        block, before = in_chunks(operator, kernel, x, before)
        figures.append(block)
        if number % 64 == 0:
            seconds = time.monotonic() - started
            print(
                f"\r{operator.name}: {number / total:6.1%} after {seconds:.0f} s",
                end="",
                file=sys.stderr,
                flush=True,
            )
    print(f"\r{operator.name}: done after {time.monotonic() - started:.0f} s ", file=sys.stderr)
    return figures


def joined(figures: Sequence[Figures]) -> Figures:
    total = figures[0]
    for other in figures[1:]:
        total = total.joined(other)
    return total


def samples(count: int, seed: int = 0) -> Float32:
    """Random float32 values: half of all bit patterns, half where functions bend."""
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, 1 << 32, count // 2, dtype=np.uint32).view(np.float32)
    codes = np.where(np.isfinite(codes), codes, np.float32(1.0))
    bent = rng.normal(0, 20, count - count // 2).astype(np.float32)
    return rng.permutation(np.concatenate([codes, bent]))


def short_arrays(operator: Operator, count: int) -> str:
    """Whether arrays of 1 to 20 elements give other bits than long ones."""
    kernel = operator.kernel()
    x = samples(count)
    long = kernel(x)
    rng = np.random.default_rng(1)
    short = np.empty_like(long)
    start = 0
    while start < len(x):
        stop = start + int(rng.integers(1, 21))
        short[start:stop] = kernel(x[start:stop])
        start = stop
    differ = (long.view(np.uint32) != short.view(np.uint32)) & ~(np.isnan(long) & np.isnan(short))
    if not differ.any():
        return f"bit-wise the same on {len(x)} values"
    whole, part = (compared_unordered(operator, x[differ], y[differ]) for y in (long, short))
    return (
        f"{differ.sum()} of {len(x)} differ; relative error there {whole.relative / UNIT:.3g} u in "
        f"long, {part.relative / UNIT:.3g} u in short arrays; absolute {whole.absolute:.3g}, "
        f"{part.absolute:.3g}; tiny {whole.tiny:.3g}, {part.tiny:.3g}"
    )


def compared_unordered(operator: Operator, x: Float32, y: Float32) -> Figures:
    order = np.argsort(x)
    return compared(operator, x[order], y[order], math.nan)


def second_of_pair(operator: Operator, count: int) -> str:
    """Whether the second of [x, 0] is bit-wise the first of [-x, 0]."""
    session = _session(operator, np.float32)
    pairs = np.zeros((count, 2), np.float32)
    pairs[:, 0] = samples(count)
    second, first = (session.run(None, {"x": sign * pairs})[0] for sign in (1, -1))
    differ = np.count_nonzero(second[:, 1] != first[:, 0])
    return f"{differ} of {count} differ from the first of [-x, 0]"


def rows_of_softmax(operator: Operator, count: int) -> list[str]:
    """Errors in rows of other lengths: n - 1 random values and one that is 0."""
    session = _session_of_rows(operator.node)
    rng = np.random.default_rng(2)
    lines = []
    for width in (3, 4, 5, 8, 10, 16, 17, 33, 100, 1000):
        rows = np.zeros((max(1, count // width), width), np.float32)
        rows[:, :-1] = rng.normal(0, 1, (len(rows), width - 1)) * rng.choice(
            [0.1, 1, 10, 40, 100], (len(rows), 1)
        )
        y = session.run(None, {"x": rows})[0]
        wide = rows.astype(np.float64)
        exact = special.log_softmax(wide, axis=1)
        if operator.node == "Softmax":
            exact = special.softmax(wide, axis=1)
        figures = compared_rows(exact, y)
        total = f", sums to 1 within {np.abs(y.sum(1, dtype=np.float64) - 1).max() / UNIT:.3g} u"
        lines.append(
            f"  rows of {width:4d}: {figures}" + (total if operator.node == "Softmax" else "")
        )
    return lines


def _session_of_rows(node: str) -> onnxruntime.InferenceSession:
    graph = helper.make_graph(
        [helper.make_node(node, ["x"], ["y"], axis=-1)],
        "rows",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", "k"])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", "k"])],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)])
    model.ir_version = 9
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )


def compared_rows(exact: Float64, y: Float32) -> str:
    error, size = np.abs(y - exact), np.abs(exact)
    normal = size >= SMALLEST_NORMAL
    relative = float((error[normal] / size[normal]).max())
    tiny = float(error[~normal].max()) if (~normal).any() else 0.0
    return (
        f"absolute {error.max() / UNIT:.3g} u, relative {relative / UNIT:.4g} u, "
        f"below 2^-126 absolute {tiny:.3g}"
    )


def in_float64(operator: Operator, count: int) -> str:
    """The double kernel beside a reference that is itself exact to about an ulp."""
    rng = np.random.default_rng(3)
    x = np.concatenate([rng.normal(0, scale, count // 4) for scale in (0.01, 1, 10, 100)])
    try:
        y = operator.kernel(np.float64)(x)
    except Exception as error:  # the runtime's own share no base
        return f"no kernel ({str(error).splitlines()[0][:80]})"
    with np.errstate(all="ignore"):
        exact = operator.exact(x)
        relative = np.abs(y - exact) / np.abs(exact)
    normal = np.isfinite(exact) & (np.abs(exact) >= 2.0**-1022)
    unit = 2.0**-53
    return (
        f"relative {relative[normal].max() / unit:.4g} x 2^-53 at x = "
        f"{x[normal][np.argmax(relative[normal])]:.6g}, absolute "
        f"{np.abs(y - exact)[normal].max() / unit:.4g} x 2^-53"
    )


def ranges(operator: Operator, figures: Sequence[Figures]) -> Iterator[Figures]:
    """The figures between one edge and the next."""
    limits = (-math.inf, *operator.edges, math.inf)
    for low, high in pairwise(limits):
        inside = [f for f in figures if low <= _middle(f) < high]
        if inside:
            yield joined(inside)


def _middle(figures: Figures) -> float:
    return figures.first / 2 + figures.last / 2


SIZES = (
    1e-40,
    9.0,
    18.0,
    20.0,
    30.0,
    87.0,
    88.0,
    89.0,
    90.0,
    100.0,
    104.0,
    110.0,
    1000.0,
    math.inf,
)
SPECIAL = (*(-size for size in reversed(SIZES)), -0.0, 0.0, *SIZES)


def described(operator: Operator, figures: Sequence[Figures], count: int) -> Iterator[str]:
    total = joined(figures)
    yield f"== {operator.name}"
    yield _row("all", total)
    for part in ranges(operator, figures):
        yield _row(f"[{part.first:.6g}, {part.last:.6g}]", part)
    low, high = operator.limits
    yield (
        f"  results in [{total.lowest!r}, {total.highest!r}], within "
        f"[{low:g}, {high:g}]: {low <= total.lowest and total.highest <= high}; "
        f"NaN mismatches {total.undefined}; overflow mismatches {total.overflows}; "
        + (f"steps against the direction {total.turns}" if operator.direction else "not monotone")
    )
    with np.errstate(all="ignore"):
        y = operator.kernel()(np.array(SPECIAL, np.float32))
        exact = operator.exact(np.array(SPECIAL))
    pairs = zip(SPECIAL, y, exact, strict=True)
    yield "  f(x): " + "; ".join(f"{x:g}: {float(a):.6g} ({b:.6g})" for x, a, b in pairs)
    yield f"  short arrays: {short_arrays(operator, count)}"
    yield f"  float64: {in_float64(operator, 10 * count)}"
    if operator.is_pair:
        yield f"  second of the pair: {second_of_pair(operator, count)}"
        yield from rows_of_softmax(operator, count)


def _row(name: str, figures: Figures) -> str:
    return (
        f"  {name:38s} absolute {figures.absolute:10.4g} = {figures.absolute / UNIT:10.4g} u "
        f"at {figures.absolute_at:<13.7g} relative {figures.relative:10.4g} = "
        f"{figures.relative / UNIT:10.4g} u at {figures.relative_at:<13.7g} below 2^-126: "
        f"{figures.tiny:10.4g} at {figures.tiny_at:<13.7g} "
        f"by argument {figures.by_argument / UNIT:.4g} u at {figures.by_argument_at:<13.7g} "
        f"by result {figures.by_result / UNIT:.4g} u at {figures.by_result_at:<13.7g} "
        f"turns {figures.turns}"
    )


def units(name: str, figures: Figures) -> float:
    """The largest error of the kind that is stated of this operator, in units of 2^-24."""
    measure = MEASURED_ERRORS[name].measure if name in MEASURED_ERRORS else ErrorMeasure.ABSOLUTE
    return float(getattr(figures, measure.value)) / UNIT


def beside_stated(totals: Mapping[str, Figures]) -> Iterator[str]:
    """A line for each of `MEASURED_ERRORS` that has figures of all values."""
    for name, error in MEASURED_ERRORS.items():
        if name in totals:
            found, stated = units(name, totals[name]), error.stated
            verdict = "ok" if found <= stated else "EXCEEDED"
            yield f"{name} {found:.2f} -> stated {stated:g}, {verdict}"


def machine() -> str:
    flags = ""
    if Path("/proc/cpuinfo").exists():
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        words = next((line for line in lines if line.startswith("flags")), "").split()
        vector = ("sse", "avx", "fma", "amx")
        flags = " ".join(word for word in words if word.startswith(vector))
    return (
        f"ONNX Runtime {onnxruntime.__version__}, numpy {np.__version__}, {platform.platform()}, "
        f"{platform.machine()}, {flags}; u = 2^-24"
    )


def saved(figures: Sequence[Figures], path: Path) -> None:
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(field.name for field in fields(Figures))
        writer.writerows(astuple(row) for row in figures)


def main() -> None:
    names = [operator.name for operator in OPERATORS]
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--operator", nargs="+", choices=names, default=names, metavar="NAME")
    parser.add_argument("--stride", type=int, default=1, metavar="N", help="every Nth value (1)")
    parser.add_argument("--out", type=Path, metavar="DIR", help="each block's figures as CSV")
    args = parser.parse_args()
    print(machine(), f"every {args.stride}th value" if args.stride > 1 else "", flush=True)
    totals = {}
    for operator in OPERATORS:
        if operator.name in args.operator:
            figures = measured(operator, args.stride)
            totals[operator.name] = joined(figures)
            if args.out is not None:
                args.out.mkdir(parents=True, exist_ok=True)
                saved(figures, args.out / f"{operator.name}.csv")
            count = max(1000, SAMPLES // args.stride)
            print("\n".join(described(operator, figures, count)), flush=True)
    print("\n".join(beside_stated(totals)))


if __name__ == "__main__":
    main()
