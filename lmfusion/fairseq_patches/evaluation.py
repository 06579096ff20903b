"""Keep text of a checkpoint's configuration from being run as code.

Reading a checkpoint runs nothing (``weights_only=True``), but building a model from its configuration did. This is all
in fairseq 0.12 that values from a file can reach, by a reading of every ``eval``, ``exec``, ``import_module``,
``instantiate``, ``globals()``, unpickling and subprocess in it:

- ``eval`` of text in the sections model, task and criterion: closed by rows of the table, which put
  :func:`~lmfusion.checkpoint.literals.evaluate` in its place in :data:`MODULES`. A test looks for modules that these
  leave out.
- ``torch.load`` of files that a configuration names (``load_pretrained_decoder_from``, vocoders, ``codedataset``):
  safe by PyTorch 2.6's default, which ``setup.py`` asks for; what goes through ``load_checkpoint_to_cpu`` is read as
  any checkpoint. ``numpy.load`` refuses pickles by default.
- Names of models, tasks, criterions, tokenizers, BPEs and architectures are looked up in fairseq's registries and not
  imported. ``globals()`` is asked for ``emulate_int8_…``, and in ``fairseq.logging.meters`` for any name, which is
  called without arguments: the callables there are meters, and helpers that need arguments.
- Old ``args`` become overrides of Hydra's ``compose``, which reads values and instantiates nothing; its text goes
  through ``ast.literal_eval``. Interpolations (``${…}``) read other values or environment variables.
- ``common.user_dir`` is imported, and ``post_save_script`` started, from the command line's configuration only;
  ``optim`` evaluates, and ``fairseq-validate`` and ``-eval-lm`` evaluate ``--model-overrides``, of the command line as
  well: the user's own, left as they are.
- ``FastaDataset`` gives a shell the path of the data, in which languages stand: closed by a row of the table.
- Modules below ``fairseq.examples`` are not imported unless the user asks for one by ``--user-dir``.
"""

from __future__ import annotations

import shlex
from importlib.util import find_spec
from typing import Any

from lmfusion.checkpoint.literals import evaluate
from lmfusion.fairseq_patches.patch import Patch

MODULES = (
    "fairseq.criterions.ctc",
    "fairseq.data.audio.raw_audio_dataset",
    "fairseq.data.codedataset",
    "fairseq.models.fconv",
    "fairseq.models.fconv_lm",
    "fairseq.models.fconv_self_att",
    "fairseq.models.hubert.hubert",
    "fairseq.models.lightconv_lm",
    "fairseq.models.multires_hubert.multires_hubert",
    "fairseq.models.speech_to_text.s2t_wav_transformer",
    "fairseq.models.transformer_lm",
    "fairseq.models.wav2vec.wav2vec",
    "fairseq.models.wav2vec.wav2vec2",
    "fairseq.utils",
)
"""Modules of fairseq that evaluate values which may stand in a checkpoint."""


def _exists(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # nor does its package: fairseq 0.12.2 has fewer models
        return False


def bounded_eval(original: Any) -> Any:
    """Return what shadows the builtin ``eval`` in a module (``original`` is None: a module has none of its own)."""
    return evaluate


def quote_the_path(original: Any) -> Any:
    """Return ``FastaDataset._build_index`` for any path: it makes a line of shell of it, as it stands."""

    def build_index(self: Any, path: str) -> Any:
        return original(self, shlex.quote(path))

    return build_index


def rows() -> tuple[Patch, ...]:
    """Return a row of the table for every module that this version of fairseq has, and that of shell."""
    why = "a checkpoint's configuration could run any code in fairseq-generate, -interactive, -validate and load_model"
    fasta = "the name of a data folder, or of a language, with a file .fasta in it is run by a shell (train.en-x;CMD;)"
    return (
        *(Patch(module, "eval", bounded_eval, why) for module in MODULES if _exists(module)),
        Patch("fairseq.data.fasta_dataset:FastaDataset", "_build_index", quote_the_path, fasta),
    )
