"""Stand-ins for Debian packages, made with the standard library, and a small corpus that goes with them."""

from __future__ import annotations

import gzip
import hashlib
import io
import struct
import tarfile
from pathlib import Path

ENGLISH = """\
The program reads the file and writes what it found to the standard output.
This package contains the header files that are needed to build other programs.
It is a small tool for the command line which shows the size of a folder.
You can use this library in your own programs if you do not change the licence.
There are many ways to set the options of this editor, and none of them is wrong.
The server is able to answer more than one request at the same time.
With this module the language has a fast parser for all of these formats."""
GERMAN = """\
Das Programm liest die Datei und schreibt auf die Standardausgabe, was es gefunden hat.
Dieses Paket enthält die Header-Dateien, die zum Bauen anderer Programme benötigt werden.
Es ist ein kleines Werkzeug für die Befehlszeile, das die Größe eines Ordners zeigt.
Sie können diese Bibliothek in eigenen Programmen nutzen, wenn Sie die Lizenz nicht ändern.
Es gibt viele Wege, die Optionen dieses Editors zu setzen, und keiner von ihnen ist falsch.
Der Server ist in der Lage, mehr als eine Anfrage zur gleichen Zeit zu beantworten.
Mit diesem Modul hat die Sprache einen schnellen Parser für alle diese Formate."""
DATE = "Sat, 17 May 2025 09:27:57 UTC"  # of a release
HELD_OUT = {
    "en": "The quick viewer shows every picture of the folder in the order of its name.",
    "de": "Der schnelle Betrachter zeigt jedes Bild des Ordners in der Reihenfolge des Namens.",
}


def make_lists(folder: Path, texts: dict[str, str]) -> Path:
    """A folder as apt leaves it: the archive's name in front, slashes made underscores, underscores quoted."""
    folder.mkdir()
    rows = ""
    for name, text in texts.items():
        file = f"archive.example/debian/dists/bookworm/{name}".replace("_", "%5f").replace("/", "_")
        (folder / file).write_text(text, encoding="utf-8")
        rows += f" {hashlib.sha256(text.encode()).hexdigest()} {len(text.encode())} {name}\n"
    release = f"Origin: Debian\nCodename: bookworm\nVersion: 12.11\nDate: {DATE}\nSHA256:\n{rows}"
    (folder / "archive.example_debian_dists_bookworm_InRelease").write_text(release, encoding="utf-8")
    return folder


def make_corpus(folder: Path) -> Path:
    """A corpus folder: the sentences above for training, one held-out sentence of each language."""
    folder.mkdir()
    for lang, text in (("en", ENGLISH), ("de", GERMAN)):
        for name in ("train", "mono.train"):
            (folder / f"{name}.{lang}").write_text(text + "\n", encoding="utf-8")
        for name in ("valid", "test", "mono.valid"):
            (folder / f"{name}.{lang}").write_text(HELD_OUT[lang] + "\n", encoding="utf-8")
    return folder


def make_deb(folder: Path, package: str, files: dict[str, bytes], version: str = "1.0", source: str = "") -> str:
    """Write a package and return its row of the table, without the kinds and languages."""
    control = f"Package: {package}\nVersion: {version}\n" + (f"Source: {source}\n" if source else "")
    members = [
        ("debian-binary", b"2.0\n"),
        ("control.tar.xz", _tar({"control": control.encode()})),
        ("data.tar.xz", _tar(files)),
    ]
    data = b"!<arch>\n"
    for name, content in members:
        data += f"{name:<16}{0:<12}{0:<6}{0:<6}{'100644':<8}{len(content):<10}`\n".encode() + content
        data += b"\n" * (len(content) % 2)
    (folder / f"{package}_{version}_all.deb").write_bytes(data)
    return f"{version}\t{hashlib.sha256(data).hexdigest()}\tGPL-2+"


def _tar(files: dict[str, bytes]) -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:xz") as tar:
        for name, content in files.items():
            info = tarfile.TarInfo(f"./{name}")
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    return stream.getvalue()


def page(text: str) -> bytes:
    """A compressed manual page."""
    return gzip.compress(text.encode())


def catalog(messages: dict[str, str]) -> bytes:
    """A message catalog (.mo), as the GNU gettext manual describes the format."""
    header = {"": "Content-Type: text/plain; charset=UTF-8\nPlural-Forms: nplurals=2; plural=n != 1;\n"}
    pairs = sorted((key.encode(), value.encode()) for key, value in {**header, **messages}.items())
    tables: list[bytes] = []
    strings, offset = b"", 28 + 16 * len(pairs)
    for side in (0, 1):
        table = b""
        for pair in pairs:
            table += struct.pack("<II", len(pair[side]), offset + len(strings))
            strings += pair[side] + b"\0"
        tables.append(table)
    sizes = struct.pack("<7I", 0x950412DE, 0, len(pairs), 28, 28 + 8 * len(pairs), 0, 28 + 16 * len(pairs))
    return sizes + b"".join(tables) + strings
