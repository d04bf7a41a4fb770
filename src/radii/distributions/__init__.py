"""Robustness distributions: the brackets of a set of inputs, as interval-censored data."""

from __future__ import annotations

from radii.distributions.distribution import Distribution, Share
from radii.distributions.reading import ImportedResults, read_results
from radii.distributions.verona import verona_frame

__all__ = ["Distribution", "ImportedResults", "Share", "read_results", "verona_frame"]
