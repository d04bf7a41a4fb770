from . import attacks, datasets, ensembles, problem, statistics, training, verifiers, views
from .api import robustness_distribution
from .datasets import Dataset
from .networks import Network, from_foolbox, from_sklearn, from_torch, load_network
from .problem import Bracket, Domain, Grid, Instance, Norm, Query, Verdict
from .statistics import Distribution

__version__: str

__all__ = [
    "Bracket",
    "Dataset",
    "Distribution",
    "Domain",
    "Grid",
    "Instance",
    "Network",
    "Norm",
    "Query",
    "Verdict",
    "__version__",
    "attacks",
    "datasets",
    "ensembles",
    "from_foolbox",
    "from_sklearn",
    "from_torch",
    "load_network",
    "problem",
    "robustness_distribution",
    "statistics",
    "training",
    "verifiers",
    "views",
]
