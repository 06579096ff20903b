"""Where a run lies in a study's folder, and the command that makes it: a row's script with its numbers.

OUT/data                                             prepared text, shared by all runs
OUT/lm-states/bitext-10000                           what the frozen LM says of these training sentences
OUT/language-models                                  where they are not the shipped ones
OUT/bitext-10000/seed-1/dropout0.2-rep0.0/baseline   a run folder
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from lmfusion.runs.run_folder import FINISHED, RunFolder
from study.budget import PRETRAINED, Budget
from study.plan import FINAL, LM, Job
from study.task import Task, representation

LM_FILES = {"cloze": "en-cloze.pt", "causal": "de-causal.pt"}


@dataclass(frozen=True)
class Setting:
    """The dropouts of a run."""

    dropout: float
    representation: float

    @property
    def name(self) -> str:
        """Of its folder."""
        return f"dropout{self.dropout}-rep{self.representation}"


@dataclass(frozen=True)
class Layout:
    """A study's folder."""

    out: Path
    task: Task
    budget: Budget
    store_states: bool = False
    """Whether the frozen LM's states of the training sentences are kept on disk (on a CPU it saves time)."""

    def run(self, job: Job, setting: Setting) -> RunFolder:
        """The run folder of a job."""
        return RunFolder(self._parent(job, setting) / job.row)

    def _parent(self, job: Job, setting: Setting) -> Path:
        if job.kind == LM:
            return self.out / "language-models"
        if not job.size:
            return self.out / "untrained"
        return self.out / f"bitext-{job.size}" / f"seed-{job.seed}" / setting.name

    def is_done(self, job: Job, setting: Setting) -> bool:
        """Whether a job left what it is for: a language model, a validation loss, or a score."""
        if job.kind == LM:
            return (self.out / "language-models" / LM_FILES[job.row]).exists()
        run = self.run(job, setting)
        trained = run.step("train").get("state") == FINISHED or not job.updates
        return trained and (bool(run.scores.get("test")) if job.kind == FINAL else True)

    def spent(self, job: Job, setting: Setting) -> float:
        """Seconds spent on a training that was stopped before its end; 0 where there is none, or it has ended."""
        step = {} if job.kind == LM else self.run(job, setting).step("train")
        return 0.0 if step.get("state") == FINISHED else float(step.get("seconds", 0.0))

    def command(self, job: Job) -> list[str]:
        """What makes it, seen from the repository's root."""
        if job.kind == LM:
            return ["bash", "recipes/pretrain_longer.sh", job.row, str(self.out / "language-models")]
        return ["bash", str(self.task.recipe / f"{job.row}.sh")]

    def settings(self, job: Job, setting: Setting) -> Mapping[str, str]:
        """What the script is told by its environment."""
        if job.kind == LM:
            return {"LM_UPDATES": str(job.updates), "DATA_DIR": str(self.out / "data"), "SEED": str(job.seed)}
        own: dict[str, object] = {"OUT": self._parent(job, setting), "DATA_DIR": self.out / "data", "SEED": job.seed}
        if job.size:
            own["BITEXT_LINES"] = job.size
        if job.updates:
            own.update(S2S_UPDATES=job.updates, S2S_DROPOUT=setting.dropout, S2S_LR=self.budget.learning_rate(job.size))
            own.update(ELMO_DROPOUT=setting.representation, FT_DROPOUT=setting.representation)
            own.update(S2S_VALIDATE_EVERY=self.budget.validate_every, S2S_PATIENCE=self.budget.patience)
        if self.store_states and job.row in ("src_elmo", "src_elmo_shdemb"):  # others read another language model
            own["SRC_LM_CACHE"] = self.out / "lm-states" / f"bitext-{job.size}"
        if self.budget.language_models == PRETRAINED and representation(job.row):
            own["PRETRAINED"] = self.out / "language-models"
        if job.kind != FINAL:
            own["TRAIN_ONLY"] = 1
        return {name: str(value) for name, value in own.items()}

    def log(self, job: Job, setting: Setting) -> Path:
        """Where what a job prints goes."""
        folder = self._parent(job, setting)
        return self.out / "logs" / f"{'-'.join([*folder.relative_to(self.out).parts, job.row])}.log"
