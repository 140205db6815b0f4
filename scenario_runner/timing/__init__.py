"""Measurements of runs as files: the reference runner's two, a trace, and samples of many runs and their comparison."""
