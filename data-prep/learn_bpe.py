#!/usr/bin/env python3
"""The command of `lmfusion.text.learn_bpe`; see its --help."""

import sys

from lmfusion.text import learn_bpe, textio

if __name__ == "__main__":
    sys.exit(textio.run_command(learn_bpe.main))
