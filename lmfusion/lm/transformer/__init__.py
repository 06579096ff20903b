"""Modules that the transformer families share."""
