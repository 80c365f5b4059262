"""What stands in a message for an artifact: its digest, size and kind, and nothing of what is in it.

Nothing here opens, decodes or resizes an image: what a file is, its first bytes tell.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import puremagic

from faultbook.errors import DataError, one_of, short_repr

LIFETIMES = ("run", "keep")
PERMISSIONS = {"owner": 0o600, "group": 0o640, "all": 0o644}
UNKNOWN_MIME = "application/octet-stream"
SHA256 = re.compile(r"[0-9a-f]{64}")

_MIME = re.compile(r"[A-Za-z0-9!#$&^_.+\-]{1,80}/[A-Za-z0-9!#$&^_.+\-]{1,80}(?:; ?[A-Za-z0-9=_.\-\"]{1,80})?")
_CONTROLS = frozenset(range(32)) - frozenset(b"\t\n\r\f\x1b")
# What a text may be more than that; signatures of two letters make a bitmap of any text that begins with "BM".
_TEXTS = (
    "application/json",
    "application/pdf",
    "application/postscript",
    "application/xml",
    "image/svg+xml",
    "text/html",
)
_BEGINNINGS = {b"%PDF-": "application/pdf", b"PK\x03\x04": "application/zip"}  # of which many formats are made
_BLOCKS = {"image": "image", "audio": "audio", "video": "video"}


class ArtifactError(DataError):
    """An artifact that cannot be put in or read back."""


class MissingArtifactError(ArtifactError):
    """There is none of that digest."""


class AlteredArtifactError(ArtifactError):
    """What is there is not what was put in."""


@dataclass(frozen=True, slots=True)
class Reference:
    """What stands in a message for an artifact.

    Attributes
    ----------
    sha256 : str
        64 hexadecimal digits of what is in it, which is also its place.
    size : int
        Bytes.
    mime : str
        As given, else as its bytes tell.
    name : str or None
        What the file was called: a word for people, never a path.
    lifetime, permission : str
        As asked for; see `faultbook.runtime.artifacts`.

    Raises
    ------
    ArtifactError
        If one of them cannot be.
    """

    sha256: str
    size: int
    mime: str = UNKNOWN_MIME
    name: str | None = None
    lifetime: str = "run"
    permission: str = "owner"

    def __post_init__(self) -> None:
        found: dict[str, Any] = asdict(self)  # it may come from a file
        if type(found["sha256"]) is not str or SHA256.fullmatch(self.sha256) is None:
            raise ArtifactError(f"a digest has 64 hexadecimal digits in lower case; found {short_repr(self.sha256)}")
        if type(found["size"]) is not int or self.size < 0:
            raise ArtifactError(f"the size of an artifact is a whole number of bytes; found {short_repr(self.size)}")
        if type(found["mime"]) is not str or _MIME.fullmatch(self.mime) is None:
            raise ArtifactError(f"a MIME type looks like 'image/png'; found {short_repr(self.mime)}")
        if type(found["name"]) not in (str, type(None)):
            raise ArtifactError(f"the name of an artifact is a text; found {short_repr(self.name)}")
        if self.lifetime not in LIFETIMES:
            raise ArtifactError(one_of("lifetime", self.lifetime, LIFETIMES))
        if self.permission not in tuple(PERMISSIONS):
            raise ArtifactError(one_of("permission", self.permission, tuple(PERMISSIONS)))

    def as_dict(self) -> dict[str, Any]:
        """As plain data, for files."""
        return asdict(self)

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> Reference:
        """From plain data; what is not known is passed over, what cannot be is an error."""
        known = {name: fields[name] for name in cls.__slots__ if fields.get(name) is not None}
        if "sha256" not in known or "size" not in known:
            raise ArtifactError("a reference needs 'sha256' and 'size'")
        return cls(**known)


def to_message_block(reference: Reference) -> dict[str, Any]:
    """A block of a message that stands for an artifact: its metadata and nothing of what is in it.

    Its type is "image", "audio", "video" or else "file", so that whoever decides what may be sent sees what it is
    without reading it.
    """
    source = {"type": "artifact", "sha256": reference.sha256, "size": reference.size, "media_type": reference.mime}
    block = {"type": _BLOCKS.get(reference.mime.partition("/")[0], "file"), "source": source}
    return {**block, "name": reference.name} if reference.name else block


def from_message_block(block: Mapping[str, Any]) -> Reference | None:
    """The reference that a block holds; None if it holds none.

    Raises
    ------
    ArtifactError
        If it holds one that cannot be.
    """
    source = block.get("source")
    if not isinstance(source, Mapping) or source.get("type") != "artifact":
        return None
    return Reference.from_dict({**source, "mime": source.get("media_type"), "name": block.get("name")})


def mime_of(head: bytes, size: int | None = None) -> str:
    """What a file is, told from its first bytes: text if it reads as text, unknown where signatures disagree."""
    for beginning, mime in _BEGINNINGS.items():
        if head.startswith(beginning):
            return mime
    text = _is_text(head, whole=size is None or size <= len(head))
    try:
        found = puremagic.magic_string(head)
    except (puremagic.PureError, ValueError):
        found = []
    best = {match.mime_type for match in found if match.confidence == found[0].confidence}
    mime = best.pop() if len(best) == 1 else ""
    if text:
        return mime if mime in _TEXTS else "text/plain"
    sure = mime and found[0].confidence >= 0.3  # at least three bytes agree
    return mime if sure and _MIME.fullmatch(mime) else UNKNOWN_MIME


def _is_text(head: bytes, whole: bool) -> bool:
    for cut in range(1 if whole else 4):  # a letter may be cut at the end
        try:
            head[: len(head) - cut].decode("utf-8")
        except UnicodeDecodeError:
            continue
        return bool(head) and not _CONTROLS.intersection(head)
    return False
