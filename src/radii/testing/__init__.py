"""For tests: assertions about models, and the suites that plugins pass.

A plugin's author subclasses the suite of its family: `VerifierConformance`, `AttackConformance`,
`SearchConformance`, `ExecutorConformance` or `PropertyConformance`. The networks that they use are
here as well, with radii that are known in closed form. Everything loads on first use.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
