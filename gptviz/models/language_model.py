"""LanguageModel: one loaded model with its tokenizer. Tokenize, trace, next token, generate; one lock per model.

Knows nothing of where the model came from, of pages or of figures.
Forward passes are counted in ``forward_calls``, so that a test can show that a view change runs none.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch

from gptviz.models import families, pieces
from gptviz.models.generation import generate as _generate
from gptviz.models.trace import Trace
from gptviz.types.language import Candidate, HeadEffect, ModelSpec, NextToken, Tokens
from gptviz.types.sampling import GenerationStep, Sampling

Heads = Sequence[tuple[int, int]]  # (layer, head), both from 0


class LanguageModel:
    """A transformers causal model in evaluation mode, with everything the lessons ask of it.

    Safe to call from several threads: whatever touches the modules holds ``lock``.
    """

    def __init__(self, name: str, model: torch.nn.Module, tokenizer, *, title: str = "", source: str = ""):
        self.name = name
        self.title = title or name
        self.source = source
        self.model = model.eval()
        self.tokenizer = tokenizer
        self.spec: ModelSpec = families.spec_of(model)
        self.lock = threading.RLock()
        self.forward_calls = 0
        self._kind = pieces.token_kind(tokenizer)
        self._pieces: dict[int, str] = {}
        model.register_forward_pre_hook(self._count)

    def _count(self, *_) -> None:
        self.forward_calls += 1

    def __repr__(self) -> str:
        return f"LanguageModel({self.name!r}, {self.spec.n_parameters:,} parameters, {self.device}, {self.dtype})"

    @property
    def device(self) -> torch.device:
        return self.model.get_input_embeddings().weight.device

    @property
    def dtype(self) -> torch.dtype:
        return self.model.get_input_embeddings().weight.dtype

    @property
    def memory_bytes(self) -> int:
        """Bytes of the weights on the device."""
        return sum(p.numel() * p.element_size() for p in self.model.parameters())

    @property
    def bos_id(self) -> int | None:
        return self.tokenizer.bos_token_id

    @property
    def eos_id(self) -> int | None:
        return self.tokenizer.eos_token_id

    # -- parts of the network --------------------------------------------------------------------------------

    @property
    def blocks(self) -> torch.nn.ModuleList:
        """The L blocks. ValueError for a model type whose parts gptviz cannot find."""
        return families.at(self.model, families.family_of(self.model).blocks)

    @property
    def attention_modules(self) -> list[torch.nn.Module]:
        path = families.family_of(self.model).attention
        return [families.at(block, path) for block in self.blocks]

    @torch.no_grad()
    def unembed(self, hidden: torch.Tensor) -> torch.Tensor:
        """Residual stream (..., D) to logits (..., V) float32: final norm where the family has one, then the output weights."""
        family = families.family_of(self.model)
        for path in (family.final_norm, family.after_norm):
            module = families.at(self.model, path)
            hidden = hidden if module is None else module(hidden)
        return self.model.get_output_embeddings()(hidden).float()

    # -- text ------------------------------------------------------------------------------------------------

    def encode(self, text: str) -> list[int]:
        """Token ids of a text. A special token typed by a reader stays text: it is split like any other."""
        tokenizer = self.tokenizer
        return tokenizer(text, add_special_tokens=False, split_special_tokens=True, verbose=False)["input_ids"]

    def decode(self, ids: Sequence[int]) -> str:
        """Text of token ids, special tokens included, spaces as they are."""
        return self.tokenizer.decode(list(ids), skip_special_tokens=False, clean_up_tokenization_spaces=False)

    def token_bytes(self, token_id: int) -> bytes:
        """The UTF-8 bytes of one token."""
        token = self.tokenizer.convert_ids_to_tokens(int(token_id))
        return b"" if token is None else pieces.token_bytes(token, self._kind)

    def piece(self, token_id: int) -> str:
        """One token in readable form: its characters, or its bytes in hexadecimal where it splits a character."""
        if token_id not in self._pieces:
            self._pieces[token_id] = pieces.readable(self.token_bytes(token_id))
        return self._pieces[token_id]

    def tokenize(self, text: str, max_tokens: int | None = None) -> Tokens:
        """Tokens of a text with readable pieces and character spans; cut after ``max_tokens`` where given."""
        text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")  # a lone half of a pair has no bytes
        ids = self.encode(text)[:max_tokens]
        parts = [self.token_bytes(i) for i in ids]
        size = sum(map(len, parts))
        data = text.encode()
        seen = text if size >= len(data) else data[:size].decode("utf-8", "ignore")
        spans = pieces.spans_from_bytes(text, parts) if size == len(data) else pieces.spans_from_bytes(seen, parts)
        if spans is None:  # the tokenizer changes the text (GPT-1 lower-cases it): take its own offsets
            offsets = self.tokenizer(
                text, add_special_tokens=False, split_special_tokens=True, return_offsets_mapping=True, verbose=False
            )["offset_mapping"][:max_tokens]
            spans = tuple((int(a), int(b)) for a, b in offsets)
        end = spans[-1][1] if spans else 0
        return Tokens(text[:end] if max_tokens is not None and len(ids) == max_tokens else text, tuple(ids),
                      tuple(map(self.piece, ids)), spans)

    def _tokens(self, text: str | Tokens) -> Tokens:
        tokens = text if isinstance(text, Tokens) else self.tokenize(text)
        if not len(tokens):
            raise ValueError("The text is empty: type at least one word.")
        if len(tokens) > self.spec.n_ctx:
            raise ValueError(
                f"The text has {len(tokens):,} tokens; {self.name} reads at most {self.spec.n_ctx:,}. Shorten it."
            )
        return tokens

    # -- one forward pass ------------------------------------------------------------------------------------

    @torch.no_grad()
    def logits(self, ids: Sequence[int]) -> torch.Tensor:
        """Logits (T, V) float32 after every position of ``ids``, from one forward pass."""
        with self.lock:
            return self.model(torch.tensor([list(ids)], device=self.device), use_cache=False).logits[0].float()

    @torch.no_grad()
    def trace(self, text: str | Tokens, heads_off: Heads = ()) -> Trace:
        """Run the model once over a text and keep the residual stream. ValueError: empty, or longer than the context."""
        tokens = self._tokens(text)
        residual: list[torch.Tensor] = []
        calls: list[tuple[tuple, dict]] = []

        def keep(_, args, named):
            named = dict(named)
            hidden, *rest = args if args else (named.pop("hidden_states"),)
            residual.append(hidden.detach())
            calls.append((tuple(rest), named))

        def keep_last(_, __, output):
            residual.append((output if torch.is_tensor(output) else output[0]).detach())

        with self.lock, self.heads_switched_off(heads_off):
            hooks = [block.register_forward_pre_hook(keep, with_kwargs=True) for block in self.blocks]
            hooks.append(self.blocks[-1].register_forward_hook(keep_last))
            try:
                self.forward_calls += 1
                self.model.base_model(torch.tensor([tokens.ids], device=self.device), use_cache=False)
            finally:
                for hook in hooks:
                    hook.remove()
        return Trace(self, tokens, residual, calls)

    @contextmanager
    def heads_switched_off(self, heads: Heads) -> Iterator[None]:
        """Within this block the given heads write nothing into the residual stream. The caller holds the lock."""
        if not heads:
            yield
            return
        self.check_heads(heads)
        path, width = families.family_of(self.model).projection, self.spec.d_head
        hooks = []
        for layer in {layer for layer, _ in heads}:
            off = [head for at, head in heads if at == layer]

            def zero(_, args, off=off):
                mixed = args[0].clone()  # (B, T, H * d_head): the heads' outputs side by side
                for head in off:
                    mixed[..., head * width : (head + 1) * width] = 0
                return (mixed, *args[1:])

            hooks.append(families.at(self.attention_modules[layer], path).register_forward_pre_hook(zero))
        try:
            yield
        finally:
            for hook in hooks:
                hook.remove()

    def check_heads(self, heads: Heads) -> None:
        """ValueError naming the first head that the model does not have."""
        for layer, head in heads:
            if not (0 <= layer < self.spec.n_layer and 0 <= head < self.spec.n_head):
                raise ValueError(
                    f"There is no head {head} in layer {layer}: {self.name} has layers 0 to {self.spec.n_layer - 1} "
                    f"with heads 0 to {self.spec.n_head - 1}."
                )

    @torch.no_grad()
    def next_token(self, text: str | Tokens, top: int = 10, heads_off: Heads = ()) -> NextToken:
        """The ``top`` most probable tokens after a text, with some heads switched off if asked. One forward pass."""
        if not 1 <= top <= self.spec.vocab_size:
            raise ValueError(f"top is {top}; it must lie between 1 and the vocabulary size {self.spec.vocab_size}.")
        tokens = self._tokens(text)
        with self.lock, self.heads_switched_off(heads_off):
            output = self.model(torch.tensor([tokens.ids], device=self.device), use_cache=False, logits_to_keep=1) \
                if self._can_keep_last else self.model(torch.tensor([tokens.ids], device=self.device), use_cache=False)
        return self._next_token(tokens.text, output.logits[0, -1].float(), top, tuple(heads_off))

    @property
    def _can_keep_last(self) -> bool:
        return "logits_to_keep" in self.model.forward.__code__.co_varnames

    def _next_token(self, prompt: str, logits: torch.Tensor, top: int, heads_off: tuple = ()) -> NextToken:
        logp = torch.log_softmax(logits, -1)
        best = logp.topk(top)
        entropy = float(-(logp.exp() * logp).sum())
        rows = zip(best.indices.tolist(), best.values.exp().tolist(), logits[best.indices].tolist(), strict=True)
        found = tuple(Candidate(i, self.piece(i), p, z, rank + 1) for rank, (i, p, z) in enumerate(rows))
        return NextToken(prompt, found, entropy, heads_off)

    def head_effect(self, text: str | Tokens, heads_off: Heads, top: int = 10) -> HeadEffect:
        """The next-token distribution with all heads and without ``heads_off``. Two forward passes."""
        tokens = self._tokens(text)
        self.check_heads(heads_off)
        last = [len(tokens) - 1]
        with_all = self.trace(tokens).logits(last)[0]
        without = self.trace(tokens, heads_off).logits(last)[0]
        p, q = torch.log_softmax(with_all.double(), -1), torch.log_softmax(without.double(), -1)
        return HeadEffect(
            tuple(heads_off),
            self._next_token(tokens.text, with_all, top),
            self._next_token(tokens.text, without, top, tuple(heads_off)),
            float((p.exp() * (p - q)).sum()),
        )

    # -- generation ------------------------------------------------------------------------------------------

    def generate(
        self, prompt: str, sampling: Sampling | None = None, max_new_tokens: int = 40, **options
    ) -> Iterator[GenerationStep]:
        """Generate token by token; each step holds what was chosen and what else could have come.

        ``options`` go to ``gptviz.models.generation.generate`` (forced first token, stop signal, context limit).
        """
        return _generate(self, self.encode(prompt), sampling or Sampling(), max_new_tokens, **options)
