"""Texts as TOML files hold them."""

from __future__ import annotations

from retorque.work.errors import RetorqueError


def quoted(text: str) -> str:
    """The text as a TOML string; control characters are refused."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t")
    if any(ord(letter) < 32 or ord(letter) == 127 for letter in escaped):
        raise RetorqueError(f"the text {text!r} has control characters; a card cannot hold them")
    return f'"{escaped}"'
