"""Use trained models: translate, label, hand on; in PyTorch, in 8-bit, or by CTranslate2."""
