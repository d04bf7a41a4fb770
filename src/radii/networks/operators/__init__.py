"""The operators that a graph is made of, one file for each family."""
