"""A file as numbers and as a picture."""
