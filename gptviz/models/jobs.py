"""Fetches under way: one thread a model, shared by every browser tab that asks for it.

The page reads ``progress`` and never waits. Knows nothing of streamlit.
"""

from __future__ import annotations

import threading

from gptviz.models import sources
from gptviz.models.fetch import FetchError, FetchStopped, Progress, finished


class FetchJob:
    """One fetch in its own thread. ``progress`` is replaced whole, so it can be read at any time."""

    def __init__(self, name: str, revision: str = ""):
        self.name, self.revision = name, revision
        self.progress = Progress("connecting")
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"fetch-{name}", daemon=True)
        self._thread.start()

    def _report(self, progress: Progress) -> None:
        self.progress = progress

    def _run(self) -> None:
        try:
            sources.obtain(self.name, self.revision, self._report, self._stop.is_set)
            self.progress = finished(self.progress, "ready")
        except FetchStopped as stopped:
            self.progress = finished(self.progress, "stopped", str(stopped))
        except FetchError as error:
            self.progress = finished(self.progress, "failed", str(error))
        except Exception as error:  # a thread's error must reach the reader too
            self.progress = finished(self.progress, "failed", f"The model could not be fetched: {type(error).__name__}: {error}")

    def stop(self) -> None:
        """Ask the fetch to stop at the next block; what has arrived is kept."""
        self._stop.set()

    def wait(self, seconds: float | None = None) -> Progress:
        """Wait for the end (or so many seconds) and return the progress."""
        self._thread.join(seconds)
        return self.progress

    @property
    def running(self) -> bool:
        return self._thread.is_alive()


_jobs: dict[tuple[str, str], FetchJob] = {}
_lock = threading.Lock()


def start(name: str, revision: str = "") -> FetchJob:
    """The fetch of a model: the one under way if there is one, else a new one."""
    with _lock:
        job = _jobs.get((name, revision))
        if job is None or (not job.running and job.progress.phase != "ready"):
            job = _jobs[name, revision] = FetchJob(name, revision)
        return job


def find(name: str, revision: str = "") -> FetchJob | None:
    """The latest fetch of a model in this process, running or ended, or None."""
    return _jobs.get((name, revision))
