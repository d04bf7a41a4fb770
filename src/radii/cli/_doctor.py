"""`radii doctor`: what is installed, what the machine allows, and a self-test with known radii."""

from __future__ import annotations

import argparse
import platform
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from radii import __version__
from radii.cli._options import add_json_flag
from radii.cli._output import print_json
from radii.processes import show_size
from radii.terminal import say

if TYPE_CHECKING:
    from radii.testing import (
        DatasetStatus,
        PackageStatus,
        PluginStatus,
        SelfTestStep,
        VerifierStatus,
    )


DESCRIPTION = (
    "Say which packages, verifiers and data sets are here and what the machine "
    "allows, and measure a few radii that are known, through attack, native and milp."
)

EPILOG = """examples:
  radii doctor
  radii doctor --json > doctor.json     to send along with a question

exit codes: 0 radii can do its job here, 1 it cannot
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_json_flag(parser)


def run(args: argparse.Namespace) -> int:
    from radii.cli._main import COMMANDS
    from radii.testing import data_sets, packages, plugins, self_test, tools

    here, installed, data = _machine(), packages(), data_sets()
    lacking = [package.name for package in installed if package.is_lacking]
    verifiers: list[VerifierStatus] = []
    added: list[PluginStatus] = []
    checks: list[SelfTestStep] = []
    if not args.json:
        _print_facts(here, installed, data)
    if not lacking:  # without them nothing below can be tried
        verifiers, added = tools(), plugins(COMMANDS)
        if not args.json:
            say("", "verifiers:")
            for tool in verifiers:
                _print_row(tool.name, tool.refusal, tool.version)
            if added:
                say("", "added by other packages:")
            for plugin in added:
                origin = f"{plugin.family} of {plugin.package}"
                _print_row(plugin.name, plugin.problem, origin)
            say("", "self-test, inputs whose radii are known:")
        checks = self_test(lambda check: None if args.json else _print_check(check))
    is_able = not lacking and all(check.is_passed for check in checks)
    if args.json:
        lists: dict[str, Sequence[Any]] = {
            "packages": installed,
            "verifiers": verifiers,
            **({"plugins": added} if added else {}),
            "data_sets": data,
            "self_test": checks,
        }
        print_json({**here, **lists, "is_able": is_able})
    else:
        able = "radii can do its job here." if is_able else "radii does not work as it should here."
        install = f"radii cannot do its job here: pip install {' '.join(lacking)}"
        say("", install if lacking else able)
    return 0 if is_able else 1


def _machine() -> dict[str, Any]:
    from radii.processes import available_bytes, memory_limit, usable_cores

    return {
        "radii": __version__,
        "python": platform.python_version(),
        "platform": f"{platform.system()} {platform.machine()}",
        "cores": usable_cores(),
        "memory_bytes": memory_limit(),
        "available_bytes": available_bytes(),
    }


def _print_facts(
    here: dict[str, Any], installed: list[PackageStatus], data: list[DatasetStatus]
) -> None:
    from radii.datasets import data_root

    say(f"radii {here['radii']}, Python {here['python']}, {here['platform']}")
    sizes = [
        f"{show_size(here[name])} {text}"
        for name, text in (("memory_bytes", "of memory"), ("available_bytes", "of it free"))
        if here[name] is not None
    ]
    cores = f"{here['cores']} core{'' if here['cores'] == 1 else 's'} to use"
    say(", ".join([cores, *sizes]))
    needed = [f"{p.name} {p.version or 'MISSING'}" for p in installed if p.extra is None]
    say("", f"packages: {', '.join(needed)}")
    for package in installed:
        if package.extra is not None:
            state = package.version or f"not installed: pip install 'radii[{package.extra}]'"
            say(f"  optional  {package.name:<12} {state}")
    say("", f"data sets, in {data_root()}:")
    for one in data:
        state = "in place" if one.is_in_place else one.problem or f"radii data get {one.name}"
        say(f"  {'yes' if one.is_in_place else 'no':<4} {one.name:<14} {state}")


def _print_row(name: str, problem: str | None, about: str | None) -> None:
    """Whether something can be used, and why not."""
    say(f"  {'no' if problem else 'yes':<4} {name:<12} {problem or about}")


def _print_check(check: SelfTestStep) -> None:
    state = "ok" if check.is_passed else "FAILED"
    problem = f": {check.problem}" if check.problem else ""
    say(f"  {state:<7} {check.name}, {check.seconds:.1f} s{problem}", flush=True)
