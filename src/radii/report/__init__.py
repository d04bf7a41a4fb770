"""One self-contained interactive page about one or more experiments."""

from __future__ import annotations

from radii.report.following import Followed
from radii.report.page import render_live_page, render_page, write_report
from radii.report.payload import Payload, make_payload, payload_of, pictures_of
from radii.report.reading import named_apart
from radii.report.sources import Source

__all__ = [
    "Followed",
    "Payload",
    "Source",
    "make_payload",
    "named_apart",
    "payload_of",
    "pictures_of",
    "render_live_page",
    "render_page",
    "write_report",
]
