"""fairseq imports the modules of this folder where the package's own folder is given as ``--user-dir``."""
