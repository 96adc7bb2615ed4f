"""Pre-training as a generator of events: texts in, a language model out.

Every step is a function of the config's seed and the step's number, so a stopped run goes on exactly where it was and
two runs of one config give the same losses. Writes nothing but weights and resume states, and those only into the
folder passed in. Source of the recipe: GPT-1, Section 4.1; of the block order, GPT-2, Section 2.3.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from pathlib import Path

from gptviz.training.corpus import Books, WindowOrder, hold_out, read_books, tokenize_books
from gptviz.training.pretrain_config import PretrainConfig
from gptviz.types.training import TrainEvent


def pretrain(
    config: PretrainConfig,
    folder: str | Path | None = None,
    *,
    texts: Mapping[str, str] | None = None,
    should_stop: Callable[[], bool] = lambda: False,
    cache: str | Path | None = None,
) -> Iterator[TrainEvent]:
    """Train the tokenizer and the model of `config`, saying what happens as it happens.

    Reads `config.corpus`, or `texts` (by name; the last tenth of each is held out). With `folder`, weights and resume
    states go there, and a run stopped earlier goes on from its last state. `cache` keeps tokenized corpora.
    Raises ValueError where the corpus cannot be read, is too short, or `folder` belongs to another config.
    """
    place = None if folder is None else Path(folder)
    yield TrainEvent("stage", 0, config.n_steps, text="Reading the texts.")
    train, valid = hold_out(dict(texts)) if texts is not None else read_books(Path(config.corpus))
    tokenizer = yield from _tokenizer(config, train, place)
    yield TrainEvent("stage", 0, config.n_steps, text="Turning the texts into tokens.")
    books = [tokenize_books(part, tokenizer, None if cache is None else Path(cache)) for part in (train, valid)]
    del train, valid
    yield from _Run(config, tokenizer, *books, place).events(should_stop)


def _tokenizer(config: PretrainConfig, train: Mapping[str, str], place: Path | None):
    from tokenizers import Tokenizer

    from gptviz.training.tokenizer_training import save_tokenizer, train_tokenizer

    saved = None if place is None else place / "tokenizer" / "tokenizer.json"
    if saved is not None and saved.exists():
        return Tokenizer.from_file(str(saved))
    yield TrainEvent("stage", 0, config.n_steps, text="Learning the tokenizer.")
    tokenizer = train_tokenizer(config.tokenizer, train.values(), config.vocab_size)
    if saved is not None:
        save_tokenizer(tokenizer, saved.parent, config.n_ctx)
    return tokenizer


class _Run:
    """The loop and what it holds."""

    def __init__(self, config: PretrainConfig, tokenizer, train: Books, valid: Books, place: Path | None) -> None:
        import torch

        from gptviz.models.device import choose_device
        from gptviz.training.gpt_config import build_model
        from gptviz.training.pretrain_state import load_state, saved_state

        self.config, self.tokenizer, self.train, self.valid, self.place = config, tokenizer, train, valid, place
        self.order = WindowOrder(train, config.window_length, config.batch_size, config.seed)
        self.dtype = getattr(torch, config.dtype)
        self.device = choose_device(config.device)
        self.model = build_model(config, tokenizer.get_vocab_size()).to(self.device)
        self.body = torch.compile(self.model.transformer) if config.compile else self.model.transformer
        self.optimizer = _optimizer(self.model, config)
        self.step, self.tokens, self.seconds = 0, 0, 0.0
        state = None if place is None else saved_state(place)
        if state is not None:
            theirs = PretrainConfig.from_mapping(state["config"])
            if theirs != config:
                different = [k for k, v in asdict(config).items() if v != getattr(theirs, k)]
                raise ValueError(
                    f"{str(place)!r} holds a run of another config (it differs in {', '.join(different)}); "
                    "choose another folder, or the same config to go on."
                )
            load_state(place, self.model, self.optimizer)
            self.step, self.tokens, self.seconds = state["step"], state["tokens"], state["seconds"]

    def event(self, kind, values=None, text="", path="") -> TrainEvent:
        return TrainEvent(
            kind, self.step, self.config.n_steps, self.tokens, self.seconds, values or {}, text, str(path)
        )

    def events(self, should_stop: Callable[[], bool]) -> Iterator[TrainEvent]:
        c = self.config
        n_parameters = sum(p.numel() for p in self.model.parameters())
        facts = {
            "n_parameters": n_parameters,
            "vocab_size": self.tokenizer.get_vocab_size(),
            "train_tokens": len(self.train.tokens),
            "valid_tokens": len(self.valid.tokens),
            "train_books": len(self.train.names),
            "valid_books": len(self.valid.names),
        }
        yield self.event("start", facts, text=f"{c.architecture}, {n_parameters:,} parameters, on {self.device}")
        if self.step == 0:
            yield from self._milestones()
        while self.step < c.n_steps:
            if should_stop():
                self._save()
                yield self.event("end", text="Stopped.", path=self.place or "")
                return
            started = time.perf_counter()
            loss, norm, rate = self._train_step()
            self.seconds += time.perf_counter() - started
            self.step += 1
            self.tokens += c.tokens_per_step
            if self.step % c.log_every == 0 or self.step in (1, c.n_steps):
                values = {"loss": float(loss), "gradient_norm": float(norm), "learning_rate": rate}
                yield self.event("step", values | {"tokens_per_second": self.tokens / self.seconds})
                if not math.isfinite(values["loss"]):
                    raise ValueError(
                        f"The loss is {values['loss']} at step {self.step}; a smaller learning rate than "
                        f"{c.learning_rate} would keep it finite."
                    )
            yield from self._milestones()
        yield self.event("validation", self._validate(None), text="The whole held-out text.")
        path = self._keep("final")
        yield self.event("end", text="Finished.", path=path)

    def _milestones(self) -> Iterator[TrainEvent]:
        c, last = self.config, self.step == self.config.n_steps
        if c.valid_every and self.step % c.valid_every == 0:
            yield self.event("validation", self._validate(c.valid_windows))
        if c.sample_every and self.step % c.sample_every == 0:
            yield self.event("sample", text=self._sample())
        if self.step in c.checkpoint_steps:
            yield self.event("checkpoint", path=self._keep(f"step-{self.step:06d}"))
        if self.step and (last or (c.save_every and self.step % c.save_every == 0)):
            self._save()

    def _train_step(self):
        import torch

        from gptviz.training.linear_cross_entropy import linear_cross_entropy

        c = self.config
        rate = c.learning_rate * schedule(self.step, c.n_steps, c.warmup_steps)
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        batch = torch.from_numpy(self.order.batch(self.step)).to(self.device)  # (B, W + 1)
        self.model.train()
        with torch.random.fork_rng(devices=[], enabled=c.dropout > 0):
            if c.dropout:  # the step's own noise, so that nothing of the generator must be saved
                torch.manual_seed(c.seed * 1_000_003 + self.step)
            with self._autocast():
                hidden = self.body(input_ids=batch[:, :-1]).last_hidden_state  # (B, W, D)
                head = self.model.get_output_embeddings().weight
                loss = linear_cross_entropy(hidden.flatten(0, 1), head, batch[:, 1:].flatten(), self.dtype)
            loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(self.model.parameters(), c.grad_clip)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        return loss.detach(), norm, rate

    def _autocast(self):
        import torch

        return torch.autocast(self.device.type, self.dtype, enabled=self.dtype != torch.float32)

    def _validate(self, windows: int | None) -> dict[str, float]:
        from gptviz.training.perplexity import held_out

        with self._autocast():
            result = held_out(self.model, self.tokenizer, self.valid, self.config.n_ctx, windows)
        return result.values()

    def _sample(self) -> str:
        from gptviz.training.perplexity import sample_text

        c = self.config
        return sample_text(self.model, self.tokenizer, c.sample_prompt, c.sample_tokens, c.n_ctx, c.seed)

    def _keep(self, name: str) -> Path | str:
        from gptviz.training.pretrain_state import save_weights

        if self.place is None:
            return ""
        return save_weights(self.place, name, self.model, self.tokenizer, self.config.n_ctx)

    def _save(self) -> None:
        from gptviz.training.pretrain_state import save_state

        if self.place is not None:
            state = {"step": self.step, "tokens": self.tokens, "seconds": self.seconds, "config": asdict(self.config)}
            save_state(self.place, self.model, self.optimizer, state)


def schedule(step: int, n_steps: int, warmup_steps: int) -> float:
    """The learning rate of step `step` (from 0) as a part of its peak: a linear rise, then a cosine to zero.

    >>> [round(schedule(s, 8, 4), 2) for s in range(8)]
    [0.25, 0.5, 0.75, 1.0, 0.9, 0.65, 0.35, 0.1]
    """
    if step < warmup_steps:
        return (step + 1) / warmup_steps
    done = (step + 1 - warmup_steps) / (n_steps - warmup_steps + 1)
    return 0.5 * (1 + math.cos(math.pi * done))


def _optimizer(model, config: PretrainConfig):
    import torch

    matrices = [p for p in model.parameters() if p.dim() >= 2]
    others = [p for p in model.parameters() if p.dim() < 2]
    groups = [{"params": matrices, "weight_decay": config.weight_decay}, {"params": others, "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, lr=config.learning_rate, betas=(config.beta1, config.beta2), fused=True)
