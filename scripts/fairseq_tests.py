"""Run fairseq's own tests plain and with lmfusion installed, and list those that only lmfusion breaks.

    python scripts/fairseq_tests.py FAIRSEQ/tests
    python scripts/fairseq_tests.py FAIRSEQ/tests --list scripts/fairseq_tests.txt     # tests that pass plain are known
    python scripts/fairseq_tests.py FAIRSEQ/tests --write-list scripts/fairseq_tests.txt

fairseq's packages do not contain its tests: take the folder from its repository, at the commit that
``scripts/fairseq_tests.txt`` names. Every file of tests runs in a process of its own, because a test that fails may
leave the process in any state. An hour of one CPU core, half of it for the tests of whole trainings.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

NEEDS_GPU = "gpu"
SECONDS = 3600


def pytest_addoption(parser: Any) -> None:
    """Add a flag; pytest calls this and the next two where this file is its plugin (``-p fairseq_tests``)."""
    parser.addoption("--passing", type=Path, required=True, help="names of the tests to run, one a line")


def pytest_configure() -> None:
    """Install lmfusion, before tests are imported."""
    import lmfusion

    lmfusion.install()


def pytest_collection_modifyitems(config: Any, items: list[Any]) -> None:
    """Run the tests of ``--passing`` alone: others may train for minutes, and nothing is to be learned from them."""
    wanted = set(config.getoption("--passing").read_text(encoding="utf-8").splitlines())
    items[:] = [item for item in items if name_of(item.nodeid) in wanted]


def name_of(node: str) -> str:
    """Return the name of a test in pytest's reports: ``tests/a.py::B::c`` is ``tests.a.B::c``."""
    path, *inside = node.split("::")
    return ".".join([path.removesuffix(".py").replace("/", "."), *inside[:-1]]) + f"::{inside[-1]}"


def passing(file: Path, root: Path, only: set[str] | None = None) -> set[str]:
    """Run one file of tests and return the names of those that passed.

    Args:
        file: below ``root``.
        root: the folder that has ``tests`` in it; some tests read files by paths from there.
        only: run these, with lmfusion installed; else all, without.
    """
    report = root / "report.xml"
    report.unlink(missing_ok=True)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--junitxml={report}", "--rootdir", "."]
    if only is not None:
        (root / "only.txt").write_text("\n".join(sorted(only)), encoding="utf-8")
        command += ["-p", "fairseq_tests", "--passing", str(root / "only.txt")]
    command += [str(file.relative_to(root))]
    paths = [str(Path(__file__).parent), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}
    environment["PYTHONPATH"] = os.pathsep.join(paths)
    try:
        subprocess.run(command, cwd=root, env=environment, timeout=SECONDS, check=False, capture_output=True)
    except subprocess.TimeoutExpired:
        print(f"  {file.name} was stopped after {SECONDS} s: its tests count as not passed", flush=True)
        return set()
    if not report.exists():  # the process crashed
        return set()
    names: dict[bool, set[str]] = {True: set(), False: set()}
    for case in ElementTree.parse(report).iter("testcase"):  # a test with subtests has one entry for each
        good = not {part.tag for part in case} & {"failure", "error", "skipped"}
        names[good].add(f"{case.get('classname')}::{case.get('name')}")
    return names[True] - names[False]


def read_list(path: Path) -> set[str]:
    """Return the names in a list of tests; lines with ``#`` at their beginning are none."""
    return {line for line in path.read_text(encoding="utf-8").splitlines() if line and not line.startswith("#")}


def check(tests: Path, pattern: str, known: set[str] | None) -> tuple[set[str], set[str]]:
    """Return the tests that pass without lmfusion, and those of them that fail with it."""
    plain: set[str] = set()
    broken: set[str] = set()
    with tempfile.TemporaryDirectory() as folder:  # a copy: beside its own sources fairseq would be imported from there
        root = Path(folder).resolve()
        shutil.copytree(tests, root / "tests")
        for file in sorted((root / "tests").rglob(pattern)):
            name = file.relative_to(root)
            if NEEDS_GPU in name.parts:
                continue
            module = str(name.with_suffix("")).replace(os.sep, ".")
            here = {n for n in known if n.startswith((f"{module}.", f"{module}::"))} if known is not None else None
            without = passing(file, root) if here is None else here
            lost = without - passing(file, root, without) if without else set()
            print(f"{name}: {len(without)} pass, {len(lost)} of them not with lmfusion", flush=True)
            for test in sorted(lost):
                print(f"  {test}", flush=True)
            plain |= without
            broken |= lost
    return plain, broken


def main() -> int:
    """Run the tests of a folder and return 1 if lmfusion breaks any."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("tests", type=Path, help="fairseq's folder tests")
    parser.add_argument("--only", default="test_*.py", metavar="PATTERN", help="of the files' names")
    parser.add_argument("--list", type=Path, metavar="FILE", help="of tests that pass without lmfusion")
    parser.add_argument("--write-list", type=Path, metavar="FILE", help="write the tests that pass without lmfusion")
    args = parser.parse_args()
    plain, broken = check(args.tests, args.only, read_list(args.list) if args.list else None)
    print(f"{len(plain)} tests pass without lmfusion, {len(broken)} of them fail with it")
    if args.write_list:
        args.write_list.write_text("".join(f"{name}\n" for name in sorted(plain)), encoding="utf-8")
    return int(bool(broken) or not plain)


if __name__ == "__main__":
    sys.exit(main())
