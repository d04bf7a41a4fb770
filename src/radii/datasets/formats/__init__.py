"""File formats: the official layouts of published sets, and what users bring themselves."""
