"""From the name of a verifier to the verifier; and the devices that it can compute on."""

from __future__ import annotations

import inspect

from radii.errors import SpecificationError
from radii.plugins import (
    PluginGroup,
    load_plugin_class,
    made_with_options,
    options_from_text,
    plugin_names,
)
from radii.problem import FLOAT, Arithmetic
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

    `name` is one of radii's own, one that another package declares, or either with options, as
    `Verifier.spec` writes them. `portfolio:NAME,NAME` races verifiers; each option goes to those of
    them that have it. An arithmetic is given to those that have the choice; one that proves in
    another alone is refused.
    """
    if arithmetic is not None and has_option(name, "arithmetic"):
        options["arithmetic"] = arithmetic
    verifier = _make(name, options)
    members = verifier.members if isinstance(verifier, Portfolio) else (verifier,)
    for each in members if arithmetic not in (None, verifier.arithmetic) else ():
        if each.arithmetic == verifier.arithmetic:
            raise SpecificationError(
                f"arithmetic '{arithmetic}': verifier '{each.spec}' proves "
                f"{each.arithmetic.scope} alone; give '{each.arithmetic}', or choose "
                "another verifier"
            )
    return verifier


def verifier_names() -> tuple[str, ...]:
    """Radii's own and those of other packages, without portfolios."""
    own = tuple(verifier.name for verifier in VERIFIERS)
    return (*own, *(name for name in plugin_names(PluginGroup.VERIFIERS) if name not in own))


def arithmetic_of(name: str, asked: Arithmetic | None = None) -> Arithmetic:
    """What the verifier called `name` proves in, asked for `asked`: if it may choose, float.

    For a portfolio that is the weakest arithmetic of its members.
    """
    if asked is not None:
        return asked
    if _is_portfolio(name):
        each = map(arithmetic_of, name.partition(":")[2].split(","))
        return min(each, key=lambda one: one.strength)
    return FLOAT if has_option(name, "arithmetic") else _kind_of(name).arithmetic


def has_option(name: str, option: str) -> bool:
    """Whether the verifier called `name`, or one of the portfolio of that name, has the option."""
    members = name.partition(":")[2].split(",") if _is_portfolio(name) else [name]
    return any(option in inspect.signature(_kind_of(each)).parameters for each in members)


def _make(name: str, options: dict[str, object]) -> Verifier:
    if _is_portfolio(name):
        return _make_portfolio(name.partition(":")[2].split(","), options)
    text = name.partition(":")[2]
    given = options_from_text(f"verifier '{name}'", text) if text else {}
    return made_with_options(f"verifier '{name}'", _kind_of(name), {**given, **options})


def _make_portfolio(names: list[str], options: dict[str, object]) -> Portfolio:
    known = {name: inspect.signature(_kind_of(name)).parameters for name in names}
    for option in options:
        if not any(option in parameters for parameters in known.values()):
            raise SpecificationError(f"no verifier of the portfolio has an option '{option}'")
    return Portfolio(
        [
            _make(name, {key: value for key, value in options.items() if key in known[name]})
            for name in names
        ]
    )


def _is_portfolio(name: str) -> bool:
    return name.partition(":")[0] == Portfolio.name


def _kind_of(name: str) -> type[Verifier]:
    """The class of a verifier that is no portfolio; options behind its name do not matter."""
    bare = name.partition(":")[0]
    for verifier in VERIFIERS:
        if verifier.name == bare:
            return verifier
    plugin = load_plugin_class(PluginGroup.VERIFIERS, bare, Verifier)  # type: ignore[type-abstract]
    if plugin is not None:
        return plugin
    names = ", ".join(verifier_names())
    raise SpecificationError(f"verifier '{name}' is not one of {names}, portfolio:NAME,NAME")


def check_device(name: str) -> None:
    """A SpecificationError unless torch can compute on the device called `name`."""
    import torch

    try:
        is_real = torch.device(name).type != "meta"  # which has shapes, but no values
        torch.ones(1, device=name).add(1).cpu()
    except Exception:  # each back end raises its own kind when it is not there
        is_real = False
    if not is_real:
        here = f"device '{name}' is not one of {', '.join(_devices())} here"
        raise SpecificationError(here + _what_is_missing(name.partition(":")[0]))


def _what_is_missing(kind: str) -> str:
    """Why a device of that kind is not there, and what would bring it; empty if unknown."""
    import torch

    if kind == "cuda" and torch.version.cuda is None and torch.version.hip is None:
        return f": PyTorch {torch.__version__} is built without CUDA; install a build that has it"
    if kind == "cuda" and not torch.cuda.is_available():
        return (
            f": PyTorch {torch.__version__} is built for CUDA {torch.version.cuda}, but finds no "
            "NVIDIA GPU and driver (nvidia-smi lists them)"
        )
    if kind == "cuda":
        return f": there are {torch.cuda.device_count()} GPUs, numbered from cuda:0"
    if kind == "mps":
        return ": mps is the GPU of a Mac with Apple silicon"
    return ""


def _devices() -> list[str]:
    import torch

    accelerator = torch.accelerator.current_accelerator(check_available=True)
    return ["cpu"] if accelerator is None else ["cpu", accelerator.type]
