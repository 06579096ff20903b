"""Run fairseq's own tests plain and with lmfusion installed, and list those that only lmfusion breaks.

    python scripts/fairseq_tests.py FAIRSEQ/tests
    python scripts/fairseq_tests.py FAIRSEQ/tests --only 'test_sequence_*.py' --write-list scripts/fairseq_tests.txt

fairseq's packages do not contain its tests: take the folder from its repository, at the commit that
``scripts/fairseq_tests.txt`` names, which also lists the tests that pass without lmfusion. Every file of tests
runs in a process of its own, because a test that fails may leave the process in any state.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from xml.etree import ElementTree

NEEDS_GPU = "gpu"
SECONDS = 3600


def pytest_configure() -> None:
    """Install lmfusion; pytest calls this where this file is given as its plugin (``-p fairseq_tests``)."""
    import lmfusion

    lmfusion.install()


def passing(file: Path, root: Path, *, installed: bool) -> set[str]:
    """Run one file of tests and return the names of those that passed.

    Args:
        file: below ``root``.
        root: the folder that has ``tests`` in it; some tests read files by paths from there.
        installed: whether lmfusion is installed before the tests are imported.
    """
    report = root / "report.xml"
    report.unlink(missing_ok=True)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--junitxml={report}", "--rootdir", "."]
    command += (["-p", "fairseq_tests"] if installed else []) + [str(file.relative_to(root))]
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


def main() -> int:
    """Run the tests of a folder and return 1 if lmfusion breaks any."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("tests", type=Path, help="fairseq's folder tests")
    parser.add_argument("--only", default="test_*.py", metavar="PATTERN", help="of the files' names")
    parser.add_argument("--write-list", type=Path, metavar="FILE", help="write the tests that pass without lmfusion")
    args = parser.parse_args()
    plain: set[str] = set()
    broken: set[str] = set()
    with tempfile.TemporaryDirectory() as folder:  # a copy: beside its own sources fairseq would be imported from there
        root = Path(folder).resolve()
        shutil.copytree(args.tests, root / "tests")
        for file in sorted((root / "tests").rglob(args.only)):
            if NEEDS_GPU in file.relative_to(root).parts:
                continue
            without = passing(file, root, installed=False)
            lost = without - passing(file, root, installed=True) if without else set()
            print(f"{file.relative_to(root)}: {len(without)} pass, {len(lost)} of them not with lmfusion", flush=True)
            for name in sorted(lost):
                print(f"  {name}", flush=True)
            plain |= without
            broken |= lost
    print(f"{len(plain)} tests pass without lmfusion, {len(broken)} of them fail with it")
    if args.write_list:
        args.write_list.write_text("".join(f"{name}\n" for name in sorted(plain)), encoding="utf-8")
    return int(bool(broken) or not plain)


if __name__ == "__main__":
    sys.exit(main())
