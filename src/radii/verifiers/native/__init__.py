"""TODO radii.verifiers.native."""
