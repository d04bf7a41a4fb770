"""For tests: assertions about models, and conformance suites that plugins and operators pass."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

_HOMES = {
    "Check": "_assertions",
    "DatasetStatus": "_diagnosis",
    "Decision": "_assertions",
    "PackageStatus": "_diagnosis",
    "RobustnessFailure": "_assertions",
    "SelfTestStep": "_diagnosis",
    "VerifierStatus": "_diagnosis",
    "assert_robust": "_assertions",
    "check_robustness": "_assertions",
    "data_sets": "_diagnosis",
    "packages": "_diagnosis",
    "self_test": "_diagnosis",
    "tools": "_diagnosis",
}

__all__ = [
    "Check",
    "DatasetStatus",
    "Decision",
    "PackageStatus",
    "RobustnessFailure",
    "SelfTestStep",
    "VerifierStatus",
    "assert_robust",
    "check_robustness",
    "data_sets",
    "packages",
    "self_test",
    "tools",
]

if TYPE_CHECKING:
    from radii.testing._assertions import (
        Check,
        Decision,
        RobustnessFailure,
        assert_robust,
        check_robustness,
    )
    from radii.testing._diagnosis import (
        DatasetStatus,
        PackageStatus,
        SelfTestStep,
        VerifierStatus,
        data_sets,
        packages,
        self_test,
        tools,
    )


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
