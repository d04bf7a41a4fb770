"""The hunt for wrong proofs: networks made to break them, and every way in which they may run.

`families` and `known` make networks whose rounding is larger than their margin, `search` looks for
inputs that break them on ONNX Runtime, `executions` runs a file in other orders of summation, and
`observed_errors` compares what they show with the errors that proofs allow. Used by the benchmarks
`fragile` and `float_errors` and by tests of verifiers and bounds.
"""
