"""TOSA models: custom operations with shaders, conversion to VGF, comparison by layer, and the conformance suite."""
