"""Data sets: embedded digits, published sets in their official formats, and files of your own."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
