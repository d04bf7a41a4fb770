"""The study of "A Preliminary Study to Examining Per-Class Performance Bias via Robustness
Distributions"."""
