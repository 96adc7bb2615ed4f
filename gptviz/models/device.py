"""Which device and number format a model runs in: chosen at call time, never at import.

Knows nothing of models. Memory figures come from torch (CUDA, MPS) or from the process (CPU).
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}


@dataclass(frozen=True)
class DeviceState:
    """A device in words and numbers; memory in bytes, None where it cannot be read."""

    name: str
    title: str
    memory_used: int | None
    memory_total: int | None


def available_devices() -> list[str]:
    """Names of the devices this machine has, best first: "cuda:0" ..., "mps", "cpu"."""
    names = [f"cuda:{i}" for i in range(torch.cuda.device_count())] if torch.cuda.is_available() else []
    if torch.backends.mps.is_available():
        names.append("mps")
    return [*names, "cpu"]


def choose_device(device: str = "auto") -> torch.device:
    """The torch device for a name; "auto" takes the best there is. ValueError naming what this machine has."""
    have = available_devices()
    if device == "auto":
        return torch.device(have[0])
    wanted = "cuda:0" if device == "cuda" else device
    if wanted not in have:
        raise ValueError(f"The device {device!r} is not on this machine; it has: {', '.join(have)}.")
    return torch.device(wanted)


def choose_dtype(dtype: str, device: torch.device) -> torch.dtype:
    """The torch dtype for a name; "auto" is bfloat16 on a CUDA card that computes in it, else float32."""
    if dtype == "auto":
        has_bf16 = device.type == "cuda" and torch.cuda.is_bf16_supported(including_emulation=False)
        return torch.bfloat16 if has_bf16 else torch.float32
    if dtype not in DTYPES:
        raise ValueError(f"The number format {dtype!r} is unknown; choose one of: auto, {', '.join(DTYPES)}.")
    return DTYPES[dtype]


def device_state(device: torch.device) -> DeviceState:
    """Name and memory of a device as the sidebar shows them."""
    if device.type == "cuda":
        free, total = torch.cuda.mem_get_info(device)
        return DeviceState(str(device), torch.cuda.get_device_name(device), total - free, total)
    if device.type == "mps":
        return DeviceState("mps", "Apple GPU", torch.mps.driver_allocated_memory(), torch.mps.recommended_max_memory())
    import psutil

    return DeviceState("cpu", "CPU", psutil.Process().memory_info().rss, psutil.virtual_memory().total)


def release(device: torch.device) -> None:
    """Give memory that torch keeps in reserve back to the device."""
    if device.type == "cuda":
        torch.cuda.empty_cache()
    elif device.type == "mps":
        torch.mps.empty_cache()
