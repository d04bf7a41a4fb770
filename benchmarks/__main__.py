"""Run every benchmark, one after the other."""

from __future__ import annotations

from benchmarks import attacks, native

for benchmark in (attacks, native):
    benchmark.main()
