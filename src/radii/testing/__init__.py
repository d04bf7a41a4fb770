"""For tests: assertions about models, and the suites that plugins and operators pass.

A plugin's author subclasses the suite of its family: `VerifierConformance`, `AttackConformance`,
`SearchConformance`, `ExecutorConformance` or `PropertyConformance`. The networks that they use are
here as well, with radii that are known in closed form. Everything loads on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from radii import load_on_use

_HOMES = {
    "AttackConformance": "_attacks",
    "Check": "_assertions",
    "DatasetStatus": "_diagnosis",
    "Decision": "_assertions",
    "ExecutorConformance": "_executors",
    "LinearClassifier": "_networks",
    "NetworkFamily": "_networks",
    "PackageStatus": "_diagnosis",
    "PluginStatus": "_diagnosis",
    "PropertyConformance": "_properties",
    "RobustnessFailure": "_assertions",
    "SearchConformance": "_searches",
    "SelfTestStep": "_diagnosis",
    "SimulatedInstance": "_searches",
    "Sketch": "_graphs",
    "VerifierConformance": "_verifiers",
    "VerifierStatus": "_diagnosis",
    "assert_robust": "_assertions",
    "check_robustness": "_assertions",
    "data_sets": "_diagnosis",
    "instance_at": "_networks",
    "packages": "_diagnosis",
    "plugins": "_diagnosis",
    "random_instance": "_networks",
    "random_network": "_networks",
    "self_test": "_diagnosis",
    "simulated_witness": "_searches",
    "tools": "_diagnosis",
}

__all__ = [
    "AttackConformance",
    "Check",
    "DatasetStatus",
    "Decision",
    "ExecutorConformance",
    "LinearClassifier",
    "NetworkFamily",
    "PackageStatus",
    "PluginStatus",
    "PropertyConformance",
    "RobustnessFailure",
    "SearchConformance",
    "SelfTestStep",
    "SimulatedInstance",
    "Sketch",
    "VerifierConformance",
    "VerifierStatus",
    "assert_robust",
    "check_robustness",
    "data_sets",
    "instance_at",
    "packages",
    "plugins",
    "random_instance",
    "random_network",
    "self_test",
    "simulated_witness",
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
    from radii.testing._attacks import AttackConformance
    from radii.testing._diagnosis import (
        DatasetStatus,
        PackageStatus,
        PluginStatus,
        SelfTestStep,
        VerifierStatus,
        data_sets,
        packages,
        plugins,
        self_test,
        tools,
    )
    from radii.testing._executors import ExecutorConformance
    from radii.testing._graphs import Sketch
    from radii.testing._networks import (
        LinearClassifier,
        NetworkFamily,
        instance_at,
        random_instance,
        random_network,
    )
    from radii.testing._properties import PropertyConformance
    from radii.testing._searches import SearchConformance, SimulatedInstance, simulated_witness
    from radii.testing._verifiers import VerifierConformance


if not TYPE_CHECKING:  # type checkers see the imports above, and nothing else
    __getattr__ = load_on_use(__name__, _HOMES)
