"""The `radii` command. Heavy packages load only in the command that needs them.

Exit codes: 0 done, 1 a check is negative, 2 bad input, 3 internal error, 130 interrupted,
143 terminated.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
