"""What the name before a value, and the value itself, say of its being a secret."""

from __future__ import annotations

import re
from functools import lru_cache

KINDS = (
    *("API key", "JWT", "URL password", "authorization", "basic credentials", "bearer token", "cookie", "credentials"),
    *("password", "private key", "secret", "signature", "token"),
)
MARKER = re.compile(rb"\[redacted: (" + "|".join(KINDS).encode() + rb")\]")

# What stands behind a name is secret whatever it looks like, or if it could be, or if it looks like chance.
WHATEVER, LIKELY, RANDOM = 3, 2, 1
# Names without digits and separators. One that holds any of these means a secret …
_STRONG = {
    "password": ("password", "passwd", "passphrase", "passcode", "pwd"),
    "cookie": ("cookie",),
    "authorization": ("authorization",),
    "credentials": ("credential",),
    "private key": ("privatekey",),
    "secret": ("secret",),
    "token": ("accesstoken", "apitoken", "authtoken", "bearertoken", "csrftoken", "refreshtoken", "securitytoken"),
    "API key": ("apikey", "accesskey", "accountkey", "encryptionkey", "masterkey", "sessionkey", "signingkey"),
}
# … unless it ends in one of these: then it says something about a secret.
_ABOUT = ("count", "env", "file", "header", "id", "length", "limit", "name", "path", "policy", "type", "url", "var")
# Tokens of text and of pages, which open nothing.
_PLAIN_TOKENS = tuple(
    f"{word}token"
    for word in ("bos", "cls", "eos", "first", "last", "mask", "max", "next", "pad", "per", "sep", "stop", "unk")
)
NO_SECRET = frozenset(b"none null nil true false undefined str string int bool bytes".split())
ELSEWHERE = re.compile(
    rb"\*{1,99}|\$\{?[A-Za-z_]\w{0,99}\}?|(?:os\.environ|os\.getenv|getenv|process\.env)[\w.(\[]{0,99}"
)
_DIGEST = re.compile(
    rb"sha(?:1|224|256|384|512)[-:][A-Za-z0-9+/_\-]+=*|(?<![0-9A-Fa-f])(?:[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-"
    rb"[0-9A-Fa-f]{12}|(?:[0-9A-Fa-f]{32}){1,4}|[0-9A-Fa-f]{40}|[0-9A-Fa-f]{56})(?![0-9A-Fa-f])"
)
_NOT_LETTER = re.compile(rb"[^a-z]+")
_CHANCE = re.compile(rb"[A-Za-z0-9._~+/=\-]{16,}")


@lru_cache(maxsize=4096)
def meaning(name: str) -> tuple[str | None, int]:
    """The kind of secret that a name stands for, and how much the name alone says."""
    letters = _NOT_LETTER.sub(b"", MARKER.sub(b"", name[-300:].encode("utf-8", "replace")).lower()).decode()
    for kind, words in _STRONG.items():
        if any(word in letters for word in words):
            return kind, RANDOM if letters.endswith(_ABOUT) else WHATEVER
    if letters.endswith("token"):
        return (None, 0) if letters.endswith(_PLAIN_TOKENS) else ("token", LIKELY)
    if letters.endswith(("auth", "pass", "sessid")):
        return "credentials", LIKELY
    return ("API key", RANDOM) if letters.endswith(("key", "keys")) else (None, 0)


def judged(name: bytes, value: bytes) -> str | None:
    """The kind of secret that a value is, going by the name before it."""
    kind, weight = meaning(name[-300:].decode("utf-8", "replace"))
    if kind is None or value.lower() in NO_SECRET or ELSEWHERE.fullmatch(value):
        return None
    if weight == LIKELY:
        mixed = re.search(rb"[0-9]", value) and re.search(rb"[A-Za-z]", value)
        return kind if len(value) >= (6 if mixed else 20) and not re.search(rb"\s", value) else None
    return kind if weight == WHATEVER or looks_random(value) else None


def looks_random(value: bytes) -> bool:
    """Whether a value looks like a long token drawn by chance, and not like a digest, a UUID or a path."""
    if value.startswith((b"/", b"./", b"~")) or _CHANCE.fullmatch(_DIGEST.sub(b"", value)) is None:
        return False
    if not re.search(rb"[0-9]", value):
        return False
    return bool(re.search(rb"[A-Z]", value) and re.search(rb"[a-z]", value)) or any(
        re.search(rb"[0-9]", run) and re.search(rb"[A-Za-z]", run) for run in re.findall(rb"[A-Za-z0-9]{16,}", value)
    )
