"""Compare outputs: element by element, or by metrics of all elements."""
