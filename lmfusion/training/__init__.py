"""Tasks, criterions and losses."""
