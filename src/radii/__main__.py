"""`python -m radii` is the `radii` command."""

from radii.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
