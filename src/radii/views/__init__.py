"""Views: tables, figures, a self-contained page (static or live), a board and a model card."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
