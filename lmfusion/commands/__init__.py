"""One module per command of ``lmfusion``: ``add`` puts it on the command line, the rest runs it."""
