"""The live page: the report's page, served to a browser while runs go on."""

from __future__ import annotations

from radii.web.access import Gate, token_for
from radii.web.server import LiveServer

__all__ = ["Gate", "LiveServer", "token_for"]
