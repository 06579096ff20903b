"""Run folders: written, watched, read."""
