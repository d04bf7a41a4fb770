"""The native verifier: branch and bound on the signs of units, or on boxes of inputs."""
