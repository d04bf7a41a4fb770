"""The operators a graph is made of: torch modules from batches of values to a batch of values."""
