"""What a notebook or a prompt shows of a distribution and of counterexamples."""
