"""Benchmarks: ratios measured in one run, against a named baseline. `make bench` runs them all."""
