"""How many parameters a task adds to a pre-trained model: the linear head and the new embedding rows.

GPT-1, Section 3.2 (Eq. 3): the head is W_y alone; the released code adds a bias. Section 3.2 also counts the
embeddings of the delimiter tokens as the only other new parameters. Knows nothing of weights.
"""

from __future__ import annotations

from gptviz.types.language import ModelSpec
from gptviz.types.tasks import FORMS, HeadCount, SpecialTokens


def head_count(form: str, spec: ModelSpec, special: SpecialTokens, n_classes: int = 2, bias: bool = False) -> HeadCount:
    """Count the new parameters. ``n_classes`` is used by classification and entailment, and by similarity classes.

    A similarity score and a multiple-choice score are one output each: pass ``n_classes=1`` for a score; multiple
    choice always has one output, applied to every choice. Raises ValueError on an unknown form or class count.
    """
    if form not in FORMS:
        raise ValueError(f"task form {form!r} is unknown; use one of {', '.join(FORMS)}.")
    outputs = 1 if form == "multiple_choice" else n_classes
    smallest = 1 if form in ("similarity", "multiple_choice") else 2
    if outputs < smallest:
        raise ValueError(f"{form} needs at least {smallest} outputs, got {outputs}.")
    return HeadCount(form, spec.d_model, outputs, bias, len(special.new_ids), spec.n_parameters)
