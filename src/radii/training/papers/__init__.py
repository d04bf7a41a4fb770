"""The papers in full: a study for each, as a list of steps that make its tables and figures."""
