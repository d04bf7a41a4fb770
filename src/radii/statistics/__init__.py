"""Statistics: a `Run`, read from a store, a table or VERONA's folders, becomes a `Distribution` of
interval-censored radii; from it follow summaries, tests, fits, requirements and estimates.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
