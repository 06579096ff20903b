"""Package and translation indices, fetched by apt into a private folder and checked against the Release file.

The user's own apt state is neither read from nor written to: their indices may be missing (containers switch
translations off), stale, or of other languages. apt's settings for proxies and mirrors apply as always.
"""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from .errors import CorpusError

ARCHITECTURE = "amd64"  # always this one, so that the corpus does not depend on the machine that builds it
KEYRINGS = Path("/usr/share/keyrings")
SNAPSHOT_HINT = "The frozen English-German corpus in data-prep/debian/en-de needs no apt: use that instead."


@dataclass(frozen=True)
class Indices:
    """The three indices' texts and where they come from."""

    packages: str
    english: str
    target: str
    release: dict[str, str]  # Origin, Codename, Version, Date of the Release file
    checksums: dict[str, str]  # index name within the suite -> SHA-256


def fetch(suite: str | None, lang: str, component: str, mirror: str | None, folder: Path) -> None:
    """Let apt download the Release file and the three indices into `folder`."""
    if shutil.which("apt-get") is None:
        raise CorpusError(f"apt-get is not on this machine; only Debian and its derivatives have it. {SNAPSHOT_HINT}")
    suite = suite or _own_suite()
    mirror = mirror or _mirror(suite, component)
    (folder / "lists" / "partial").mkdir(parents=True)
    (folder / "cache" / "archives" / "partial").mkdir(parents=True)
    signed = next(iter(sorted(KEYRINGS.glob(f"{_own('ID')}-archive-keyring.*"))), None)
    options = f"arch={ARCHITECTURE}" + (f" signed-by={signed}" if signed else "")
    (folder / "sources.list").write_text(f"deb [{options}] {mirror} {suite} {component}\n")
    command = ["apt-get", "update", "-q", *_private(folder)]
    settings = [f"Acquire::Languages=en,{lang}", "Acquire::GzipIndexes=false", "APT::Update::Error-Mode=any"]
    command += [part for setting in settings for part in ("-o", setting)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        said = [line for line in done.stderr.splitlines() if line.startswith(("E:", "W:"))]
        detail = "\n  ".join(dict.fromkeys(said)) or done.stderr.strip() or "no message"
        raise CorpusError(
            f"apt-get could not fetch the indices of {suite}: is there a network, room on the disk, and such a suite?\n"
            f"  {detail}\n{SNAPSHOT_HINT}"
        )


def _private(folder: Path) -> list[str]:
    """apt options that keep it within `folder`."""
    settings = {
        "Dir::Etc::sourcelist": folder / "sources.list",
        "Dir::Etc::sourceparts": "/dev/null",
        "Dir::State::Lists": folder / "lists",
        "Dir::Cache": folder / "cache",
        "Debug::NoLocking": "true",
        "APT::Sandbox::User": "",  # the download user could not write into a private folder
    }
    return [part for name, value in settings.items() for part in ("-o", f"{name}={value}")]


def _own(name: str) -> str:
    """A value of this system's os-release, "" if it has none."""
    path = Path("/etc/os-release")
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    match = re.search(rf'^{name}="?([^"\n]*)', text, re.MULTILINE)
    return match.group(1) if match else ""


def _own_suite() -> str:
    suite = _own("VERSION_CODENAME")
    if not suite:
        raise CorpusError("this system's /etc/os-release does not say which release it is: give --suite")
    return suite


def _mirror(suite: str, component: str) -> str:
    """The address this machine fetches Debian from: where the suite comes from, or else its own release."""
    form = "$(CREATED_BY)\t$(RELEASE)\t$(COMPONENT)\t$(REPO_URI)"
    command = ["apt-get", "indextargets", "--format", form]
    listed = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    targets = [line.split("\t") for line in listed.splitlines()]
    for wanted in (suite, _own("VERSION_CODENAME")):
        for target in targets:
            if target[:3] == ["Packages", wanted, component]:
                return target[3]
    raise CorpusError(
        f"this machine's apt sources have no {component} component of {suite}: give the archive's address by --mirror"
    )


def read(folder: Path, lang: str, component: str) -> Indices:
    """Read and check the indices in a folder of apt lists."""
    release_text = _find(folder, "InRelease").read_text(encoding="utf-8")
    known = _names(release_text)
    target_name = f"{component}/i18n/Translation-{lang}"
    if target_name not in known:
        found = (re.fullmatch(rf"{component}/i18n/Translation-([A-Za-z_]+)", name) for name in known)
        available = ", ".join(sorted(match.group(1) for match in found if match))
        raise CorpusError(f"this suite has no translations into {lang!r}; it has: {available or 'none'}")
    names = [f"{component}/binary-{ARCHITECTURE}/Packages", f"{component}/i18n/Translation-en", target_name]
    texts: list[str] = []
    for name in names:
        data = _find(folder, _file_name(name)).read_bytes()
        if hashlib.sha256(data).hexdigest() != known.get(name):
            raise CorpusError(f"{name} is truncated or damaged: not the checksum of the Release file. Fetch it again.")
        texts.append(data.decode("utf-8"))
    fields = dict(re.findall(r"^(Origin|Codename|Version|Date): (.*)$", release_text, re.MULTILINE))
    packages, english, target = texts
    return Indices(packages, english, target, fields, {name: known[name] for name in names})


def _names(release_text: str) -> dict[str, str]:
    """Index name -> SHA-256, as the Release file lists them."""
    rows = re.findall(r"^ ([0-9a-f]{64})\s+\d+ (\S+)$", release_text, re.MULTILINE)
    return {name: digest for digest, name in rows}


def _file_name(name: str) -> str:
    """An index's name as apt calls its file: "/" becomes "_", and what was "_" (Translation-pt_BR) is quoted."""
    return name.replace("_", "%5f").replace("/", "_")


def _find(folder: Path, ending: str) -> Path:
    """The one file of that name, with or without the archive's name in front as apt has it."""
    found = sorted(path for path in folder.glob(f"*{ending}") if re.search(rf"(?:^|_){re.escape(ending)}$", path.name))
    if len(found) != 1:
        problem = "no" if not found else "more than one"
        raise CorpusError(f"{problem} file {ending} among the indices in {folder}. {SNAPSHOT_HINT}")
    return found[0]
