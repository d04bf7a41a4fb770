"""Child processes with hard limits on time and memory, which die with their parents.

`Child` is one process and `watch` the loop that waits for several; `call_guarded` and `ProcessPool`
are calls and requests on top of them, and `run_program` runs a foreign program. What they use is
counted with all that they start. Nothing here knows of networks or verdicts, and loading it is
cheap: psutil comes with the first look at a process.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
