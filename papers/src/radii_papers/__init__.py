"""The studies of five papers, made again with radii: a study is a list of steps, which make its
tables, its figures and the evidence about its claims. `radii study` is their command."""

__version__ = "0.1.0"
