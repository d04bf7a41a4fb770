"""Studies of many networks: how they are described, made, measured and compared."""
