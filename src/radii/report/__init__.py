"""One self-contained interactive page about one or more experiments."""

from __future__ import annotations

from typing import TYPE_CHECKING

from radii import load_on_use

_HOMES = {
    "Board": "_board",
    "Gate": "_access",
    "LiveServer": "_server",
    "Payload": "_payload",
    "card": "_card",
    "finding_sentences": "_findings",
    "make_board": "_board",
    "make_payload": "_payload",
    "payload_of": "_payload",
    "pictures_of": "_payload",
    "render_live_page": "_page",
    "render_page": "_page",
    "token_for": "_access",
    "write_board": "_board",
    "write_comparison": "_comparison",
    "write_report": "_page",
}

__all__ = [
    "Board",
    "Gate",
    "LiveServer",
    "Payload",
    "card",
    "finding_sentences",
    "make_board",
    "make_payload",
    "payload_of",
    "pictures_of",
    "render_live_page",
    "render_page",
    "token_for",
    "write_board",
    "write_comparison",
    "write_report",
]

if TYPE_CHECKING:
    from radii.report._access import Gate, token_for
    from radii.report._board import Board, make_board, write_board
    from radii.report._card import card
    from radii.report._comparison import write_comparison
    from radii.report._findings import finding_sentences
    from radii.report._page import render_live_page, render_page, write_report
    from radii.report._payload import Payload, make_payload, payload_of, pictures_of
    from radii.report._server import LiveServer


if not TYPE_CHECKING:  # type checkers see the imports above, and nothing else
    __getattr__ = load_on_use(__name__, _HOMES)
