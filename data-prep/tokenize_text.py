#!/usr/bin/env python3
"""The command of `lmfusion.text.tokenize_text`; see its --help."""

import sys

from lmfusion.text import textio, tokenize_text

if __name__ == "__main__":
    sys.exit(textio.run_command(tokenize_text.main))
