"""Run folders -> one page, with tables and figures: ``lmfusion report``.

find.py, runs.py         folders into runs, whatever state they are in (command_line.py, strategy.py: what they are)
comparison.py            runs of one test set into the rows, columns and cells of the paper's tables
*_table(s).py            tables (table.py: what a table is, and Markdown and CSV of it)
*_figure.py, curves.py   figures (figure.py: what a figure is, and SVG and PNG of it)
examples.py              outputs side by side
build.py, render.py      all of it put together, and written
"""

import logging

logging.getLogger("matplotlib").setLevel(logging.WARNING)  # before it is imported: fairseq lets all say all
