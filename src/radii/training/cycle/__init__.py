"""TODO radii.training.cycle."""
