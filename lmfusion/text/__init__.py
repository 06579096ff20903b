"""Text before it becomes symbols."""
