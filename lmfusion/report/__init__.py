"""Run folders shown: on the terminal (table.py, compare.py), and as a page with tables and figures (page/)."""
