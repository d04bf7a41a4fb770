"""One file for each published data set; see `radii.datasets._catalogue`."""
