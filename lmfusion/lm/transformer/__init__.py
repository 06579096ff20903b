"""What the transformer families share."""
