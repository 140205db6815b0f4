"""The .npy, .dds and .png codecs, and files that appear complete or not at all. No GPU, no scenario models."""
