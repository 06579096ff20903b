"""Checkpoint files: read safely, written whole, kept small, averaged and exported."""
