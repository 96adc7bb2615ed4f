"""Beam search against Hugging Face's `generate`, contrastive search against its formula, on tiny checkpoints."""

from __future__ import annotations

import pytest
import torch

from gptviz.analysis.decoding import beam_search, beam_steps, contrastive_search
from gptviz.models.language_model import LanguageModel
from gptviz.models.tiny import tiny_model
from gptviz.types.sampling import Sampling

FAMILIES = ["gpt1", "gpt2", "gpt-neox", "llama"]
PROMPT = "the river runs past the old mill"


@pytest.fixture(scope="module", params=FAMILIES)
def lm(request):
    return LanguageModel(request.param, *tiny_model(request.param))


def hugging_face(lm, **options):
    ids = torch.tensor([lm.encode(PROMPT)])
    out = lm.model.generate(
        ids,
        attention_mask=torch.ones_like(ids),
        do_sample=False,
        pad_token_id=0,
        return_dict_in_generate=True,
        output_scores=True,
        **options,
    )
    return out, ids.shape[1]


@pytest.mark.parametrize(("n_beams", "length_penalty"), [(2, 1.0), (3, 1.0), (5, 0.0), (4, 2.0), (4, -1.0)])
def test_beam_search_equals_hugging_face(lm, n_beams, length_penalty):
    out, prompt = hugging_face(
        lm, num_beams=n_beams, num_return_sequences=n_beams, length_penalty=length_penalty, max_new_tokens=12
    )
    tree = beam_search(lm, PROMPT, n_beams, 12, length_penalty)
    assert len(tree.finished) == n_beams
    for found, ids, score in zip(tree.finished, out.sequences, out.sequences_scores.tolist(), strict=True):
        new = ids[prompt:].tolist()
        assert new[: len(found.token_ids)] == list(found.token_ids)
        assert found.score == pytest.approx(score, abs=1e-4)


def test_beam_search_with_finished_beams_equals_hugging_face(lm):
    """A model that ends texts soon: finished beams of several lengths compete under the length penalty."""
    if lm.eos_id is None:
        pytest.skip("this tokenizer has no end-of-text token")
    ends = torch.zeros(lm.spec.vocab_size)
    ends[lm.eos_id] = 3.5
    hook = lm.model.get_output_embeddings().register_forward_hook(lambda _, __, out: out + ends)
    lengths = set()
    try:
        for penalty in (0.0, 1.0, 2.0):
            options = {
                "num_beams": 3,
                "num_return_sequences": 3,
                "length_penalty": penalty,
                "max_new_tokens": 15,
            }
            out, prompt = hugging_face(lm, **options)
            tree = beam_search(lm, PROMPT, 3, 15, penalty)
            lengths |= {len(h.token_ids) for h in tree.finished}
            for found, ids, score in zip(
                tree.finished, out.sequences, out.sequences_scores.tolist(), strict=True
            ):
                assert ids[prompt:].tolist()[: len(found.token_ids)] == list(found.token_ids)
                assert found.score == pytest.approx(score, abs=1e-4)
    finally:
        hook.remove()
    assert len(lengths) > 1, lengths


def test_one_beam_is_greedy(lm):
    greedy = [s.token_id for s in lm.generate(PROMPT, Sampling(temperature=0), 10)]
    assert list(beam_search(lm, PROMPT, 1, 10).finished[0].token_ids) == greedy


def test_every_node_of_the_tree_is_what_the_model_says(lm):
    tree = beam_search(lm, PROMPT, 3, 6)
    prompt = lm.encode(PROMPT)
    for node in tree.nodes:
        path = [n.token_id for n in tree.path(node.id)]
        log_p = torch.log_softmax(lm.logits(prompt + path), -1)
        each = [float(log_p[len(prompt) - 1 + i, token]) for i, token in enumerate(path)]
        assert node.log_probability == pytest.approx(each[-1], abs=1e-4)
        assert node.score == pytest.approx(sum(each), abs=1e-3)
    for step in range(5):
        states = [n.state for n in tree.nodes if n.step == step]
        assert len(states) == 6
        assert states.count("kept") == 3


def test_the_tree_grows_step_by_step(lm):
    sizes = [len(tree.nodes) for tree in beam_steps(lm, PROMPT, 2, 4)]
    assert sizes == [4, 8, 12, 16]


@pytest.mark.parametrize("alpha", [0.0, 0.3, 0.6, 1.0])
def test_contrastive_search_is_its_formula(lm, alpha):
    """Eq. 5 of Su et al. 2022, recomputed for each step from whole texts without a cache."""
    ids = lm.encode(PROMPT)
    for step in contrastive_search(lm, PROMPT, alpha=alpha, top_k=4, max_new_tokens=8):
        with torch.no_grad():
            p = torch.softmax(lm.model(torch.tensor([ids])).logits[0, -1], -1)
        tokens = torch.topk(p, 4).indices.tolist()
        scores = {}
        for token in tokens:
            with torch.no_grad():
                out = lm.model(torch.tensor([[*ids, token]]), output_hidden_states=True)
            states = out.hidden_states[-1][0]
            cosine = max(float(torch.cosine_similarity(h, states[-1], dim=0)) for h in states[:-1])
            scores[token] = (1 - alpha) * float(p[token]) - alpha * cosine
            found = next(c for c in step.candidates if c.id == token)
            assert found.probability == pytest.approx(float(p[token]), abs=1e-5)
            assert found.similarity == pytest.approx(cosine, abs=1e-4)
            assert found.score == pytest.approx(scores[token], abs=1e-4)
        assert scores[step.token_id] == pytest.approx(max(scores.values()), abs=1e-4)
        ids.append(step.token_id)


def test_contrastive_search_at_alpha_0_is_greedy(lm):
    greedy = [s.token_id for s in lm.generate(PROMPT, Sampling(temperature=0), 10)]
    assert [s.token_id for s in contrastive_search(lm, PROMPT, alpha=0, max_new_tokens=10)] == greedy


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"n_beams": 0}, "n_beams is 0"),
        ({"n_beams": 51}, "n_beams is 51"),
        ({"max_new_tokens": 0}, "max_new_tokens is 0"),
        ({"max_new_tokens": 500}, "reads 128"),
        ({"length_penalty": 11}, "length_penalty is 11"),
    ],
)
def test_beam_requests_that_cannot_be_met_say_so(options, says):
    model = LanguageModel("gpt2", *tiny_model("gpt2"))
    with pytest.raises(ValueError, match=says):
        beam_steps(model, PROMPT, **options)
    assert model.forward_calls == 0


def test_contrastive_requests_that_cannot_be_met_say_so():
    model = LanguageModel("gpt2", *tiny_model("gpt2"))
    for options, says in [({"alpha": 1.5}, "alpha is 1.5"), ({"top_k": 0}, "top_k is 0")]:
        with pytest.raises(ValueError, match=says):
            contrastive_search(model, PROMPT, **options)
