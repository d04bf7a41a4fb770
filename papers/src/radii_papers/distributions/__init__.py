"""The study of "Robustness Distributions in Neural Network Verification"."""
