"""The paper's batch on any number of GPUs, and how they are started."""

from __future__ import annotations

from typing import Any

import pytest

ROW, LM = "wmt18_ende/baseline", "lm/en_cloze"
PAPER = {ROW: 128 * 3584, LM: 32 * 2480, "wmt18_entr/baseline": 128 * 3584, "cnn_dm/baseline": 32 * 4 * 3584}


def value(command: list[str], flag: str) -> int:
    """The value that counts: fairseq takes a flag's last one."""
    return int(command[len(command) - command[::-1].index(flag)])


@pytest.mark.parametrize("script", PAPER)
@pytest.mark.parametrize("gpus", [1, 3, 8, 32])
def test_an_update_sees_the_papers_tokens_whatever_the_number_of_gpus(script: str, gpus: int, scripts: Any) -> None:
    command = scripts.training(script, "--gpus", str(gpus))
    assert value(command, "--distributed-world-size") == gpus
    seen = gpus * value(command, "--max-tokens") * value(command, "--update-freq")
    exact = 32 % gpus == 0
    assert seen == PAPER[script] if exact else seen == pytest.approx(PAPER[script], rel=0.05)


@pytest.mark.parametrize(
    ("script", "gpus", "line"),
    [
        (ROW, "8", "128 GPUs × 3,584 tokens = 458,752 tokens an update; with 8 GPUs: --update-freq 16"),
        (ROW, "1", "128 GPUs × 3,584 tokens = 458,752 tokens an update; with 1 GPU: --update-freq 128"),
        (LM, "8", "32 GPUs × 2,480 tokens = 79,360 tokens an update; with 8 GPUs: --update-freq 4"),
        (
            ROW,
            "6",
            "128 GPUs × 3,584 tokens = 458,752 tokens an update; with 6 GPUs: --update-freq 21 = 451,584 tokens, "
            "rounded: -1.6%",
        ),
    ],
)
def test_the_batch_is_said_and_rounding_with_it(script: str, gpus: str, line: str, scripts: Any) -> None:
    assert scripts.dry(script, "--gpus", gpus).splitlines()[0] == line


def test_smaller_gpus_take_fewer_tokens_more_often(scripts: Any) -> None:
    command = scripts.training(ROW, "--gpus", "8", GPU_TOKENS="1792")
    assert (value(command, "--max-tokens"), value(command, "--update-freq")) == (1792, 32)


@pytest.mark.parametrize("gpus", ["100", "200"])
def test_a_number_that_cannot_keep_the_batch_is_refused_and_one_that_does_is_named(gpus: str, scripts: Any) -> None:
    said = scripts.refused(ROW, "--dry-run", "--gpus", gpus)
    assert f"--gpus {gpus}: the paper's batch, 128 GPUs × 3,584 tokens, cannot be kept within 5%" in said
    fix = said.rsplit("GPU_TOKENS=", 1)[1]
    command = scripts.training(ROW, "--gpus", gpus, GPU_TOKENS=fix)
    seen = int(gpus) * value(command, "--max-tokens") * value(command, "--update-freq")
    assert seen == pytest.approx(PAPER[ROW], rel=0.01)
    assert value(command, "--max-tokens") < 3584, "what fits on the paper's GPUs"


def test_one_gpu_needs_no_launcher_and_several_are_started_by_torchrun(scripts: Any) -> None:
    assert scripts.training(LM, "--gpus", "1")[0] == "fairseq-train"
    several = scripts.training(LM, "--gpus", "4")
    expected = "torchrun --nnodes 1 --nproc-per-node 4 --standalone --no-python fairseq-train"
    assert " ".join(several[: several.index("fairseq-train") + 1]) == expected


def test_several_machines_are_started_by_srun_with_one_torchrun_each(scripts: Any) -> None:
    command = scripts.training(LM, "--gpus", "32", "--nodes", "4", SLURM_JOB_ID="12345")
    launch = " ".join(command[: command.index("fairseq-train") + 1])
    assert launch.startswith("srun --nodes 4 --ntasks 4 --ntasks-per-node 1 ")
    assert " torchrun --nnodes 4 --nproc-per-node 8 " in launch
    assert " --rdzv-id 12345 --rdzv-backend c10d --rdzv-endpoint FIRST_MACHINE:22345 --no-python " in launch
    assert value(command, "--distributed-world-size") == 32


def test_a_dry_run_without_gpus_shows_the_papers(scripts: Any) -> None:
    assert "with 32 GPUs: --update-freq 1" in scripts.dry(LM)
    assert "with 3 GPUs: --update-freq 11" in scripts.dry(LM, HERE="3")


def test_translating_is_not_shared_out_among_the_gpus(scripts: Any) -> None:
    """Where it sees eight, fairseq-generate would translate every eighth sentence."""
    for command in scripts.commands("wmt18_entr/baseline", "--gpus", "8", program="fairseq-generate"):
        assert command[0] == "fairseq-generate"
        assert value(command, "--distributed-world-size") == 1
