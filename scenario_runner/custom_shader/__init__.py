"""Shaders embedded in TOSA custom operations: their attributes, and whether shader and attributes agree."""
