"""Guarantees: a sample of inputs is measured, and what follows for all inputs is stated with a
confidence. Global robustness R, mean change D, and the constraint metrics.
"""
