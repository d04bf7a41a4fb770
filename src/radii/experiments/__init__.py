"""From a description to brackets: the one place that wires everything together.

Follow one instance from here: `prepare` loads networks and data and selects instances; `Plan.run`
looks at each input itself, starts a search for it, lets `execution.drive` answer the questions, and
stores every result before the search learns of it. Running again starts from what is stored.
"""

from radii.experiments.description import Experiment, Settings, numbers
from radii.experiments.plans import Observer, Plan, default_jobs, plan, prepare

__all__ = [
    "Experiment",
    "Observer",
    "Plan",
    "Settings",
    "default_jobs",
    "numbers",
    "plan",
    "prepare",
]
