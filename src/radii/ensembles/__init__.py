"""Ensembles of classifiers against randomized attacks, decided exactly."""
