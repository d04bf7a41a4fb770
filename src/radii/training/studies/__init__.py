"""TODO radii.training.studies."""
