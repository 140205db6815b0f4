"""Comparison of numbers and images with expected ones."""
