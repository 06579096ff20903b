"""``lmfusion_heads``: a language model of any family, one integration, and a head for each task."""

# No "from __future__ import annotations" here: fairseq reads the fields' types at run time.
import json
from dataclasses import field, make_dataclass
from typing import Any, Optional

from fairseq.dataclass import ChoiceEnum, FairseqDataclass
from fairseq.models import BaseFairseqModel, register_model
from torch import Tensor, nn

from lmfusion.checkpoint.reading import read_checkpoint
from lmfusion.consumers.heads import TAGS, Head, HeadSpec, check_tasks
from lmfusion.consumers.stored_codec import StoredCodec
from lmfusion.errors import InputError, check_dropout
from lmfusion.fusion.build import build_on
from lmfusion.fusion.combinations import check_side
from lmfusion.fusion.config import integration, side_fields
from lmfusion.fusion.holder import check_same_lms, checkpoint_to_start_from, remember, use_stored_lm
from lmfusion.fusion.interface import ENCODER, Fusion, Side
from lmfusion.lm.interface import PretrainedLM
from lmfusion.lm.pooling import POOLINGS
from lmfusion.lm.precision import CPU_BF16_HELP, training_autocast
from lmfusion.text.codec import TextCodec
from lmfusion.text.kit import collect

FAMILY = "family"
PoolChoice = ChoiceEnum([FAMILY, *POOLINGS])


def _flag(text: str, default: Any) -> Any:
    return field(default=default, metadata={"help": text})


_NOT_OURS = ("positions", "embed_scale")  # of an encoder
_OWN = [
    ("pool", PoolChoice, _flag("how a sentence becomes one vector (family: the pooler, or what suits the LM)", FAMILY)),
    ("head_dropout", float, _flag("dropout in front of each head's layer", 0.3)),
    ("heads_config", Optional[str], _flag("written by lmfusion into checkpoints; do not set", None)),
    ("cpu_bf16", bool, _flag(CPU_BF16_HELP, False)),
]
HeadsConfig: Any = make_dataclass(
    "HeadsConfig",
    [(f"src_{name}", kind, spec) for name, kind, spec in side_fields("src") if name not in _NOT_OURS] + _OWN,
    bases=(FairseqDataclass,),
)
"""Flags of ``lmfusion_heads``: those of a translation model's source side, and of the heads."""
HeadsConfig.__module__ = __name__


@register_model("lmfusion_heads", dataclass=HeadsConfig)
class HeadsModel(BaseFairseqModel):
    """A representation of sentences with named heads on it.

    A checkpoint is complete in itself: it holds the LM, its tokenizer and BPE, and the names of the classes.

    Args:
        fusion: the integration with the LM.
        specs: of the heads.
        cfg: the flags.
        codec: turns plain text into the LM's symbols; None: text is symbols between white space.
    """

    def __init__(self, fusion: Fusion, specs: list[HeadSpec], cfg: Any, codec: Optional[TextCodec]) -> None:
        super().__init__()
        self.representation = fusion
        self.heads = nn.ModuleDict({spec.name: Head(spec, fusion.lm.embed_dim, cfg.head_dropout) for spec in specs})
        self.text = StoredCodec(codec)
        self.pooling, self.cpu_bf16 = str(cfg.pool), bool(cfg.cpu_bf16)
        if self.pooling != FAMILY or all(spec.kind == TAGS for spec in specs):
            fusion.lm.drop_pooler()
        fusion.lm.vocabulary.codec = codec

    @classmethod
    def build_model(cls, cfg: Any, task: Any) -> "HeadsModel":
        """Build the model for the task ``lmfusion_sentences``, from flags or from a checkpoint's configuration.

        Raises:
            InputError: if the task is another, or flags contradict each other.
        """
        if not hasattr(task, "head_specs"):
            raise InputError("lmfusion_heads is trained by --task lmfusion_sentences: give that.")
        _check(cfg)
        given = bool(cfg.src_lm_config)
        described = use_stored_lm(cfg)
        fusion, _ = build_on(cfg, "src", None, _side)
        if given:  # by a checkpoint that is loaded: its weights bring the text's codec, whatever files training had
            codec = fusion.lm.vocabulary.codec
        else:
            codec = (_stored_codec(cfg) if described else None) or _codec(cfg, fusion.lm)
        if cfg.heads_config:
            specs = [HeadSpec.of(values) for values in json.loads(cfg.heads_config)]
        else:
            specs = task.head_specs()
        model = cls(fusion, specs, cfg, codec)
        if not described:
            fusion.begin(getattr(cfg, "_get_parent", lambda: None)())
            check_same_lms(cfg, cfg, ["src"])
        remember(cfg, "src_lm_config", cfg.src_lm_config)
        remember(cfg, "heads_config", json.dumps([spec.as_plain() for spec in specs]))
        return model

    @property
    def lm(self) -> PretrainedLM:
        """Return the language model."""
        return self.representation.lm

    @property
    def specs(self) -> list[HeadSpec]:
        """Return what the heads are for, in order."""
        return [head.spec for head in self.heads.values() if isinstance(head, Head)]

    def forward(self, name: str, rows: list[Tensor]) -> Tensor:
        """Compute the logits of a head.

        Args:
            name: of the head.
            rows: one or two (a pair that is read apart) of B x T ids of the LM with their frame, padded on the right.

        Returns:
            As :meth:`Head.forward`.
        """
        head = self.heads[name]
        assert isinstance(head, Head)
        with training_autocast(self, self.cpu_bf16):
            return head([self._vector(tokens, head.spec) for tokens in rows])

    def _vector(self, tokens: Tensor, spec: HeadSpec) -> Tensor:
        states = self.representation(tokens)
        if spec.kind == TAGS:
            return states
        padding = tokens.eq(self.lm.padding_idx)
        return self.lm.pool(states, padding) if self.pooling == FAMILY else POOLINGS[self.pooling](states, padding)

    def max_positions(self) -> int:
        """Return the longest row in tokens, its frame left out but for the last symbol."""
        return self.lm.max_positions()

    def load_state_dict(self, state_dict: dict[str, Any], *args: Any, **kwargs: Any) -> Any:
        """Load weights, and the codec among them; refuse heads of other tasks."""
        check_tasks({name.split(".")[1] for name in state_dict if name.startswith("heads.")}, set(self.heads))
        result = super().load_state_dict(state_dict, *args, **kwargs)
        self.lm.vocabulary.codec = self.text.codec
        return result


def _side(lm: PretrainedLM, fingerprint: str) -> Side:
    """Describe the one side, as wide as the LM's top state, so that nothing is projected and its pooler fits."""
    return Side("src", "source", ENCODER, lm.symbols, lm.embed_dim, 1, fingerprint)


def _check(cfg: Any) -> None:
    kind = integration(cfg, "src")
    if kind is None or not kind.replaces_embeddings:
        raise InputError(
            f"--src-fusion {cfg.src_fusion}: heads stand on elmo (the LM stays as it is) or finetune (it is trained)."
        )
    check_dropout(cfg.head_dropout, f"--head-dropout {cfg.head_dropout:g}")
    check_side(cfg, "src")


def _codec(cfg: Any, lm: PretrainedLM) -> Optional[TextCodec]:
    """Return what the flags --bpe and --tokenizer ask for, else what the LM brings in its checkpoint."""
    parent = getattr(cfg, "_get_parent", lambda: None)()
    sections = {} if parent is None else {name: parent.get(name) for name in ("bpe", "tokenizer")}
    kit = collect({name: section for name, section in sections.items() if section}) if sections else None
    if kit is None:
        return lm.vocabulary.codec
    if not lm.vocabulary.takes_codec:
        raise InputError(f"--bpe {kit.bpe['_name']}: a {lm.title} brings its own tokenizer; leave it out.")
    return TextCodec(kit)


def _stored_codec(cfg: Any) -> Optional[TextCodec]:
    """Return the codec in the checkpoint that a run resumes from: validation texts are encoded before it is loaded."""
    path = checkpoint_to_start_from(cfg)
    assert path is not None
    stored = StoredCodec(None)
    stored.load_state_dict({"content": read_checkpoint(path)["model"]["text.content"]})
    return stored.codec
