"""Looking at images and tensors: what a file holds as numbers, as a picture, and against another file. No GPU."""
