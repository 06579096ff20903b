"""What is only faster: without this package the same numbers are computed more slowly."""
