"""Rich's console for text that comes from data.

Any string it shows, be it a sentence, a cell or a title, is one plain line without markup. What has
several lines is put together by `stacked`.
"""

from __future__ import annotations

from typing import Any

from rich.console import Console as RichConsole
from rich.text import Text

from radii.terminal import plain


class Console(RichConsole):
    """Used wherever something is shown; also to draw bars on."""

    def render_str(self, text: str, **options: Any) -> Text:
        """Called by rich for every string, wherever it stands."""
        return super().render_str(plain(text), **{**options, "markup": False, "emoji": False})


def stacked(*lines: str) -> Text:
    """A cell of several lines."""
    return Text("\n".join(map(plain, lines)))
