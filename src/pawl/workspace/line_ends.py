"""Line ends as git keeps them, by attributes and settings alone."""

from __future__ import annotations

from collections.abc import Mapping

from pawl.core.change import Kind, Node

_PRINTED = frozenset(range(32, 256)) - {127} | {8, 9, 10, 12, 13, 27}


def converts(attributes: Mapping[str, str], settings: Mapping[str, str]) -> str:
    """How CRLF is taken into the repository: `text` always, `auto` where the file is text, empty never."""
    text = attributes.get("text", "unspecified")
    if text == "unspecified":
        text = {"set": "set", "unset": "unset", "input": "set"}.get(attributes.get("crlf", ""), "unspecified")
    if text in ("set", "input"):
        return "text"
    if text == "unset":
        return ""
    if text == "auto":
        return "auto"
    if attributes.get("eol") in ("lf", "crlf"):
        return "text"
    return "auto" if settings.get("core.autocrlf", "").lower() in ("true", "input", "yes", "on", "1") else ""


def as_git_keeps(content: bytes, how: str, node: Node) -> bytes:
    if not how or node.kind is not Kind.FILE or b"\r\n" not in content or (how == "auto" and _is_binary(content)):
        return content
    return content.replace(b"\r\n", b"\n")


def _is_binary(content: bytes) -> bool:
    """By git's measure: a NUL, a CR that ends no line, or more than one odd byte in 128."""
    if b"\0" in content or content.count(b"\r") != content.count(b"\r\n"):
        return True
    odd = len(content.removesuffix(b"\x1a").translate(None, bytes(_PRINTED)))
    printable = len(content) - odd - content.count(b"\n") - content.count(b"\r")
    return (printable >> 7) < odd
