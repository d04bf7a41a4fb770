"""Training: regimes, the papers' architectures, and a loop that resumes to the same weights."""

from __future__ import annotations
