"""Stored states of frozen language models."""
