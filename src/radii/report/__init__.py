"""One self-contained interactive page about one or more experiments."""

from __future__ import annotations

from radii.report.page import render_page, write_report
from radii.report.payload import Payload, make_payload

__all__ = ["Payload", "make_payload", "render_page", "write_report"]
