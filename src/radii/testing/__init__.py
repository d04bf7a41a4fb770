"""Tools for tests: of radii itself, and of plugins that others write."""
