"""Isolated processes, and what a process needs: signals, limits, progress, temporary files."""
