"""Comparing the elements of two contents of one type and shape: which are wrong, and how badly."""

from __future__ import annotations
