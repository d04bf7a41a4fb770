"""Robustness distributions: the brackets of a set of inputs, as interval-censored data."""

from __future__ import annotations

from radii.distributions.distribution import Distribution, Share
from radii.distributions.verona import read_verona, verona_frame

__all__ = ["Distribution", "Share", "read_verona", "verona_frame"]
