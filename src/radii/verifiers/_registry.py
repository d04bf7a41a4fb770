"""Verifiers: who decides a query."""

from __future__ import annotations

import inspect

from radii.errors import SpecificationError
from radii.verdicts import FLOAT, Arithmetic
from radii.verifiers._base import Verifier
from radii.verifiers._enumeration import Enumeration
from radii.verifiers._marabou import Marabou
from radii.verifiers._portfolio import Portfolio
from radii.verifiers._vnncomp import VnnComp
from radii.verifiers.milp._gurobi import Gurobi
from radii.verifiers.milp._verifier import Milp
from radii.verifiers.native._verifier import BranchAndBound

VERIFIERS: tuple[type[Verifier], ...] = (
    BranchAndBound,
    Milp,
    Enumeration,
    Gurobi,
    Marabou,
    VnnComp,
)
"""In the order in which the command line lists them."""


def get(name: str, *, arithmetic: Arithmetic | None = None, **options: object) -> Verifier:
    """The verifier called `name`; options that are not given keep their defaults.

    `portfolio:NAME,NAME` races verifiers; each option goes to those of them that have it. An
    arithmetic is given to those that have the choice; one that proves in another alone is refused.
    """
    if arithmetic is not None and has_option(name, "arithmetic"):
        options["arithmetic"] = arithmetic
    made = _made(name, options)
    if arithmetic not in (None, made.arithmetic) and "arithmetic" not in options:
        raise SpecificationError(
            f"arithmetic '{arithmetic}': verifier '{name}' proves {made.arithmetic.scope} alone; "
            f"give '{made.arithmetic}', or choose another verifier"
        )
    return made


def arithmetic_of(name: str, asked: Arithmetic | None = None) -> Arithmetic:
    """What the verifier called `name` proves in, asked for `asked`: if it may choose, float."""
    return asked or (FLOAT if has_option(name, "arithmetic") else _kind_of(name).arithmetic)


def _made(name: str, options: dict[str, object]) -> Verifier:
    family, _, names = name.partition(":")
    if family == Portfolio.name:
        return _portfolio(names.split(","), options)
    kind = _kind(name)
    for option in options:
        if option not in inspect.signature(kind).parameters:
            raise SpecificationError(f"verifier '{name}' has no option '{option}'")
    return kind(**options)


def has_option(name: str, option: str) -> bool:
    """Whether the verifier called `name`, or one of the portfolio of that name, has the option."""
    family, _, names = name.partition(":")
    several = names.split(",") if family == Portfolio.name else [name]
    return any(option in inspect.signature(_kind(each)).parameters for each in several)


def _kind(name: str) -> type[Verifier]:
    for verifier in VERIFIERS:
        if verifier.name == name:
            return verifier
    names = ", ".join(verifier.name for verifier in VERIFIERS)
    raise SpecificationError(f"verifier '{name}' is not one of {names}, portfolio:NAME,NAME")


def _kind_of(name: str) -> type[Verifier]:
    """As `_kind`, portfolios included."""
    return Portfolio if name.partition(":")[0] == Portfolio.name else _kind(name)


def _portfolio(names: list[str], options: dict[str, object]) -> Portfolio:
    known = {name: inspect.signature(_kind(name)).parameters for name in names}
    for option in options:
        if not any(option in parameters for parameters in known.values()):
            raise SpecificationError(f"no verifier of the portfolio has an option '{option}'")
    return Portfolio(
        [
            _made(name, {key: value for key, value in options.items() if key in known[name]})
            for name in names
        ]
    )


# The devices that torch can compute on here.


def check_device(name: str) -> None:
    """A SpecificationError unless torch can compute on the device called `name`."""
    import torch

    try:
        is_real = torch.device(name).type != "meta"  # which has shapes, but no values
        torch.ones(1, device=name).add(1).cpu()
    except Exception:  # each back end raises its own kind when it is not there
        is_real = False
    if not is_real:
        raise SpecificationError(f"device '{name}' is not one of {', '.join(_devices())} here")


def _devices() -> list[str]:
    import torch

    found = torch.accelerator.current_accelerator(check_available=True)
    return ["cpu"] if found is None else ["cpu", found.type]
