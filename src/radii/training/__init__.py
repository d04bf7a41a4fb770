"""Training: regimes, the papers' architectures, and a loop that resumes to the same weights."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
