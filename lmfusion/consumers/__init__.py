"""Models other than the transformer that take a language model in."""
