"""The .npy, .dds and .png codecs, and the store that opens what a scenario names. No GPU, no scenario models."""
