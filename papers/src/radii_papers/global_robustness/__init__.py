"""The paper "Global adversarial robustness guarantees for neural networks", made again."""
