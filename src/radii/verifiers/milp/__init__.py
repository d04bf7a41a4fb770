"""Mixed-integer programming on HiGHS."""
