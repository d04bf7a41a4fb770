"""Regions of inputs: norm balls clipped to a domain, and boxes.

All arithmetic is float64. A ball is closed, and `contains` allows no tolerance: who wants a point
inside a ball projects it there (`project` guarantees `contains`).
"""

from radii.balls._ball import Ball
from radii.balls._domains import Box, Domain, Norm
from radii.balls._features import Features

__all__ = ["Ball", "Box", "Domain", "Features", "Norm"]
