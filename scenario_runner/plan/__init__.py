"""The plan of a run: frames, operations, resources with sizes and usage, requirements. No GPU is touched here."""
