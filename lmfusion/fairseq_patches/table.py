"""The table of everything that lmfusion changes in fairseq and in what fairseq stands on."""

from __future__ import annotations

from lmfusion.fairseq_patches import (
    architectures,
    attention_backend,
    compat,
    configurations,
    distributed,
    evaluation,
    half_precision,
    learning_rates,
    moving_average,
    perplexities,
    resuming,
    same_batches,
    saving,
    shallow_fusion,
    text_kit,
)
from lmfusion.fairseq_patches.interactive import make_batches_without_overlong_lines
from lmfusion.fairseq_patches.patch import Patch

NUMPY_2 = "NumPy 2 has no {}: {} ends in an AttributeError or a TypeError."

TABLE: tuple[Patch, ...] = (
    *evaluation.rows(),
    *configurations.ROWS,
    *perplexities.ROWS,
    Patch(
        "fairseq_cli.interactive",
        "make_batches",
        make_batches_without_overlong_lines,
        "--truncate-source is ignored, so that a line gets another translation than in training or by load_model; with "
        "--skip-invalid-size-inputs-valid-test a buffer of overlong lines ends the command instead of being skipped",
        only_if_loaded=True,
    ),
    Patch(
        "fairseq.data.token_block_dataset",
        "np",
        compat.give_former_names,
        NUMPY_2.format("np.compat.long", "pretraining with --sample-break-mode eos"),
    ),
    Patch(
        "fairseq.data.language_pair_dataset",
        "np",
        compat.give_former_names,
        NUMPY_2.format("np.compat.long", "translation with --num-batch-buckets"),
    ),
    Patch(
        "fairseq.data.data_utils",
        "np",
        compat.give_former_names,
        NUMPY_2.format("np.percentile(interpolation=…)", "--num-batch-buckets"),
    ),
    Patch(
        "fairseq.data.data_utils",
        "batch_by_size",
        compat.batch_every_sentence,
        "Sentences are lost: of 25 with --batch-size 16, fairseq-generate translates 24, and a validation loss leaves "
        "one out, because a last batch that is no multiple of --required-batch-size-multiple (8) is dropped.",
    ),
    Patch(
        "fairseq.ngram_repeat_block:NGramRepeatBlock",
        "_no_repeat_ngram",
        compat.block_repeated_ngrams,
        "--no-repeat-ngram-size forbids nothing (no token after 140 random hypotheses of 3 to 9 tokens) without a CUDA "
        "extension that no package compiles: the end of the buffer, which is padding, is compared with its beginning.",
    ),
    Patch(
        "fairseq.search:DiverseBeamSearch",
        "step",
        compat.count_diverse_groups_in_the_batch,
        "--diverse-beam-groups takes a sentence's number in the data set for its place in the batch: sentences 71, 4 "
        "and 0 end in an IndexError, 2, 0 and 1 in other scores than 0, 1 and 2.",
    ),
    Patch(
        "sys",
        "excepthook",
        compat.print_user_errors_plainly,
        "A mistake that lmfusion finds would end fairseq's commands in a traceback of some 30 lines, not in its line.",
        "never: ours alone",
    ),
    Patch(
        "fairseq.options",
        "parse_args_and_arch",
        half_precision.bf16_without_tpu,
        "--bf16 cannot run on a GPU: fairseq's command line sets --tpu with it, and asks for torch_xla.",
    ),
    Patch(
        "fairseq.optim.fp16_optimizer:FP16Optimizer",
        "build_optimizer",
        half_precision.refuse_flat_fp16_on_cpus,
        "--fp16 on a CPU ends in a traceback: it asks for CUDA's tensors.",
    ),
    Patch(
        "fairseq.trainer:Trainer",
        "__init__",
        attention_backend.without_cudnn_attention,
        "Gradients are NaN in half precision on H100 and H200 in batches of 64, 192, 320 … tokens a row: cuDNN's "
        "attention with a mask (PyTorch issue 196678), which PyTorch prefers since 2.11. It is off in training there.",
        "none so far; `lmfusion bench gpu` tests the PyTorch installed",
    ),
    Patch(
        "fairseq.distributed.utils",
        "call_main",
        distributed.start_command,
        "Under torchrun with one GPU a machine, or on CPUs, fairseq divides by the number of GPUs or trains as many "
        "models as there are processes, each of which writes the others' checkpoints. Says which command runs, too: "
        "into fairseq-interactive, and only there, plain text comes (see build_bpe).",
    ),
    Patch(
        "fairseq.distributed.utils",
        "all_gather_list",
        distributed.gather_on_cpus,
        "Several processes on CPUs cannot validate or add up their logs: the buffer is a torch.cuda.ByteTensor.",
    ),
    Patch(
        "fairseq.distributed.utils",
        "_broadcast_object_slow",
        distributed.receive_safely,
        "Several processes cannot resume: torch.load reads with weights_only=True since PyTorch 2.6, and what rank 0 "
        "sends has OmegaConf's types in it.",
    ),
    Patch(
        "fairseq.models.distributed_fairseq_model",
        "DistributedDataParallel",
        distributed.take_cpus,
        "Several processes on CPUs cannot train: DistributedDataParallel refuses device_ids for a model on a CPU.",
    ),
    Patch(
        "fairseq.tasks.fairseq_task:FairseqTask",
        "valid_step",
        distributed.accept_empty_batches,
        "fairseq-validate in two processes ends in a TypeError where the number of batches is odd: one gets an empty "
        "batch.",
    ),
    Patch(
        "fairseq.tasks.translation:TranslationTask",
        "valid_step",
        distributed.accept_empty_batches,
        "As of FairseqTask; with --eval-bleu this one goes on with the batch.",
    ),
    Patch(
        "fairseq.checkpoint_utils",
        "load_checkpoint_to_cpu",
        resuming.read_safely,
        "A flipped bit becomes a weight: torch ignores the check sums it writes. Checkpoints of --store-lm-once lack "
        "their LM, those of --eval-bleu and of models without a dataclass are refused by torch since 2.6, and before "
        "2.6 a pickle could run anything.",
    ),
    Patch(
        "fairseq.trainer:Trainer",
        "load_checkpoint",
        resuming.resume_completely,
        "A finished run whose command is given again makes one more update and writes it over its last checkpoint; "
        "--patience counts from zero; a checkpoint without optimizer state restarts at update 0 without a word.",
    ),
    Patch(
        "fairseq.checkpoint_utils",
        "load_checkpoint",
        resuming.check_what_is_read,
        "Text that was encoded with another BPE is all <unk>, and a model of lmfusion trains on it without a word.",
        "never: ours alone",
    ),
    Patch(
        "fairseq.checkpoint_utils",
        "torch_persistent_save",
        saving.save_whole,
        "The counts of --patience are not saved, --store-lm-once has no effect, and a checkpoint is renamed of which "
        "nothing need have reached the disk.",
    ),
    Patch(
        "fairseq.file_io:PathManager",
        "copy",
        saving.copy_whole,
        "checkpoint_last.pt and checkpoint_best.pt are copied in place: a kill or a full disk in between leaves "
        "neither the old one nor the new.",
    ),
    Patch(
        "fairseq.tasks.fairseq_task:FairseqTask",
        "get_batch_iterator",
        same_batches.form_batches_as_in_the_first_epoch,
        "A run that is resumed in its second epoch or later trains on other batches than the unbroken one, seeing some "
        "sentences of that epoch twice and others not at all.",
    ),
    Patch(
        "fairseq.optim",
        "build_optimizer",
        learning_rates.build_with_learning_rates,
        "--src-lm-lr-scale, --src-lm-freeze-updates and those of the target have no effect: fairseq has one learning "
        "rate for everything.",
        "never: ours alone",
    ),
    *moving_average.ROWS,
    Patch(
        "fairseq.tasks.fairseq_task:FairseqTask",
        "build_bpe",
        text_kit.use_for_bpe,
        "fairseq-interactive without the --bpe that a model was trained with translates <unk> <unk> <unk>, exit status "
        "0; checkpoints of lmfusion hold their BPE.",
        "never: ours alone",
    ),
    Patch(
        "fairseq.tasks.fairseq_task:FairseqTask",
        "build_tokenizer",
        text_kit.use_for_tokenizer,
        "As of build_bpe, for --tokenizer: what is typed would not be split as the training text was.",
        "never: ours alone",
    ),
    Patch(
        "fairseq.tasks.fairseq_task:FairseqTask",
        "build_generator",
        shallow_fusion.check_generators,
        "--lm-path takes an LM with another dictionary, or one that sees the word it scores, and distorts every score; "
        "hypotheses longer than the LM's positions end in an IndexError.",
    ),
    Patch(
        "fairseq.dataclass.utils",
        "merge_with_parent",
        architectures.fill_in_architectures,
        "model._name: src_elmo_tiny in a config file trains the sizes of transformer_lmfusion: the architecture finds "
        "nothing left to set.",
    ),
    Patch(
        "hydra.core.utils:JobReturn",
        "return_value",
        architectures.end_jobs_plainly,
        "As of sys.excepthook, for fairseq-hydra-train: Hydra prints the traceback of a job by itself.",
        "never: ours alone",
    ),
)
