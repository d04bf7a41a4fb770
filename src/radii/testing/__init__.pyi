from ._assertions import Check, Decision, RobustnessFailure, assert_robust, check_robustness
from ._attacks import AttackConformance
from ._diagnosis import (
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
from ._executors import ExecutorConformance
from ._graphs import Sketch
from ._networks import LinearClassifier, NetworkFamily, instance_at, random_instance, random_network
from ._properties import PropertyConformance
from ._searches import SearchConformance, SimulatedInstance, simulated_witness
from ._verifiers import VerifierConformance

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
