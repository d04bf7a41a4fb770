"""Guarantees: how many inputs a statement about all inputs needs, and what it says."""
