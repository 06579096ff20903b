"""The moment at which fairseq loads lmfusion as ``--user-dir``."""

import lmfusion

lmfusion.install()
