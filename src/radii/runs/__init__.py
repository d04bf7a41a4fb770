"""From a description to brackets: the one place that wires everything together.

Follow one instance from here: `prepare` loads networks and data and selects instances; `Plan.run`
looks at each input itself, starts a search for it, lets `drive` answer the questions, and stores
every result before the search learns of it. Running again starts from what is stored. What loads
torch is imported on first use.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
