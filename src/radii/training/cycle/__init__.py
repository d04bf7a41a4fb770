"""Rounds of training, attack and proof, until the network meets its requirements."""
