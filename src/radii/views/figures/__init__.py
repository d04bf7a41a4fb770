"""Figures: a pure data function, and thin drawing that returns the figure."""
