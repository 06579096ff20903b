"""Downloads: resumed, verified, refused by name. A web server on this machine stands for the real ones."""

from __future__ import annotations

import gzip
import hashlib
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from paper_corpora.fetch import Downloads
from paper_corpora.sources import Source

from lmfusion.text import textio

BODY = bytes(range(256)) * 1000
SHA256 = hashlib.sha256(BODY).hexdigest()
MD5 = hashlib.md5(BODY, usedforsecurity=False).hexdigest()


@dataclass
class Server:
    """Serves BODY; breaks off after `breaks_after` bytes of an answer; notes from where it was asked."""

    url: str = ""
    ranges: bool = True
    breaks_after: int | None = None
    asked: list[str | None] = field(default_factory=list)


@pytest.fixture
def server() -> Iterator[Server]:
    """A running server."""
    state = Server()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked = self.headers.get("Range")
            state.asked.append(asked)
            start = int(asked.removeprefix("bytes=").rstrip("-")) if asked and state.ranges else 0
            if start >= len(BODY):
                self.send_error(416)
                return
            self.send_response(206 if start else 200)
            self.send_header("Content-Length", str(len(BODY) - start))
            self.end_headers()
            self.wfile.write(BODY[start:][: state.breaks_after])

        def log_message(self, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as running:
        state.url = f"http://127.0.0.1:{running.server_port}/corpus.tgz"
        threading.Thread(target=running.serve_forever, daemon=True).start()
        yield state
        running.shutdown()


def source(url: str, checksum: str | None = f"sha256:{SHA256}", size: int = len(BODY), known: bool = True) -> Source:
    """A row of the table."""
    return Source("corpus", "corpus.tgz", url, size, known, checksum, {}, "-", "-")


def test_half_a_download_is_kept_and_continued(server: Server, tmp_path: Path) -> None:
    server.breaks_after = 100_000
    with pytest.raises(textio.DataError, match=r"corpus: the connection broke after 100,000 of 256,000 bytes"):
        Downloads(tmp_path).get(source(server.url))
    assert (tmp_path / "corpus.tgz.part").read_bytes() == BODY[:100_000]
    assert not (tmp_path / "corpus.tgz").exists()
    server.breaks_after = None
    assert Downloads(tmp_path).get(source(server.url)).read_bytes() == BODY
    assert server.asked == [None, "bytes=100000-"]
    assert not (tmp_path / "corpus.tgz.part").exists()


def test_a_server_that_cannot_continue_starts_again(server: Server, tmp_path: Path) -> None:
    server.ranges = False
    (tmp_path / "corpus.tgz.part").write_bytes(b"x" * 100)
    assert Downloads(tmp_path).get(source(server.url)).read_bytes() == BODY


def test_a_complete_partial_file_is_only_verified(server: Server, tmp_path: Path) -> None:
    (tmp_path / "corpus.tgz.part").write_bytes(BODY)
    assert Downloads(tmp_path).get(source(server.url, f"md5:{MD5}")).read_bytes() == BODY


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"checksum": "md5:" + "0" * 32}, rf"corpus: .*is not the published file \(md5 {MD5} instead of 0+\); delete"),
        ({"size": 300_000}, r"corpus: .*has 256,000 of 300,000 bytes"),
        ({"size": 5}, r"corpus: .*has 256,000 bytes instead of 5; delete .* or give another file by --local corpus="),
    ],
)
def test_another_file_than_the_published_one_is_refused_by_name(
    server: Server, tmp_path: Path, row: dict[str, object], message: str
) -> None:
    with pytest.raises(textio.DataError, match=message):
        Downloads(tmp_path).get(source(server.url, **row))  # type: ignore[arg-type]
    assert not (tmp_path / "corpus.tgz").exists()


def test_an_unknown_size_and_checksum_are_no_obstacle_but_what_came_is_recorded(server: Server, tmp_path: Path) -> None:
    downloads = Downloads(tmp_path)
    downloads.get(source(server.url, None, size=1, known=False))
    assert downloads.verified["corpus"]["sha256"] == SHA256
    assert Downloads(tmp_path).verified == downloads.verified


def test_a_page_in_place_of_a_compressed_file_of_unknown_size_is_refused(tmp_path: Path) -> None:
    """As a proxy's, which comes with status 200."""
    page = tmp_path / "news.2012.en.shuffled.gz"
    page.write_bytes(b"<!DOCTYPE html><title>Please log in</title>")
    news = source(page.as_uri(), checksum=None, size=750_000_000, known=False)
    (tmp_path / "downloads").mkdir()
    with pytest.raises(textio.DataError, match=r"is not compressed, .* perhaps a page .*--local"):
        Downloads(tmp_path / "downloads").get(news)
    page.write_bytes(gzip.compress(b"A sentence.\n"))
    (tmp_path / "downloads" / "corpus.tgz.part").unlink()
    assert Downloads(tmp_path / "downloads").get(news).read_bytes() == page.read_bytes()


def test_a_file_that_changed_after_its_use_is_refused(server: Server, tmp_path: Path) -> None:
    row = source(server.url, None, size=1, known=False)
    path = Downloads(tmp_path).get(row)
    path.write_bytes(BODY + b"more")
    with pytest.raises(textio.DataError, match=r"corpus: .*has changed since it was used \(sha256 [0-9a-f]+, was"):
        Downloads(tmp_path).check_unchanged(row)
    path.write_bytes(BODY)  # put back, at another time
    Downloads(tmp_path).check_unchanged(row)


def test_a_damaged_record_is_named_with_what_deleting_it_means(tmp_path: Path) -> None:
    (tmp_path / "verified.json").write_text('{"corpus": ', encoding="utf-8")
    with pytest.raises(textio.DataError, match=r"verified\.json: is damaged .*Delete it: every download is verified"):
        Downloads(tmp_path)


def test_an_address_that_does_not_answer_is_one_error_with_the_mend(tmp_path: Path) -> None:
    with pytest.raises(textio.DataError, match=r"cannot be fetched .* give it by --local corpus=PATH"):
        Downloads(tmp_path).get(source((tmp_path / "absent.tgz").as_uri()))
