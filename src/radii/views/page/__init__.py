"""One self-contained interactive page about one or more experiments, static or live."""
