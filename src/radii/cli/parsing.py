"""How arguments are read: flags in full, values that may begin with a minus sign."""

from __future__ import annotations

import argparse
import re
from typing import Any

__all__ = ["Parser"]

NEGATIVE = re.compile(r"-\.?\d")


class Parser(argparse.ArgumentParser):
    """Parses the command line; those of its commands are of this class, too.

    Flags are never shortened: `--network` must not mean `--networks` where that is the flag. What
    begins as a negative number is a value and no flag, as in `--domain -1:1` or `--mean -0.5,-1`.
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **{"allow_abbrev": False, **options})
        self._negative_number_matcher = NEGATIVE
