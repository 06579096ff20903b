#!/usr/bin/env bash
# Makes .venv with lmfusion (editable), the exact dependencies of constraints.txt and the development tools.
#
#   bash scripts/setup.sh
#
# Safe to run again: nothing happens when .venv is up to date, and what an interrupted run left is completed.
#   PYTHON=python3.12   which Python to use, 3.11 or 3.12 (default: python3, python3.11 or python3.12)
#   TORCH_INDEX=URL     take torch from this package index, e.g. PyTorch's own one for CPU or for a CUDA version
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

VENV=.venv
VENV_PYTHON="$VENV/bin/python"
STAMP="$VENV/lmfusion-setup.stamp"
PIP_LOG="$VENV/lmfusion-setup.log"

say() { printf 'setup: %s\n' "$*"; }

# die MESSAGE MEND...: what happened, then one line for each thing to do about it.
die() {
    printf 'setup: error: %s\n' "$1" >&2
    shift
    printf '  %s\n' "$@" >&2
    exit 1
}

# The stamp's content: it no longer fits when the pins change or the folder has moved (a venv holds absolute paths).
fingerprint() { printf '%s %s\n' "$(cat constraints.txt setup.py | cksum)" "$PWD"; }

version_of() { "$1" -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null; }

supported() { [[ "$1" == 3.11 || "$1" == 3.12 ]]; }

# Sets PYTHON, or explains which versions were found and how to choose one.
choose_python() {
    local candidate version found="" candidates=(python3 python3.11 python3.12)
    [[ -z "${PYTHON:-}" ]] || candidates=("$PYTHON")
    for candidate in "${candidates[@]}"; do
        version="$(version_of "$candidate")" || continue
        if supported "$version"; then
            PYTHON="$candidate"
            return
        fi
        found="$found$candidate is Python $version; "
    done
    die "no Python 3.11 or 3.12: ${found:-${PYTHON:-python3} does not run; }lmfusion needs one of them." \
        "Install one (Debian, Ubuntu: apt install python3.12 python3.12-venv; macOS: brew install python@3.12)" \
        "and name it: PYTHON=/path/to/python3.12 bash scripts/setup.sh"
}

require_venv_module() {
    local version
    "$PYTHON" -c 'import venv, ensurepip' 2>/dev/null && return
    version="$(version_of "$PYTHON")"
    die "$PYTHON (Python $version) cannot make virtual environments: its module venv or ensurepip is missing." \
        "Debian, Ubuntu: apt install python$version-venv" \
        "or name a complete Python: PYTHON=/path/to/python$version bash scripts/setup.sh"
}

require_disk() {
    local need_mb="$1" free_mb
    free_mb="$(df -Pk . | awk 'NR == 2 { print int($4 / 1024) }')"
    if ((free_mb < need_mb)); then
        die "not enough disk space: $PWD has $free_mb MB free and the installation needs about $need_mb MB." \
            "Free some space, or move the repository to a larger disk, and run this again."
    fi
}

# The commands in a venv name its Python by its absolute path, in their first line or, where that is long, in the second.
was_moved() {
    local first="" second=""
    [[ -f "$VENV/bin/pip" ]] || return 1
    { read -r first && read -r second; } <"$VENV/bin/pip" || true
    [[ "$first $second" != *"$(pwd -P)/$VENV/"* ]]
}

venv_works() { ! was_moved && "$VENV_PYTHON" -m pip --version >/dev/null 2>&1; }

# An existing .venv of another Python is the user's to remove.
require_same_python() {
    local have want
    have="$(version_of "$VENV_PYTHON")"
    want="$(version_of "${PYTHON:-$VENV_PYTHON}")" || want="nothing that runs"
    if ! supported "$have" || [[ "$have" != "$want" ]]; then
        die "$VENV was made with Python $have, but the Python to use is ${PYTHON:+PYTHON=$PYTHON, $want; it must be }3.11 or 3.12." \
            "Remove it and run this again: rm -rf $VENV"
    fi
}

make_venv() {
    if [[ -L "$VENV" ]]; then
        die "$VENV is a link, and what it leads to was made for another folder; making it again would empty that." \
            "Remove the link and run this again: rm $VENV" \
            "or use that environment as it is: activate it, and set NO_SETUP=1 for the recipes"
    fi
    if [[ -e "$VENV" ]]; then
        say "$VENV does not work (an interrupted run, or a folder that was moved): making it again"
    else
        say "making $VENV with $PYTHON (Python $(version_of "$PYTHON"))"
    fi
    if ! "$PYTHON" -m venv --clear "$VENV" || ! venv_works; then
        die "$PYTHON -m venv could not make a working $VENV (its own message is above)." \
            "If the disk is full or read-only, fix that; else try another Python: PYTHON=... bash scripts/setup.sh"
    fi
}

has_gpu() { command -v nvidia-smi >/dev/null && nvidia-smi -L 2>/dev/null | grep -q GPU; }

# pip with its progress on the terminal and its complaints kept, so that a failure can be explained.
pip_install() {
    { "$VENV_PYTHON" -m pip install --disable-pip-version-check --constraint constraints.txt "$@" 2>&1 1>&3 |
        tee "$PIP_LOG" >&2; } 3>&1
}

only_news() { awk '!/^Requirement already satisfied/ { print; fflush() }'; }

# Ends with the fix if pip's complaints tell of a full disk or a lost network.
explain_known_failure() {
    if grep -qiE 'no space left|disk quota exceeded' "$PIP_LOG"; then
        die "the disk is full: pip could not write to $PWD/$VENV or to its temporary folder ${TMPDIR:-/tmp}." \
            "Free some space, or point TMPDIR at a folder with room, and run this again; what is there is kept."
    fi
    if grep -qiE 'name resolution|new connection|timed? ?out|unreachable|max retries|proxy|connection (broken|reset|aborted)|ssl' "$PIP_LOG"; then
        die "the package index cannot be reached, so nothing can be downloaded." \
            "Check the network, the proxy (https_proxy) and pip's index ($VENV_PYTHON -m pip config list)," \
            "and run this again; what is there is kept."
    fi
}

explain_pip_failure() {
    explain_known_failure
    die "pip failed; its own message is above and in $PIP_LOG." \
        "Run this again when it is fixed; what is there is kept."
}

install_torch() {
    local torch
    torch="$(grep '^torch==' constraints.txt)"
    if "$VENV_PYTHON" -m pip show --quiet torch 2>/dev/null; then
        return
    elif [[ -n "${TORCH_INDEX:-}" ]]; then
        say "installing $torch from TORCH_INDEX"
        pip_install --index-url "$TORCH_INDEX" --no-deps "$torch" || explain_pip_failure
    elif has_gpu; then
        require_disk 10000
        say "NVIDIA GPU found: installing $torch with CUDA (some gigabytes; TORCH_INDEX chooses another build)"
        pip_install "$torch" || explain_pip_failure
    else
        install_torch_without_gpu "$torch"
    fi
}

# Prefers the CPU build of torch (200 MB) to the CUDA build (gigabytes) where pip's index has it.
install_torch_without_gpu() {
    say "no NVIDIA GPU found: looking for the CPU build of $1 (200 MB)"
    if "$VENV_PYTHON" -m pip install --quiet --disable-pip-version-check --no-deps "$1+cpu" 2>"$PIP_LOG"; then
        return
    fi
    explain_known_failure
    say "pip's index has no build of torch that is marked as CPU-only, so this takes its default build."
    say "On Linux that may be the CUDA build: it works without a GPU, but is gigabytes large. To avoid it, interrupt"
    say "and run TORCH_INDEX=<URL of PyTorch's package index for CPU, see pytorch.org> bash scripts/setup.sh"
    pip_install "$1" || explain_pip_failure
}

verify() {
    "$VENV_PYTHON" - <<'PYTHON' || die "the installed packages do not work together (message above)." \
        "Make the environment again: rm -rf $VENV && bash scripts/setup.sh"
import importlib.metadata as metadata
import logging
import platform

logging.disable(logging.INFO)

import torch

import lmfusion

lmfusion.install()  # registers the models with fairseq

device = torch.cuda.get_device_name() if torch.cuda.is_available() else "CPU only"
fairseq = metadata.version("ve-fairseq")
print(f"setup: Python {platform.python_version()}, torch {torch.__version__} ({device}), ve-fairseq {fairseq}: ready")
PYTHON
}

main() {
    if venv_works; then
        require_same_python
        if [[ -f "$STAMP" && "$(cat "$STAMP")" == "$(fingerprint)" ]]; then
            say "$VENV is up to date"
            return
        fi
        say "completing $VENV: it is unfinished, or the package's requirements have changed"
    else
        choose_python
        require_venv_module
        require_disk 3000
        make_venv
    fi
    rm -f "$STAMP"
    say "installing (the first time: a few minutes, 1.5 GB on disk with the CPU build of torch)"
    install_torch
    pip_install --editable '.[dev,hf]' | only_news || explain_pip_failure
    verify
    fingerprint >"$STAMP"
}

main
