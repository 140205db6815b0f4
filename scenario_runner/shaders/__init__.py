"""Shaders: GLSL and HLSL compiled to SPIR-V, with a cache keyed by content, and the reading of SPIR-V modules."""
