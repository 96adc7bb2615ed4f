"""Download files with progress, stop, resume and checksum; finished folders appear in one rename.

Serves every source alike (package index, Hugging Face hub). Unfinished bytes lie in ``partial/`` under the
home folder, never among the models. Knows nothing of what the files mean.
"""

from __future__ import annotations

import errno
import hashlib
import shutil
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import requests

BLOCK = 1 << 18
TIMEOUT = (10, 60)  # seconds to connect, seconds without a byte


class FetchError(ValueError):
    """A download that could not be done; the message is one sentence for the reader."""


class FetchStopped(FetchError):
    """The reader pressed stop. What has arrived is kept, and the next try goes on from there."""


@dataclass(frozen=True)
class RemoteFile:
    """One file to fetch: where it is, what it will be called, and what is known of it."""

    url: str
    path: str  # relative to the folder
    size: int | None = None
    sha256: str | None = None


@dataclass(frozen=True)
class Progress:
    """How far a fetch is. Speed in bytes per second over the last seconds; None where not known yet."""

    phase: str  # "connecting", "fetching", "checking", "converting", "ready", "failed", "stopped"
    done_bytes: int = 0
    total_bytes: int | None = None
    speed: float | None = None
    file: str = ""
    message: str = ""

    @property
    def seconds_left(self) -> float | None:
        if not self.speed or self.total_bytes is None:
            return None
        return max(0.0, (self.total_bytes - self.done_bytes) / self.speed)

    @property
    def fraction(self) -> float | None:
        return min(1.0, self.done_bytes / self.total_bytes) if self.total_bytes else None


Report = Callable[[Progress], None]


class _Meter:
    """Turns byte counts into Progress, at most ten a second."""

    def __init__(self, report: Report, total: int | None, done: int):
        self.report, self.total, self.done = report, total, done
        self.marks: deque[tuple[float, int]] = deque([(time.monotonic(), done)], maxlen=50)
        self.last = 0.0

    def add(self, n: int, file: str) -> None:
        self.done += n
        now = time.monotonic()
        if now - self.last < 0.1 and self.done != self.total:
            return
        self.last = now
        self.marks.append((now, self.done))
        (t0, b0), elapsed = self.marks[0], now - self.marks[0][0]
        speed = (self.done - b0) / elapsed if elapsed > 0.2 else None
        self.report(Progress("fetching", self.done, self.total, speed, file))


def fetch_files(
    files: Sequence[RemoteFile],
    folder: Path,
    report: Report = lambda _: None,
    should_stop: Callable[[], bool] = lambda: False,
    session: requests.Session | None = None,
) -> None:
    """Fetch ``files`` into ``folder``; whatever lies there from an earlier try is continued, not repeated.

    FetchError (one sentence): no network, no such file, wrong checksum, disk full. FetchStopped on stop.
    """
    folder.mkdir(parents=True, exist_ok=True)
    sizes = [f.size for f in files]
    total = sum(sizes) if all(size is not None for size in sizes) else None
    done = sum((folder / f.path).stat().st_size for f in files if (folder / f.path).exists())
    if total is not None and shutil.disk_usage(folder).free < total - done:
        raise _disk_full(folder, total - done)
    meter = _Meter(report, total, done)
    report(Progress("connecting", done, total))
    own = session or requests.Session()
    try:
        for file in files:
            _fetch_one(own, file, folder / file.path, meter, should_stop)
            if file.sha256:
                report(Progress("checking", meter.done, total, None, file.path))
                _check(folder / file.path, file)
    except OSError as error:  # requests' own errors are OSErrors too
        raise _sentence(error, folder, files[0].url) from error
    finally:
        if session is None:
            own.close()


def _fetch_one(session, file: RemoteFile, target: Path, meter: _Meter, should_stop) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    have = target.stat().st_size if target.exists() else 0
    if file.size is not None and have == file.size:
        return
    if file.size is not None and have > file.size:
        meter.done -= have
        target.unlink()
        have = 0
    headers = {"Range": f"bytes={have}-", "Accept-Encoding": "identity"} if have else {"Accept-Encoding": "identity"}
    with session.get(file.url, headers=headers, stream=True, timeout=TIMEOUT) as answer:
        if answer.status_code == 416:  # nothing left to send: the file is whole
            return
        if answer.status_code in (401, 403):
            raise FetchError(f"The server refuses {file.path!r} ({answer.status_code}): it needs an access token.")
        if answer.status_code == 404:
            raise FetchError(f"The server has no file {file.path!r} (404); check the name and the revision.")
        answer.raise_for_status()
        if have and answer.status_code != 206:  # the server cannot continue: start this file again
            meter.done -= have
            have = 0
        with target.open("ab" if have else "wb") as out:
            for block in answer.iter_content(BLOCK):
                out.write(block)
                meter.add(len(block), file.path)
                if should_stop():
                    raise FetchStopped(f"Stopped at {meter.done / 1e6:.0f} MB; the next try goes on from there.")
    size = target.stat().st_size
    if file.size is not None and size != file.size:
        raise FetchError(
            f"The connection ended early: {file.path!r} has {size:,} of {file.size:,} bytes. Try again: it goes on from there."
        )


def _check(path: Path, file: RemoteFile) -> None:
    with path.open("rb") as stream:
        found = hashlib.file_digest(stream, "sha256").hexdigest()
    if found != file.sha256:
        path.unlink()
        raise FetchError(f"{file.path!r} arrived damaged (its sha256 is {found[:12]}..., not {file.sha256[:12]}...) and was deleted; try again.")


def _disk_full(folder: Path, needed: int) -> FetchError:
    free = shutil.disk_usage(folder).free
    return FetchError(
        f"The disk is too full: {needed / 1e6:.0f} MB are needed under GPTVIZ_HOME and {free / 1e6:.0f} MB are free."
    )


def _sentence(error: OSError, folder: Path, url: str) -> FetchError:
    if isinstance(error, FetchError):
        return error
    if error.errno == errno.ENOSPC:
        shutil.rmtree(folder, ignore_errors=True)  # its bytes are what fills the disk
        return FetchError("The disk filled up during the download; the unfinished part was removed. Free some space and try again.")
    host = url.split("/")[2] if "//" in url else url
    if isinstance(error, requests.HTTPError):
        return FetchError(f"The server {host} answered {error.response.status_code}; try again later.")
    if isinstance(error, requests.RequestException):
        return FetchError(f"No connection to {host}: check the network, or set GPTVIZ_OFFLINE=1 to work without it. What has arrived is kept.")
    return FetchError(f"The download could not be written: {error.strerror or error}.")


def finished(progress: Progress, phase: str, message: str = "") -> Progress:
    """The same progress in a final phase."""
    return replace(progress, phase=phase, message=message, speed=None)
