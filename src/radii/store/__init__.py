"""Where an experiment's results live: one SQLite file in its directory.

A result is on disk when `Store.record` returns. The file can be read while a run writes it.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
