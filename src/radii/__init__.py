"""radii measures how robust a neural network really is.

For every input: the radius within which its prediction provably holds, and a concrete
counterexample just outside it. Heavy packages (torch, matplotlib, onnx) load on first use.

PYTEST_DONT_REWRITE: radii brings a pytest plugin, and pytest warns of a package with one that was
imported before pytest started; this keeps it from doing so.
"""

import lazy_loader

__version__ = "0.1.0"

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
