"""A cache on disk for the layer states of frozen language models."""
