"""Executors: where and how questions are answered."""
