"""Tokenizers, dictionaries and checks of binarized texts."""
