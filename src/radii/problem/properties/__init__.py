"""Properties: what must stay true in a ball around an input."""
