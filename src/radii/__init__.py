"""radii measures how robust a neural network really is.

For every input: the radius within which its prediction provably holds, and a concrete counterexample
just outside it. Heavy packages (torch, matplotlib) load on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

__version__ = "0.1.0"
