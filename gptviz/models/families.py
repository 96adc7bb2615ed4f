"""Where each model family keeps its parts: blocks, attention, output projection, final norm.

The only file that knows transformers' attribute names. It runs nothing.
Source: transformers 5.24, models/{openai,gpt2,gpt_neo,gpt_neox,opt,llama}/modeling_*.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce

import torch

from gptviz.types.language import ModelSpec


@dataclass(frozen=True)
class Family:
    """Attribute paths inside a transformers ForCausalLM, and facts its configuration does not state."""

    name: str
    blocks: str  # path to the ModuleList of blocks
    attention: str  # path inside a block to the attention module
    projection: str  # path inside the attention module to its output projection (the heads' mixing matrix)
    final_norm: str | None  # path to the norm after the last block, if there is one
    norm: str  # "pre" or "post"
    norm_kind: str = "LayerNorm"
    positions: str = "learned"
    after_norm: str | None = None  # path to a projection between final norm and output weights (OPT-350m)


_LLAMA = Family(
    "llama", "model.layers", "self_attn", "o_proj", "model.norm", "pre", norm_kind="RMSNorm", positions="rotary"
)

FAMILIES: dict[str, Family] = {
    "openai-gpt": Family("gpt1", "transformer.h", "attn", "c_proj", None, "post"),
    "gpt2": Family("gpt2", "transformer.h", "attn", "c_proj", "transformer.ln_f", "pre"),
    "gpt_neo": Family("gpt-neo", "transformer.h", "attn.attention", "out_proj", "transformer.ln_f", "pre"),
    "gpt_neox": Family(
        "gpt-neox", "gpt_neox.layers", "attention", "dense", "gpt_neox.final_layer_norm", "pre", positions="rotary"
    ),
    "opt": Family(
        "opt",
        "model.decoder.layers",
        "self_attn",
        "out_proj",
        "model.decoder.final_layer_norm",
        "pre",
        after_norm="model.decoder.project_out",
    ),
    "llama": _LLAMA,
    "mistral": _LLAMA,
    "qwen2": _LLAMA,
    "qwen3": _LLAMA,
    "smollm3": _LLAMA,
}


def family_of(model: torch.nn.Module) -> Family:
    """The family of a transformers model; one outside the table is read as Llama-like where it has the same parts.

    Raises ValueError naming the model type where the parts cannot be found.
    """
    kind = model.config.model_type
    if kind in FAMILIES:
        return FAMILIES[kind]
    try:
        for path in (_LLAMA.blocks, _LLAMA.final_norm):
            at(model, path)
        at(at(model, _LLAMA.blocks)[0], f"{_LLAMA.attention}.{_LLAMA.projection}")
    except (AttributeError, IndexError, TypeError):
        raise ValueError(
            f"The model type {kind!r} keeps its parts where gptviz cannot find them: tokens, next-token "
            f"probabilities and generation work, attention and logit lens do not. "
            f"Types that work fully: {', '.join(sorted(FAMILIES))}."
        ) from None
    return Family(f"other: {kind}", *[getattr(_LLAMA, f) for f in ("blocks", "attention", "projection", "final_norm")],
                  "pre", norm_kind="RMSNorm", positions="rotary")


def at(root: torch.nn.Module, path: str | None) -> torch.nn.Module | None:
    """The submodule at a dotted path, or None for no path."""
    return None if path is None else reduce(getattr, path.split("."), root)


def _first(config: object, *names: str, default: int | None = None) -> int:
    for name in names:
        value = getattr(config, name, None)
        if value is not None:
            return value
    if default is None:
        raise ValueError(f"The model configuration states none of {', '.join(names)}.")
    return default


def spec_of(model: torch.nn.Module) -> ModelSpec:
    """The ModelSpec of a transformers causal model, from its configuration and its weights."""
    config = model.config
    try:
        family = family_of(model)
    except ValueError:
        family = Family(f"other: {config.model_type}", "", "", "", None, "pre")
    n_head = _first(config, "num_attention_heads", "n_head", "num_heads", default=0)  # an LSTM has none
    d_model = _first(config, "hidden_size", "n_embd")
    norm = family.norm
    if config.model_type == "opt" and not config.do_layer_norm_before:
        norm = "post"
    output, embedding = model.get_output_embeddings(), model.get_input_embeddings()
    return ModelSpec(
        family=family.name,
        n_layer=_first(config, "num_hidden_layers", "n_layer", "num_layers"),
        n_head=n_head,
        n_kv_head=_first(config, "num_key_value_heads", default=n_head),
        d_model=d_model,
        d_head=_first(config, "head_dim", default=d_model // max(n_head, 1)),
        n_ctx=_first(config, "max_position_embeddings", "n_positions", "n_ctx"),
        vocab_size=embedding.weight.shape[0],
        norm=norm,
        norm_kind=family.norm_kind,
        positions=family.positions,
        activation=str(_first_str(config, "hidden_act", "activation_function", "afn")),
        d_ff=_first(config, "intermediate_size", "n_inner", "ffn_dim", default=4 * d_model),
        tied=output is not None and output.weight is embedding.weight,
        n_parameters=sum(p.numel() for p in model.parameters()),
    )


def _first_str(config: object, *names: str) -> str:
    return next((getattr(config, n) for n in names if getattr(config, n, None)), "unknown")
