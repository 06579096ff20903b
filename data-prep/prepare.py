#!/usr/bin/env python3
"""The command of `lmfusion.text.prepare`; see its --help."""

import sys

from lmfusion.text import prepare, textio

if __name__ == "__main__":
    sys.exit(textio.run_command(prepare.main))
