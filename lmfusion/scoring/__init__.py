"""Scores of generated text, each with the signature that says how it was computed.

Text in, numbers out: nothing here knows of models, so neither torch nor fairseq is used.
"""

from lmfusion.scoring import bleu, generate_output, rouge

__all__ = ["bleu", "generate_output", "rouge"]
