"""What Gurobi's licence on this machine allows. The package loads on use."""

from __future__ import annotations

from functools import lru_cache
from importlib.util import find_spec
from typing import Any

from radii.errors import MissingExtra

__all__ = ["SIZE_LIMIT", "TOO_LARGE", "environment", "gurobi_version", "is_limited", "refusal"]

SIZE_LIMIT = 2000
"""Columns, and rows, that the licence which comes with the package allows."""

TOO_LARGE = 10010
"""Gurobi's error for a model beyond that."""


def gurobi_version() -> str:
    """The version of Gurobi, as stored with results."""
    if find_spec("gurobipy") is None:
        return "Gurobi is not installed"
    import gurobipy

    return f"Gurobi {'.'.join(map(str, gurobipy.gurobi.version()))}"


def refusal() -> str | None:
    """Why Gurobi cannot be used here; None if it can."""
    if find_spec("gurobipy") is None:
        return str(MissingExtra("gurobipy", "gurobi", "verifier 'gurobi'"))
    import gurobipy

    try:
        environment()
    except gurobipy.GurobiError as error:
        return f"verifier 'gurobi' finds no licence: {error}"
    return None


@lru_cache(maxsize=1)
def environment() -> Any:
    """A silent environment, kept for the life of the process: starting one may ask a server."""
    import gurobipy

    made = gurobipy.Env(empty=True)
    made.setParam("OutputFlag", 0)
    made.start()
    return made


@lru_cache(maxsize=1)
def is_limited() -> bool:
    """The licence takes no more than SIZE_LIMIT columns: tried out with one more."""
    import gurobipy

    with gurobipy.Model(env=environment()) as model:
        model.addMVar(SIZE_LIMIT + 1)
        try:
            model.optimize()
        except gurobipy.GurobiError as error:
            return bool(error.errno == TOO_LARGE)
    return False
