"""TOSA models with custom shaders become VGF files: read, partitioned, lowered, written."""
