"""Models besides the transformer that take a pretrained language model in."""
