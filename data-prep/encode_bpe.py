#!/usr/bin/env python3
"""The command of `lmfusion.text.encode_bpe`; see its --help."""

import sys

from lmfusion.text import encode_bpe, textio

if __name__ == "__main__":
    sys.exit(textio.run_command(encode_bpe.main))
