"""Errors of an output as a whole: each metric with its formula, and the table of them."""

from __future__ import annotations
