"""``load``: a name becomes a LanguageModel, kept in memory with a few others.

Names: a card of the catalogue, "random-gpt2" and its like, a hub name ("owner/model", with @revision if wished),
or a local folder. Only safetensors, never remote code.
"""

from __future__ import annotations

import gc
import re
import threading
from collections import OrderedDict
from pathlib import Path

from gptviz import settings
from gptviz.models import catalog, sources, tiny
from gptviz.models.device import choose_device, choose_dtype, release
from gptviz.models.fetch import Report
from gptviz.models.language_model import LanguageModel

_HUB_NAME = re.compile(r"[\w.-]+(/[\w.-]+)?(@[\w./-]+)?")


class ModelPool:
    """At most ``settings.max_models()`` models in memory; the one unused for longest goes first."""

    def __init__(self) -> None:
        self._models: OrderedDict[tuple, LanguageModel] = OrderedDict()
        self._lock = threading.Lock()
        self._loading: dict[tuple, threading.Lock] = {}

    def get(self, key: tuple, make) -> LanguageModel:
        """The model under ``key``, made by ``make()`` if it is not there; two callers at once make it once."""
        with self._lock:
            if key in self._models:
                self._models.move_to_end(key)
                return self._models[key]
            gate = self._loading.setdefault(key, threading.Lock())
        with gate:
            with self._lock:
                if key in self._models:
                    return self._models[key]
            self._make_room(settings.max_models() - 1)
            model = make()
            with self._lock:
                self._models[key] = model
                self._loading.pop(key, None)
            return model

    def _make_room(self, keep: int) -> None:
        dropped = []
        with self._lock:
            for key in list(self._models):
                if len(self._models) <= keep:
                    break
                if self._models[key].lock.acquire(blocking=False):  # one that is computing is in use
                    self._models[key].lock.release()
                    dropped.append(self._models.pop(key).device)
        if dropped:
            gc.collect()
            for device in dropped:
                release(device)

    def loaded(self) -> list[LanguageModel]:
        """The models in memory, the one used last at the end."""
        with self._lock:
            return list(self._models.values())

    def clear(self) -> None:
        """Release all models."""
        self._make_room(0)


pool = ModelPool()


def local_folder(path: str) -> Path:
    """A local model folder, checked. ValueError: outside the allowed roots, missing, or without safetensors."""
    folder = Path(path).expanduser().resolve()
    roots = settings.model_roots()
    if not any(folder.is_relative_to(root) for root in roots):
        listed = ", ".join(str(root) for root in roots)
        raise ValueError(f"The folder {path!r} lies outside the allowed roots ({listed}); GPTVIZ_MODEL_ROOTS sets them.")
    if not folder.is_dir():
        raise ValueError(f"There is no folder {path!r}.")
    if not (folder / "config.json").is_file():
        raise ValueError(f"The folder {path!r} has no config.json, so it is no transformers model.")
    if not list(folder.glob("*.safetensors")):
        raise ValueError(f"The folder {path!r} has no .safetensors weights; other formats can run code when opened, and are not read.")
    return folder


def read_folder(folder: Path, name: str, device, dtype, source: str = "folder") -> LanguageModel:
    """Read a transformers folder into a LanguageModel on a device. ValueError where it cannot be read."""
    from transformers import AutoModelForCausalLM, AutoTokenizer
    from transformers.utils import logging

    from gptviz.models import lstm

    lstm.register()
    logging.disable_progress_bar()  # a server's log is no place for a bar
    try:
        tokenizer = AutoTokenizer.from_pretrained(folder, trust_remote_code=False, local_files_only=True)
        model = AutoModelForCausalLM.from_pretrained(
            folder, dtype=dtype, use_safetensors=True, trust_remote_code=False, local_files_only=True
        )
    except (ValueError, OSError, KeyError, ImportError) as error:
        reason = str(error).strip().split("\n")[0][:200]
        raise ValueError(f"The model {name!r} cannot be read: {reason}") from error
    if not tokenizer.is_fast:
        raise ValueError(f"The model {name!r} has no fast tokenizer (tokenizer.json), which the token views need.")
    card = catalog.card(name)
    return LanguageModel(name, model.to(device), tokenizer, title=card.title if card else name, source=source)


def load(
    name: str = catalog.DEFAULT,
    device: str | None = None,
    dtype: str = "auto",
    seed: int = 0,
    report: Report = lambda _: None,
) -> LanguageModel:
    """The LanguageModel of a name; fetched if it is not on this machine, kept in memory for the next call.

    name: catalogue name, "random-<family>", "owner/model" or "owner/model@revision" on the hub, or a local folder.
    device: "auto", "cpu", "cuda", "cuda:1", "mps"; dtype: "auto", "float32", "bfloat16", "float16".
    Raises ValueError (FetchError among them) with one sentence.
    """
    where = choose_device(device or settings.default_device())
    number = choose_dtype(dtype, where)
    if name.startswith("random-"):
        family = name.removeprefix("random-")

        def make() -> LanguageModel:
            model, tokenizer = tiny.tiny_model(family, seed)
            return LanguageModel(name, model.to(where, number), tokenizer, title=f"Random {family}", source="random")

        return pool.get((name, seed, str(where), number), make)
    folder, source = resolve(name, report)
    key = (name, str(folder), folder.stat().st_mtime_ns, str(where), number)
    return pool.get(key, lambda: read_folder(folder, name, where, number, source))


def resolve(name: str, report: Report = lambda _: None) -> tuple[Path, str]:
    """The folder of a name and its source; fetches where needed."""
    for root, source in ((catalog.BUNDLED, "bundled"), (catalog.trained_folder(), "folder")):
        if re.fullmatch(r"[\w.-]+", name) and catalog.is_ready(root / name):
            return root / name, source
    if Path(name).expanduser().is_dir() or name.startswith((".", "/", "~")):
        return local_folder(name), "folder"
    if not _HUB_NAME.fullmatch(name) or ".." in name:
        raise ValueError(f"{name!r} is no model name; a name looks like 'smollm2-135m', 'distilbert/distilgpt2' or a folder.")
    base, _, revision = name.partition("@")
    card = catalog.card(base)
    return sources.obtain(base, revision, report), card.source if card else "hub"
