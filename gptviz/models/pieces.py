"""The bytes and the readable form of one token, for the tokenizers of all model families.

A token that holds only part of a character is shown as its bytes in hexadecimal, never as a broken character.
Sources: GPT-2's byte-to-character table (openai/gpt-2 encoder.py); SentencePiece's `<0xE2>` byte tokens.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

_BYTE_TOKEN = re.compile(r"<0x([0-9A-Fa-f]{2})>")


@lru_cache(maxsize=1)
def byte_of_character() -> dict[str, int]:
    """GPT-2's table, inverted: the printable character that stands for each of the 256 bytes.

    >>> byte_of_character()["Ġ"]
    32
    """
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    table = {chr(b): b for b in printable}
    moved = [b for b in range(256) if b not in set(printable)]
    return table | {chr(256 + n): b for n, b in enumerate(moved)}


def token_kind(tokenizer) -> str:
    """How a fast tokenizer writes its tokens: "bytes" (GPT-2), "word-end" (GPT-1's </w>) or "sentencepiece" (Llama 2)."""
    vocabulary = tokenizer.get_vocab()
    if any(token.endswith("</w>") for token in vocabulary):
        return "word-end"
    if any("Ġ" in token for token in vocabulary) or set(byte_of_character()) <= set(vocabulary):
        return "bytes"
    return "sentencepiece" if any("▁" in token for token in vocabulary) else "bytes"


def token_bytes(token: str, kind: str) -> bytes:
    """The UTF-8 bytes one token stands for.

    >>> token_bytes("Ġcat", "bytes"), token_bytes("cat</w>", "word-end"), token_bytes("▁cat", "sentencepiece")
    (b' cat', b'cat ', b' cat')
    """
    if kind == "word-end":
        return (token[: -len("</w>")] + " " if token.endswith("</w>") else token).encode()
    if kind == "sentencepiece":
        byte = _BYTE_TOKEN.fullmatch(token)
        return bytes([int(byte[1], 16)]) if byte else token.replace("▁", " ").encode()
    table = byte_of_character()
    if all(character in table for character in token):
        return bytes(table[character] for character in token)
    return token.encode("utf-8", "surrogatepass")  # an added token is plain text


def readable(data: bytes) -> str:
    """Bytes as text where they are whole, printable characters, else in hexadecimal.

    >>> readable(" café".encode()), readable(b"\\xf0\\x9f"), readable(b"\\x00")
    (' café', '‹F0 9F›', '‹00›')
    """
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        return f"‹{data.hex(' ').upper()}›"
    invisible = any(unicodedata.category(c) == "Cc" and c not in "\n\t\r" for c in text)
    return f"‹{data.hex(' ').upper()}›" if invisible else text


def spans_from_bytes(text: str, parts: list[bytes]) -> tuple[tuple[int, int], ...] | None:
    """Character spans of consecutive tokens, or None where their bytes are not exactly the text's.

    A token that holds part of a character gets that whole character's span.

    >>> spans_from_bytes("aé", [b"a\\xc3", b"\\xa9"])
    ((0, 2), (1, 2))
    """
    if b"".join(parts) != text.encode("utf-8", "surrogatepass"):
        return None
    character_at: list[int] = []  # byte offset -> character index
    for index, character in enumerate(text):
        character_at += [index] * len(character.encode("utf-8", "surrogatepass"))
    spans, offset = [], 0
    for part in parts:
        end = offset + len(part)
        spans.append((character_at[offset], character_at[end - 1] + 1) if part else (len(text), len(text)))
        offset = end
    return tuple(spans)
