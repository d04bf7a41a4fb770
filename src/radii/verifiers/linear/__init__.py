"""Linear programs on HiGHS, over expressions that know their rounding error."""
