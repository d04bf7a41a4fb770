"""The study of "Neural Network Robustness as a Verification Property"."""
