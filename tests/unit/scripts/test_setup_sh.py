"""scripts/setup.sh: what it does, and that each failure ends with the fix; in a checkout of stubs (conftest.py)."""

from __future__ import annotations

import shutil
from typing import Any

import pytest


def test_first_run_installs_and_the_second_has_nothing_to_do(checkout: Any) -> None:
    said = checkout.succeed()
    assert "making .venv with python3 (Python 3.11)" in said
    assert "already satisfied" not in said
    assert [call.split()[-1] for call in checkout.pip_calls] == ["torch==2.13.0+cpu", ".[dev,hf]"]
    assert "--constraint constraints.txt --editable" in checkout.pip_calls[-1]

    assert checkout.succeed() == "setup: .venv is up to date\n"
    assert len(checkout.pip_calls) == 2


@pytest.mark.parametrize("changed", ["constraints.txt", "setup.py"])
def test_changed_requirements_are_installed(checkout: Any, changed: str) -> None:
    checkout.succeed()
    with (checkout.root / changed).open("a") as file:
        file.write("# changed\n")
    assert "completing .venv" in checkout.succeed()
    assert len(checkout.pip_calls) == 3


@pytest.mark.parametrize("version", ["3.8", "3.10", "3.13", "3.120"])
def test_wrong_python_is_named_with_the_way_to_choose_another(bare: Any, version: str) -> None:
    bare.python("python3", version)
    message = bare.fail()
    assert f"no Python 3.11 or 3.12: python3 is Python {version}; " in message
    assert "PYTHON=/path/to/python3.12 bash scripts/setup.sh" in message
    assert not (bare.root / ".venv").exists()


def test_no_python_at_all(bare: Any) -> None:
    assert "no Python 3.11 or 3.12: python3 does not run" in bare.fail()


@pytest.mark.parametrize("version", ["3.11", "3.12"])
def test_another_python_on_the_path_is_found(bare: Any, version: str) -> None:
    bare.python("python3", "3.9")
    bare.python(f"python{version}", version)
    assert f"making .venv with python{version} (Python {version})" in bare.succeed()


@pytest.mark.parametrize("version", ["3.11", "3.12"])
def test_python_chosen_by_the_user(checkout: Any, version: str) -> None:
    checkout.python("my python", version)
    assert f"making .venv with my python (Python {version})" in checkout.succeed(PYTHON="my python")
    assert checkout.succeed(PYTHON="my python") == "setup: .venv is up to date\n"


@pytest.mark.parametrize(("name", "reason"), [("old", "old is Python 3.7"), ("nowhere", "nowhere does not run")])
def test_unfit_choice_is_refused_and_nothing_else_taken(checkout: Any, name: str, reason: str) -> None:
    checkout.python("old", "3.7")
    assert f"no Python 3.11 or 3.12: {reason}; " in checkout.fail(PYTHON=name)


def test_environment_of_another_python_is_left_alone(checkout: Any) -> None:
    checkout.succeed()
    checkout.python("python3.12", "3.12")
    message = checkout.fail(PYTHON="python3.12")
    assert ".venv was made with Python 3.11, but the Python to use is PYTHON=python3.12, 3.12" in message
    assert "rm -rf .venv" in message
    assert (checkout.root / ".venv/bin/python").exists()


def test_venv_module_missing(checkout: Any) -> None:
    (checkout.root / "no-venv-module").touch()
    message = checkout.fail()
    assert "its module venv or ensurepip is missing" in message
    assert "apt install python3.11-venv" in message


def test_no_space_before_anything_is_made(checkout: Any) -> None:
    checkout.free_disk(megabytes=700)
    message = checkout.fail()
    assert "700 MB free and the installation needs about 3000 MB" in message
    assert not (checkout.root / ".venv").exists()


def test_no_space_left_on_the_way(checkout: Any) -> None:
    (checkout.root / "pip-fails").write_text("ERROR: Could not install: [Errno 28] No space left on device\n")
    message = checkout.fail(TMPDIR="/some/tmp")
    assert "the disk is full" in message
    assert ".venv or to its temporary folder /some/tmp" in message


@pytest.mark.parametrize(
    "complaint",
    [
        "WARNING: Retrying ... Temporary failure in name resolution\nERROR: No matching distribution found",
        "WARNING: Retrying ... Failed to establish a new connection: [Errno 101] Network is unreachable",
        "ReadTimeoutError: Read timed out.",
        "WARNING: ... ProxyError('Cannot connect to proxy.')",
    ],
)
def test_no_network(checkout: Any, complaint: str) -> None:
    (checkout.root / "pip-fails").write_text(complaint)
    message = checkout.fail()
    assert "the package index cannot be reached" in message
    assert "https_proxy" in message


def test_other_failures_point_to_the_log(checkout: Any) -> None:
    (checkout.root / "pip-fails").write_text("ERROR: a wheel is damaged\n")
    assert "its own message is above and in .venv/lmfusion-setup.log" in checkout.fail()
    assert "a wheel is damaged" in (checkout.root / ".venv/lmfusion-setup.log").read_text(encoding="utf-8")


def test_interrupted_installation_is_completed(checkout: Any) -> None:
    (checkout.root / "pip-fails").write_text("interrupted\n")
    checkout.fail()
    (checkout.root / "pip-fails").unlink()
    said = checkout.succeed()
    assert "completing .venv: it is unfinished" in said
    assert "making" not in said
    assert checkout.succeed() == "setup: .venv is up to date\n"


@pytest.mark.parametrize("left", [["bin/no-pip", "bin/python"], ["pyvenv.cfg"]])
def test_half_made_environment_is_made_again(checkout: Any, left: list[str]) -> None:
    for name in left:
        (checkout.root / ".venv" / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(checkout.bin / "python3", checkout.root / ".venv" / name)
    assert ".venv does not work (an interrupted run, or a folder that was moved): making it again" in checkout.succeed()
    assert not (checkout.root / ".venv" / left[0]).exists()


@pytest.mark.slow
def test_moved_folder_is_noticed(checkout: Any) -> None:
    checkout.succeed()
    pip = checkout.root / ".venv" / "bin" / "pip"
    pip.write_text(f"#!{checkout.root}/.venv/bin/python\nimport pip\n", encoding="utf-8")
    assert ".venv is up to date" in checkout.succeed()
    checkout.root = checkout.root.rename(checkout.root.with_name("moved"))
    assert ".venv does not work (an interrupted run, or a folder that was moved): making it again" in checkout.succeed()


def test_long_folder_names_are_in_the_second_line_of_commands(checkout: Any) -> None:
    checkout.succeed()
    pip = checkout.root / ".venv" / "bin" / "pip"
    words = f"""#!/bin/sh\n'''exec' "{checkout.root}/.venv/bin/python" "$0" "$@"\n"""
    pip.write_text(words, encoding="utf-8")
    assert ".venv is up to date" in checkout.succeed()


def test_gpu_gets_the_default_build(checkout: Any) -> None:
    checkout.stub("nvidia-smi", '#!/usr/bin/env bash\necho "GPU 0: Some GPU"\n')
    assert "NVIDIA GPU found: installing torch==2.13.0 with CUDA" in checkout.succeed()
    assert checkout.pip_calls[0].endswith("--constraint constraints.txt torch==2.13.0")


def test_gpu_build_needs_more_space(checkout: Any) -> None:
    checkout.stub("nvidia-smi", '#!/usr/bin/env bash\necho "GPU 0: Some GPU"\n')
    checkout.free_disk(megabytes=5000)
    assert "5000 MB free and the installation needs about 10000 MB" in checkout.fail()


def test_driver_without_a_gpu_is_no_gpu(checkout: Any) -> None:
    checkout.stub("nvidia-smi", '#!/usr/bin/env bash\necho "No devices were found"\nexit 6\n')
    assert "no NVIDIA GPU found" in checkout.succeed()


def test_index_without_a_cpu_build_is_said_and_its_default_taken(checkout: Any) -> None:
    (checkout.root / "no-cpu-build").write_text("ERROR: No matching distribution found for torch==2.13.0+cpu\n")
    said = checkout.succeed()
    assert "it works without a GPU, but is gigabytes large" in said
    assert "TORCH_INDEX=" in said
    assert checkout.pip_calls[0].endswith("--constraint constraints.txt torch==2.13.0")


def test_lost_network_is_not_taken_for_a_missing_cpu_build(checkout: Any) -> None:
    (checkout.root / "no-cpu-build").write_text("WARNING: Retrying ... Temporary failure in name resolution\n")
    assert "the package index cannot be reached" in checkout.fail()
    assert checkout.pip_calls == []


def test_torch_from_an_index_of_the_users_choice(checkout: Any) -> None:
    checkout.succeed(TORCH_INDEX="https://index.example/cpu")
    assert checkout.pip_calls[0].endswith("--index-url https://index.example/cpu --no-deps torch==2.13.0")
    assert "index.example" not in checkout.pip_calls[1]
