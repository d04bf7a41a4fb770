"""`python -m radii` is the `radii` command."""

from __future__ import annotations

from radii.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
