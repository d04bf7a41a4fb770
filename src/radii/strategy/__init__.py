"""Strategy: which question comes next, about which instance, of whom, and for how long.

All of it is pure ask and tell, without processes, files or clocks: a `Search` asks about one
instance, and a `Schedule` lets many of them ask in the order of an `Agenda`. The driver in
`radii.runs` starts what they ask for and tells them what came of it; tests do so on a virtual
clock.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
