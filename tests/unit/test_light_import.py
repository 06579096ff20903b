"""Importing lmfusion is light and changes nothing; fairseq's ways of loading it do it all, once."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Callable

import pytest

import lmfusion
from lmfusion.cli import build_parser

Run = Callable[..., "tuple[int, str]"]
COMMANDS = sorted(build_parser()._subparsers._group_actions[0].choices)  # type: ignore[union-attr, arg-type]
AS_USER_DIR = """
import sys
from argparse import Namespace
from fairseq.utils import import_user_module
import_user_module(Namespace(user_dir=sys.argv[1]))
"""
ASK = """
from fairseq.checkpoint_utils import torch_persistent_save as save
from fairseq.models import ARCH_CONFIG_REGISTRY
print("PATCHED", save.__module__.startswith("lmfusion."), "src_elmo_tiny" in ARCH_CONFIG_REGISTRY)
"""
DONE = "PATCHED True True"
SERVER = """
import json, os, sys
import fairseq, fairseq_cli.train
for line in sys.stdin:
    code, words = json.loads(line)
    read, write = os.pipe()
    child = os.fork()
    if not child:
        os.dup2(write, 1), os.dup2(write, 2)
        sys.argv = ["fairseq-train", *words]
        status = 1
        try:
            exec(code, {"__name__": "program"})
            status = 0
        except SystemExit as leave:
            status = leave.code or 0
        except BaseException:
            sys.excepthook(*sys.exc_info())
        sys.stdout.flush()
        os._exit(status)
    os.close(write)
    with os.fdopen(read) as output:
        said = output.read()
    print("ANSWER" + json.dumps([os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), said]), flush=True)
"""


@pytest.fixture(scope="module")
def run() -> Iterator[Run]:
    """Run code in a process that has imported fairseq and not lmfusion: its status and all it said."""
    server = subprocess.Popen(
        [sys.executable, "-c", SERVER],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert server.stdin is not None
    assert server.stdout is not None
    ask, replies = server.stdin, server.stdout

    def answer(code: str, *words: object) -> tuple[int, str]:
        ask.write(json.dumps([code, [str(word) for word in words]]) + "\n")
        ask.flush()
        line = next(line for line in replies if line.startswith("ANSWER"))
        status, said = json.loads(line.removeprefix("ANSWER"))
        return status, said

    yield answer
    ask.close()
    server.wait()


def ends_with(run: Run, code: str, *words: object) -> str:
    """The last line of code that ends well."""
    status, said = run(code, *words)
    assert status == 0, said
    return said.splitlines()[-1]


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package's folder in another clone."""
    copy = tmp_path_factory.mktemp("clone") / "lmfusion"
    shutil.copytree(lmfusion.USER_DIR, copy, ignore=shutil.ignore_patterns("__pycache__"))
    return copy


@pytest.mark.parametrize(
    "code",
    [
        "import lmfusion; assert lmfusion.USER_DIR and lmfusion.scoring and lmfusion.InputError is lmfusion.UserError",
        "import lmfusion.scoring",
        "from lmfusion.cli import main; assert main(['user-dir']) == 0",
        "from lmfusion.cli import main\n"
        f"for words in [['--help'], *([name, '--help'] for name in {COMMANDS})]:\n"
        "    try: main(words)\n"
        "    except SystemExit as leave: assert not leave.code",
    ],
    ids=["lmfusion", "lmfusion.scoring", "user-dir", "help"],
)
def test_what_needs_neither_torch_nor_fairseq_loads_neither(code: str) -> None:
    code += "\nimport sys; sys.exit(' '.join({'torch', 'fairseq', 'hydra'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stderr.strip() == ""
    assert len(COMMANDS) > 7


def test_importing_changes_nothing_in_fairseq_until_something_is_used(run: Run) -> None:
    code = """
import sys, numpy, torch
from fairseq import checkpoint_utils
from fairseq.models import ARCH_CONFIG_REGISTRY
def look():
    safe = torch.serialization.get_safe_globals()
    return checkpoint_utils.load_checkpoint_to_cpu, sys.excepthook, numpy.percentile, safe, set(ARCH_CONFIG_REGISTRY)
before = look()
import lmfusion
assert look() == before
lmfusion.load_lm
assert [now is old for now, old in zip(look(), before)] == [False, False, True, False, False]
assert look()[3] == before[3]  # nothing more is unpickled than before
"""
    assert ends_with(run, code + ASK) == DONE


def test_the_plugin_loads_no_library_that_few_commands_need(run: Run) -> None:
    libraries = {"gensim", "matplotlib", "peft", "sacremoses", "transformers"}
    code = f"import sys\nprint('LOADED', sorted({libraries} & set(sys.modules)))"
    assert ends_with(run, AS_USER_DIR + code, lmfusion.USER_DIR) == "LOADED []"


@pytest.mark.parametrize("before", ["", "import lmfusion", "import lmfusion; lmfusion.install()"])
def test_the_packages_own_folder_works_as_user_dir_whatever_was_imported_before(run: Run, before: str) -> None:
    assert ends_with(run, before + AS_USER_DIR + ASK, lmfusion.USER_DIR) == DONE


def test_a_link_to_the_package_is_the_package(run: Run, tmp_path: Path) -> None:
    (tmp_path / "lmfusion").symlink_to(lmfusion.USER_DIR)
    assert ends_with(run, "import lmfusion" + AS_USER_DIR + ASK, tmp_path / "lmfusion") == DONE


def test_another_copy_is_refused_in_one_line_that_says_which_is_loaded(run: Run, clone: Path) -> None:
    code = "import lmfusion; from fairseq_cli.train import cli_main; cli_main()"
    status, said = run(code, clone.parent, "--user-dir", clone, "--arch", "src_elmo_tiny", "--task", "translation")
    assert status == 1
    last = said.splitlines()[-1]
    assert last.startswith(f"lmfusion: error: --user-dir {clone} is another copy of lmfusion than the one")
    assert lmfusion.USER_DIR in last
    assert "Traceback" not in said


def test_another_copy_is_as_good_where_none_is_loaded(run: Run, clone: Path) -> None:
    code = AS_USER_DIR + ASK + "import lmfusion; print(lmfusion.USER_DIR)"
    assert ends_with(run, code, clone) == str(clone)


def test_a_folder_of_the_users_own_registers_things_and_loads_lmfusion(run: Run, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "__init__.py").write_text(
        "import lmfusion\n"
        "from fairseq.models import register_model_architecture\n"
        "lmfusion.install()\n"
        "@register_model_architecture('transformer_lmfusion', 'mine_tiny')\n"
        "def mine_tiny(args):\n"
        "    args.encoder_embed_dim = getattr(args, 'encoder_embed_dim', 24)\n",
        encoding="utf-8",
    )
    code = "import sys\nfrom fairseq import options\n"
    code += "args = options.parse_args_and_arch(options.get_training_parser(), sys.argv[1:])\n"
    code += "assert args.encoder_embed_dim == 24\n"
    words = [tmp_path, "--user-dir", tmp_path / "mine", "--arch", "mine_tiny", "--task", "translation"]
    assert ends_with(run, code + ASK, *words) == DONE
