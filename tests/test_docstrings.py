"""No docstring holds code, but for examples: pasted by accident, nothing else would find it.

Examples to copy stand in the docstrings of modules, as paragraphs that Python or TOML reads whole.
"""

from __future__ import annotations

import ast
import re
import textwrap
import tomllib
from collections.abc import Iterator
from contextlib import suppress

import pytest

from test_documentation import ROOT, by_name
from test_imports import nodes_of, tree_of

SOURCES = ("src", "papers/src")
NOT_IN_FORMULAS = (ast.Attribute, ast.Lambda, ast.keyword, ast.JoinedStr)
"""Parts of an expression that make `a = b` a line of code; without them it may be a formula."""

MAY_BE_STATEMENT = re.compile(
    r"[=:]|^\s*(?:assert|break|continue|del|from|global|import|nonlocal|pass|raise|return)\b"
)
"""What every statement has that is not an expression; parsing each line of prose takes seconds."""


def docstrings(module: ast.Module) -> Iterator[tuple[str, str]]:
    """All docstrings with the name of what they are of."""
    for node in nodes_of(module):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            name = "" if isinstance(node, ast.Module) else node.name
            yield name, ast.get_docstring(node) or ""


def is_code(line: str) -> bool:
    """It is a statement, whole or the head of one; names, expressions and formulas are not."""
    if not MAY_BE_STATEMENT.search(line):
        return False
    for text in (line, f"{line} pass"):
        try:
            (statement,) = ast.parse(text.strip()).body
        except (SyntaxError, ValueError):
            continue
        if isinstance(statement, ast.Assign):
            return any(isinstance(part, NOT_IN_FORMULAS) for part in ast.walk(statement))
        return not isinstance(statement, ast.Expr)
    return False


def is_example(paragraph: str) -> bool:
    text = textwrap.dedent(paragraph)
    for reader in (ast.parse, tomllib.loads):
        with suppress(SyntaxError, ValueError):
            reader(text)
            return True
    return False


def pasted(text: str, *, may_have_examples: bool) -> list[str]:
    """The lines of a docstring that are code and belong to no example."""
    return [
        line
        for paragraph in text.split("\n\n")
        if not (may_have_examples and is_example(paragraph))
        for line in paragraph.splitlines()
        if is_code(line)
    ]


def test_no_docstring_holds_pasted_code() -> None:
    offenders = [
        f"{by_name(path)}: {name or 'the module'}: {line.strip()}"
        for top in SOURCES
        for path in sorted((ROOT / top).rglob("*.py"))
        for name, text in docstrings(tree_of(path))
        for line in pasted(text, may_have_examples=not name)
    ]
    assert not offenders, "\n".join(["", *offenders])


@pytest.mark.parametrize(
    "line", ["weakest = min(spoken, key=lambda one: one.arithmetic)", "return x", "for x in y:"]
)
def test_code_is_recognised(line: str) -> None:
    assert pasted(f"What it says.\n\n{line}", may_have_examples=False) == [line]


@pytest.mark.parametrize("line", ["s = u / (u - l)", "z = A(v) + e, |e| <= E", "real", "a word"])
def test_words_and_formulas_are_not_code(line: str) -> None:
    assert not is_code(line)
