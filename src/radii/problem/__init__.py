"""The problem: balls, properties, queries, verdicts and brackets, in numpy alone.

All arithmetic is float64. A ball is closed, and `contains` allows no tolerance: to get a point
inside a ball, `project` it, which guarantees `contains`. `check_witness` is the only place where a
candidate becomes a counterexample.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
