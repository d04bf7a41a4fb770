"""Reading VNN-LIB: what files say, and one sentence for what they should not say."""

from __future__ import annotations

import gzip
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from radii.errors import SpecificationError
from radii.problem import Specification
from radii.vnnlib import Problem, parse_problem, read_problem
from radii.vnnlib import _expressions as expressions
from radii.vnnlib import _problems as problems
from radii.vnnlib._expressions import ItemRun, read_forms
from radii.vnnlib._formulas import Conjunction, Constraint, Disjunction, Formula, one_by_one
from radii.vnnlib._terms import Alternatives, Comparisons

DECLARED = """; two inputs, three outputs
(declare-const X_0 Real)
(declare-const X_1 Real)
(declare-const Y_0 Real)
(declare-const Y_1 Real)
(declare-const Y_2 Real)
"""
BOX = "(assert (and (>= X_0 0) (<= X_0 1) (>= X_1 -0.5) (<= X_1 0.5)))\n"


def problem(asserted: str, *, box: str = BOX) -> Problem:
    return parse_problem(DECLARED + box + asserted, name="p.vnnlib")


def only(found: tuple[Specification, ...]) -> Specification:
    assert len(found) == 1
    return found[0]


def rows(specification: Specification) -> list[list[list[float]]]:
    """Each polyhedron as its rows [coefficients..., offset]."""
    violations = specification.requirement.violations
    assert violations is not None
    return [np.column_stack([p.matrix, p.offset]).tolist() for p in violations]


def test_a_box_and_a_disjunction_of_outputs() -> None:
    text = "(assert (or (and (<= Y_0 Y_1))\n (and (>= Y_2 Y_0) (<= Y_1 1e-3))))"
    found = only(problem(text).specifications((1, 2)))
    low, high = found.region.box()
    assert low.tolist() == [[0.0, -0.5]]
    assert high.tolist() == [[1.0, 0.5]]
    assert found.inputs is None
    assert rows(found) == [[[1, -1, 0, 0]], [[1, 0, -1, 0], [0, 1, 0, -1e-3]]]


@pytest.mark.parametrize(
    ("comparison", "row"),
    [
        ("(<= Y_0 0.5)", [1, 0, 0, -0.5]),
        ("(>= Y_0 0.5)", [-1, 0, 0, 0.5]),
        ("(<= 0.5 Y_0)", [-1, 0, 0, 0.5]),
        ("(>= .5 Y_0)", [1, 0, 0, -0.5]),
        ("(<= Y_0 (- 0.5))", [1, 0, 0, 0.5]),
        ("(<= (- Y_0) -5e-1)", [-1, 0, 0, 0.5]),
        ("(<= (- Y_0 Y_1) 0)", [1, -1, 0, 0]),
        ("(< Y_0 +2.)", [1, 0, 0, -2]),
        ("(not (> Y_0 2))", [1, 0, 0, -2]),
        ("(not (<= Y_0 2))", [-1, 0, 0, 2]),
        ("(<= (+ (* 2 Y_0) (* Y_1 3 -1) 4) (+ Y_2 1))", [2, -3, -1, 3]),
        ("(>= (* 2 (+ Y_0 (- Y_1 Y_2 0.25))) 0)", [-2, -2, 2, 0.5]),
        ("(<= (/ Y_0 4) (* 0.5 0.5))", [0.25, 0, 0, -0.25]),
        ("(<= (+ Y_0 Y_1 (- Y_1)) 0)", [1, 0, 0, 0]),
    ],
)
def test_comparisons(comparison: str, row: list[float]) -> None:
    found = only(problem(f"(assert {comparison})").specifications((2,)))
    assert rows(found) == [[row]]


def test_equality_and_chains() -> None:
    equal = only(problem("(assert (= Y_0 1))").specifications((2,)))
    assert rows(equal) == [[[1, 0, 0, -1], [-1, 0, 0, 1]]]
    chained = only(problem("(assert (<= 0 Y_0 Y_1))").specifications((2,)))
    assert rows(chained) == [[[-1, 0, 0, 0], [1, -1, 0, 0]]]
    unequal = only(problem("(assert (not (= Y_0 1)))").specifications((2,)))
    assert rows(unequal) == [[[1, 0, 0, -1]], [[-1, 0, 0, 1]]]
    implied = only(problem("(assert (=> (<= Y_0 0) (<= Y_1 0)))").specifications((2,)))
    assert rows(implied) == [[[-1, 0, 0, 0]], [[0, 1, 0, 0]]]


def test_boxes_inside_disjuncts_are_grouped_by_box() -> None:
    text = """(assert (or
      (and (>= X_0 0) (<= X_0 0.25) (>= X_1 0) (<= X_1 1) (<= Y_0 Y_1))
      (and (>= X_0 0.5) (<= X_0 0.75) (>= X_1 0) (<= X_1 1) (<= Y_0 Y_2))
      (and (>= X_0 0) (<= X_0 0.25) (>= X_1 0) (<= X_1 1) (<= Y_1 Y_2))))"""
    first, second = problem(text, box="").specifications((2,))
    assert first.region.box()[1].tolist() == [0.25, 1.0]
    assert rows(first) == [[[1, -1, 0, 0]], [[0, 1, -1, 0]]]
    assert second.region.box()[0].tolist() == [0.5, 0.0]
    assert rows(second) == [[[1, 0, -1, 0]]]


def test_disjuncts_without_inputs_vanish() -> None:
    text = "(assert (or (and (>= X_0 2) (<= Y_0 0)) (and (>= X_0 0.5) (<= Y_0 1))))"
    assert rows(only(problem(text).specifications((2,)))) == [[[1, 0, 0, -1]]]
    assert problem("(assert (>= X_0 2)) (assert (<= Y_0 0))").specifications((2,)) == ()
    assert problem("(assert (<= 1 0))").specifications((2,)) == ()
    assert problem("(assert (or))").specifications((2,)) == ()
    assert problem("(assert false)").specifications((2,)) == ()


def test_a_disjunct_without_outputs_is_violated_everywhere() -> None:
    found = only(problem("(assert (<= X_0 0.5)) (assert true)").specifications((2,)))
    outputs = np.array([[0.0, 0.0, 0.0], [1e9, -1e9, 3.0]])
    assert not found.requirement.holds(outputs, 0.0).any()


def test_linear_input_constraints_cut_the_box() -> None:
    found = only(problem("(assert (<= (+ X_0 (* 2 X_1)) 0.5))").specifications((2, 1)))
    assert found.inputs is not None
    assert found.inputs.matrix.tolist() == [[1, 2]]
    assert found.inputs.offset.tolist() == [-0.5]
    assert found.contains(np.array([[0.5], [0.0]]))
    assert not found.contains(np.array([[0.5], [0.25]]))


def test_scaled_bounds_lose_no_value() -> None:
    """0.3 / 3 is not a float64: the bound is the float64 just above it, and is checked exactly."""
    text = "(assert (<= (* 3 X_0) 0.3)) (assert (<= Y_0 0))"
    read = problem(text)
    high = only(read.specifications((2,))).region.box()[1][0]
    assert high == 0.1
    assert read.is_solved_by([np.nextafter(0.1, 0), 0], [0, 0, 0])
    assert not read.is_solved_by([0.1, 0], [0, 0, 0])


def test_bounds_are_the_float64_of_the_decimals() -> None:
    text = "(assert (>= X_0 0.1)) (assert (<= X_0 0.1)) (assert (<= Y_0 0))"
    low, high = only(problem(text).specifications((2,))).region.box()
    assert low[0] == high[0] == 0.1


def test_the_formula_itself_is_strict() -> None:
    read = problem("(assert (< X_0 0.5)) (assert (> Y_0 Y_1))")
    assert read.strict
    assert read.is_solved_by([0.25, 0.0], [1.0, 0.0, 0.0])
    assert not read.is_solved_by([0.5, 0.0], [1.0, 0.0, 0.0])
    assert not read.is_solved_by([0.25, 0.0], [1.0, 1.0, 0.0])
    assert not read.is_solved_by([0.25, np.nan], [1.0, 0.0, 0.0])
    closed = only(read.specifications((2,)))
    inner = only(read.specifications((2,), slack=1e-3))
    assert closed.region.box()[1][0] == 0.5
    assert inner.region.box()[1][0] == 0.499
    assert rows(inner) == [[[-1, 1, 0, 1e-3]]]


def test_other_commands_and_declarations() -> None:
    text = """(set-logic QF_LRA) (declare-fun X_0 () Real) (declare-fun Y_0 () Real)
    (assert (<= 0 X_0 1)) (assert (<= Y_0 X_1_not_here)) (check-sat)"""
    with pytest.raises(SpecificationError, match="X_1_not_here"):
        parse_problem(text)
    read = parse_problem(text.replace("X_1_not_here", "1"))
    assert (read.variables.inputs.size, read.variables.outputs.size) == (1, 1)


def test_deep_and_wide_nesting() -> None:
    deep = 5_000
    nested = "(and (<= Y_0 1) (or " * deep + "(<= Y_1 0)" + "))" * deep
    read = problem(f"(assert {nested})")
    assert only(read.specifications((2,)))
    assert read.is_solved_by([0, 0], [1, 0, 0])
    assert not read.is_solved_by([0, 0], [2, 0, 0])
    summed = "(+ 1 " * deep + "Y_0" + ")" * deep
    assert rows(only(problem(f"(assert (<= {summed} 0))").specifications((2,)))) == [
        [[1, 0, 0, deep]]
    ]
    wide = " ".join(f"(and (<= Y_0 {k}))" for k in range(5000))
    assert len(rows(only(problem(f"(assert (or {wide}))").specifications((2,))))) == 5000


def test_too_many_disjuncts_are_refused() -> None:
    choices = "(assert (or (<= Y_0 0) (<= Y_1 0)))" * 20
    with pytest.raises(SpecificationError, match="more than 100000 disjuncts"):
        problem(choices).specifications((2,))


def test_image_sized_files_are_read_at_once() -> None:
    lines = [f"(declare-const X_{i} Real)" for i in range(3072)]
    lines += [f"(declare-const Y_{i} Real)" for i in range(10)]
    for i in range(3072):
        lines += [f"; pixel {i}", f"(assert (<= X_{i} 0.75{i}))", "", f"(assert (>= X_{i} 0.5{i}))"]
    lines += ["(assert (or", *(f"(and (>= Y_{j} Y_0))" for j in range(1, 10)), "))"]
    started = time.process_time()
    found = only(parse_problem("\n".join(lines)).specifications((3, 32, 32)))
    assert time.process_time() - started < 1.0
    assert len(rows(found)) == 9


@pytest.mark.parametrize("suffix", [".vnnlib", ".vnnlib.gz"])
def test_files_may_be_gzipped(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"p{suffix}"
    content = (DECLARED + BOX + "(assert (<= Y_0 0))").encode()
    path.write_bytes(gzip.compress(content) if suffix.endswith("gz") else content)
    assert only(read_problem(path).specifications((2,)))


def test_unreadable_files(tmp_path: Path) -> None:
    with pytest.raises(SpecificationError, match=r"none\.vnnlib does not exist"):
        read_problem(tmp_path / "none.vnnlib")
    with pytest.raises(SpecificationError, match="cannot be read"):
        read_problem(tmp_path)
    truncated = tmp_path / "cut.vnnlib.gz"
    truncated.write_bytes(gzip.compress(DECLARED.encode() * 50)[:-20])
    with pytest.raises(SpecificationError, match="damaged gzip"):
        read_problem(truncated)
    binary = tmp_path / "net.onnx"
    binary.write_bytes(b"\x08\x07\xff\xfe")
    with pytest.raises(SpecificationError, match="not a text file"):
        read_problem(binary)


@pytest.mark.parametrize(
    ("asserted", "sentence"),
    [
        ("(assert (<= Y_0 0)", r"line 8: '\(' is never closed"),
        ("(assert (<= Y_0 0)))", r"line 8: '\)' closes nothing"),
        ("hello", "line 8: 'hello' stands alone"),
        ("(assert (<= Y_7 0))", "line 8: 'Y_7' is neither a number nor a declared variable"),
        ("(assert (<= Y_0 NaN))", "'NaN' is neither a number nor a declared variable"),
        ("(assert (<= Y_0 1e999))", "1e999 is too large"),
        ("(assert (<= Y_0 1_000))", "'1_000' is neither"),
        ("(assert (< Y_0))", "is not a comparison"),
        ("(assert ())", "is not a comparison"),
        ("(assert Y_0)", "'Y_0' is not a condition"),
        ("(assert (let ((a 1)) a))", r"'\(let \(\(a 1\)\) a\)' is not a comparison"),
        ("(assert (<= (max Y_0 Y_1) 0))", r"'\(max Y_0 Y_1\)' is not a sum"),
        ("(assert (<= (* Y_0 Y_1) 0))", "product of two variables"),
        ("(assert (<= (/ 1 Y_0) 0))", "division by a variable"),
        ("(assert (<= (/ Y_0 0) 0))", "division by zero"),
        ("(assert (<= X_0 Y_0))", r"'\(<= X_0 Y_0\)' compares inputs with outputs"),
        ("(assert (<= Y_0 0) (<= Y_1 0))", "is not a declaration or an assertion"),
        ("(push 1)", "is not a declaration or an assertion"),
        ("(declare-const Y_0 Real)", "'Y_0' is declared twice"),
        ("(declare-const Z_0 Real)", "'Z_0' is neither an input"),
        ("(declare-const Y_3 Int)", "does not declare a Real"),
        ("(declare-const Y_4 Real)", "Y_4 is declared but Y_3 is not"),
        ("(vnnlib-version <3.0>)", "version <3.0> is not one of"),
    ],
)
def test_malformed_files_get_one_sentence(asserted: str, sentence: str) -> None:
    with pytest.raises(SpecificationError, match=sentence) as caught:
        problem(asserted)
    assert str(caught.value).startswith("p.vnnlib: ")
    assert "\n" not in str(caught.value)


def test_missing_parts() -> None:
    with pytest.raises(SpecificationError, match="no variable X_0 is declared"):
        parse_problem("(assert (<= X_0 0))")
    with pytest.raises(SpecificationError, match="nothing is asserted"):
        parse_problem(DECLARED)
    unbounded = problem("(assert (<= Y_0 0))", box="(assert (>= X_0 0)) (assert (<= 0 X_1 1))")
    with pytest.raises(SpecificationError, match="input X_0 has no upper bound"):
        unbounded.specifications((2,))


TWO = """(vnnlib-version <2.0>)
(declare-network net
  (declare-input  image float32 [1, 2])   ; row-major
  (declare-output logits float32 [1,3] "out")
)
(assert (and (>= image[0,0] 0.0) (<= image [0, 0] 1.0)))
(assert (and (>= image[0,1] -0.5) (<= image[0,1] 0.5)))
(assert (or (<= logits[0,0] logits[0,1]) (== logits[0,2] 1.0)))
"""


def test_version_two() -> None:
    read = parse_problem(TWO)
    found = only(read.specifications((2,)))
    assert found.region.box()[0].tolist() == [0.0, -0.5]
    assert rows(found) == [[[1, -1, 0, 0]], [[0, 0, 1, -1], [0, 0, -1, 1]]]
    read.check_fits((2,), 3, np.float32)
    with pytest.raises(SpecificationError, match="type float32, but the network has float64"):
        read.check_fits((2,), 3, np.float64)
    parse_problem(TWO.replace("float32", "Real")).check_fits((2,), 3, np.float64)


def test_version_two_scalars() -> None:
    text = """(declare-network f (declare-input X real [2]) (declare-output Y real []))
    (assert (<= 0 X[0] 1)) (assert (<= 0 X[1] 1)) (assert (!= Y 0.5))"""
    found = only(parse_problem(text).specifications((2,)))
    assert rows(found) == [[[1, -0.5]], [[-1, 0.5]]]
    assert parse_problem(text.replace("Y 0", "Y[0] 0")).specifications((2,))


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        (
            "(declare-output",
            '(declare-hidden h float32 [1] "h") (declare-output',
            "'declare-hidden'",
        ),
        ("(declare-output", "(declare-input Z float32 [1]) (declare-output", "2 declare-inputs"),
        ("(declare-output", "(equal-to other) (declare-output", "'equal-to'"),
        ("(declare-output", "(declare-weights", "does not declare an input or output"),
        ("(declare-network net", "(declare-network other) (declare-network net", "2 networks"),
        ("logits float32", "logits int8", "element type 'int8' of logits"),
        ("[1, 2]", "[1, n]", "needs a type and a shape"),
        ("[1, 2]", "", "needs a type and a shape"),
        ("image [0, 0]", "image[0]", r"'image\[0\]' is neither"),
        ("image [0, 0]", "image[0,2]", r"'image\[0,2\]' is neither"),
        ("<2.0>)", "<2.0>) (declare-const X_0 Real)", "do not mix"),
        ("logits", "image", "the same"),
    ],
)
def test_what_version_two_cannot_do(old: str, new: str, sentence: str) -> None:
    with pytest.raises(SpecificationError, match=sentence):
        parse_problem(TWO.replace(old, new))


def test_the_variables_must_be_the_networks() -> None:
    read = problem("(assert (<= Y_0 0))")
    read.check_fits((1, 1, 2), 3, np.float32)
    with pytest.raises(SpecificationError, match="declares 2 inputs, but the network has 4"):
        read.check_fits((1, 2, 2), 3, np.float32)
    with pytest.raises(SpecificationError, match="declares 3 outputs, but the network has 10"):
        read.check_fits((2,), 10, np.float32)
    shaped = """(declare-network f (declare-input X real [1,3,4]) (declare-output Y real [1]))
    (assert (<= Y[0] 0))"""
    parse_problem(shaped).check_fits((3, 4), 1, np.float32)
    parse_problem(shaped).check_fits((12,), 1, np.float32)
    with pytest.raises(
        SpecificationError, match=r"shape \[1, 3, 4\], but the network's is \[4, 3\]"
    ):
        parse_problem(shaped).check_fits((4, 3), 1, np.float32)


WORDS = [
    "(",
    ")",
    "[",
    "]",
    ";",
    "\n",
    '"',
    "assert",
    "and",
    "or",
    "not",
    "=>",
    "<=",
    "=",
    "+",
    "*",
]
WORDS += ["/", "X_0", "Y_0", "X_0[0]", "1e400", "0.5", "true", "declare-const", "Real", "<2.0>"]
WORDS += ["declare-network", "declare-input", "declare-output", "float32[1]", "vnnlib-version"]


@settings(max_examples=300, deadline=None)
@given(
    base=st.sampled_from([DECLARED + BOX + "(assert (or (<= Y_0 0) (= Y_1 Y_2)))", TWO]),
    start=st.floats(0, 1),
    length=st.integers(0, 30),
    inserted=st.lists(st.sampled_from(WORDS), max_size=8),
)
def test_damaged_files_never_crash(
    base: str, start: float, length: int, inserted: list[str]
) -> None:
    first = int(start * len(base))
    damaged = base[:first] + " ".join(inserted) + base[first + length :]
    try:
        parse_problem(damaged, name="d").specifications((2,))
    except SpecificationError as error:
        assert str(error).startswith("d: ")


def large(shape: str) -> tuple[str, int]:
    """A file of one of the shapes that large files have, and how many comparisons it holds."""
    declared = [f"(declare-const {kind}_{i} Real)" for kind in "XY" for i in range(300)]
    bounds = [f"({relation} X_{i} {i}.5e-3)" for i in range(300) for relation in ("<=", "<")]
    lines = {
        "assertions": [f"(assert {bound})  ; (assert (<= X_0 -9))" for bound in bounds],
        "one conjunction": ["(assert (and", *bounds, "))"],
        "alternatives": ["(assert (or", *(f"(and {bound} (<= Y_0 Y_1))" for bound in bounds), "))"],
        "comparisons": ["(assert (or", *bounds, "))"],
    }
    return "\n".join([*declared, *lines[shape]]), len(bounds) * (1 + (shape == "alternatives"))


@pytest.mark.parametrize("shape", ["assertions", "one conjunction", "alternatives", "comparisons"])
def test_large_files_are_read_in_columns(shape: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not one by one, which takes eight times as long, and as one by one."""
    text, count = large(shape)
    with monkeypatch.context() as patched:
        patched.setattr(ItemRun, "forms", lambda _: pytest.fail("a run was taken apart"))
        read = parse_problem(text)
    monkeypatch.setattr(problems, "read_pieces", read_forms)
    plain = parse_problem(text)
    assert len(list(constraints(plain.formula))) == count
    assert list(constraints(read.formula)) == list(constraints(plain.formula))
    for inputs in (np.zeros(300), np.arange(300) * 1e-3 + 5e-4, np.ones(300)):
        for outputs in (np.zeros(300), np.arange(300, 0, -1)):
            told = (each.is_solved_by(inputs, outputs) for each in (read, plain))
            assert len(set(told)) == 1


def constraints(formula: Formula) -> Iterator[Constraint]:
    match formula:
        case Constraint():
            yield formula
        case Comparisons():
            yield from one_by_one(formula)
        case Alternatives():
            for comparisons in formula:
                yield from one_by_one(comparisons)
        case Conjunction(parts) | Disjunction(parts):
            for part in parts:
                yield from constraints(part)


PIECES = [
    "(<= X_0 0.5)",
    "(>= X_1 -0.25)",
    "(< Y_0 Y_1)",
    "(> 1e-3 Y_2)",
    "( <=\tX_1 ;(<= X_0 9)\n 1)",
    "(<= X_0 X_0)",
    "(<= 1 2)",
    "(<= 0 X_0 1)",
    "(not (<= Y_0 1))",
    "(<= X_0 Y_0)",
    "(<= Y_9 0)",
    "(<= X_0 1_0)",
    "(<= X_0 1e999)",
]
COMMON = 5
"""So many of the pieces are what files mostly have."""
piece = st.one_of(st.sampled_from(PIECES[:COMMON]), st.sampled_from(PIECES))
conjunction = st.lists(piece, min_size=1, max_size=6).map(lambda p: f"(and {' '.join(p)})")
part = st.one_of(
    piece,
    conjunction,
    st.lists(conjunction, min_size=1, max_size=6).map(lambda p: f"(or {' '.join(p)})"),
    st.lists(conjunction, max_size=3).map(lambda p: f"(not (and {' '.join(p)}))"),
    st.lists(piece, min_size=1, max_size=6).map(lambda p: f"(or {' '.join(p)})"),
)


def told(text: str) -> object:
    """All that can be found out about a file."""
    try:
        read = parse_problem(text, name="p")
        found = read.specifications((2,))
    except SpecificationError as error:
        return str(error)
    boxes = [np.stack(specification.region.box()).tolist() for specification in found]
    points = np.random.default_rng(0).uniform(-1, 1, (20, 5)).round(1)
    solved = [read.is_solved_by(point[:2], point[2:]) for point in points]
    return read.strict, boxes, [rows(specification) for specification in found], solved


@settings(max_examples=200, deadline=None)
@given(asserted=st.lists(part, min_size=1, max_size=8), blank=st.sampled_from([" ", "\n", "\n\n"]))
def test_columns_change_nothing(asserted: list[str], blank: str) -> None:
    """Also which error is told, and its line, whether or not runs are read in columns."""
    text = DECLARED + BOX + blank.join(f"(assert {part})" for part in asserted)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(expressions, "WORTH_CHARACTERS", 1)
        in_columns = told(text)
        patched.setattr(problems, "read_pieces", read_forms)
        assert in_columns == told(text)
