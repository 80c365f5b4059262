"""References: what a file is by its bytes, and what stands for it in a message."""

from __future__ import annotations

import base64
import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from faultbook.runtime.artifacts import ArtifactStore
from faultbook.runtime.references import (
    UNKNOWN_MIME,
    ArtifactError,
    Reference,
    from_message_block,
    mime_of,
    to_message_block,
)

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="
)


@pytest.fixture
def store(tmp_path: Path) -> ArtifactStore:
    return ArtifactStore(tmp_path / "artifacts", run_id="run", fsync=False)


@pytest.mark.parametrize(
    ("content", "mime"),
    [
        (PNG, "image/png"),
        (b"GIF89a" + bytes(20), "image/gif"),
        (b"\xff\xd8\xff\xe0\x00\x10JFIF\x00" + bytes(20), "image/jpeg"),
        (b"RIFF\x24\x00\x00\x00WEBPVP8 " + bytes(20), "image/webp"),
        (b"%PDF-1.7\nabc", "application/pdf"),
        (b"PK\x03\x04" + bytes(40), "application/zip"),
        (b"\x7fELF\x02\x01\x01" + bytes(20), UNKNOWN_MIME),
        (b"\x00\x01\x02\x03", UNKNOWN_MIME),
        (b"\xff\xfe\xfd", UNKNOWN_MIME),
        (b"", UNKNOWN_MIME),
        (b"hello", "text/plain"),
        ("grüße".encode(), "text/plain"),
        (b"BM is how this text begins", "text/plain"),
        (b"MZ as well", "text/plain"),
        (b"\x1b[31mred\x1b[0m\r\n", "text/plain"),
        (b'{"a": 1}', "application/json"),
        (b"<html><body>x</body></html>", "text/html"),
        (b'<svg xmlns="http://www.w3.org/2000/svg"></svg>', "image/svg+xml"),
    ],
)
def test_what_a_file_is_by_its_bytes(content: bytes, mime: str) -> None:
    assert mime_of(content) == mime


def test_a_letter_that_is_cut_at_the_end_of_the_head_is_no_reason_to_call_a_text_binary(store: ArtifactStore) -> None:
    assert store.put(b"a" + "é".encode() * 50_000).mime == "text/plain"
    assert store.put(b"a" * 100_000 + b"\xff").mime == "text/plain"  # told from its beginning
    assert store.put(b"a\xff").mime == UNKNOWN_MIME
    assert store.put(b"x", mime="application/x-own").mime == "application/x-own"


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=64))
def test_any_bytes_have_a_type(content: bytes) -> None:
    Reference("0" * 64, len(content), mime_of(content))


@pytest.mark.parametrize(
    ("mime", "kind"),
    [("image/png", "image"), ("audio/wav", "audio"), ("video/mp4", "video"), ("text/plain", "file")],
)
def test_a_message_holds_metadata_and_nothing_of_the_content(store: ArtifactStore, mime: str, kind: str) -> None:
    reference = store.put(b"secret content", mime=mime, name="a.bin")
    shutil.rmtree(store.folder)  # nothing is read to make the block
    block = to_message_block(reference)
    assert block == {
        "type": kind,
        "name": "a.bin",
        "source": {"type": "artifact", "sha256": reference.sha256, "size": 14, "media_type": mime},
    }
    assert from_message_block(json.loads(json.dumps(block))) == reference


@pytest.mark.parametrize("block", [{}, {"source": "x"}, {"type": "image", "source": {"type": "base64", "data": "x"}}])
def test_other_blocks_hold_no_reference(block: dict[str, Any]) -> None:
    assert from_message_block(block) is None


GOOD = {"sha256": "0" * 64, "size": 1}


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"sha256": "0" * 64},
        GOOD | {"sha256": "../" * 21 + "a"},
        GOOD | {"sha256": "0" * 63 + "/"},
        GOOD | {"sha256": "A" * 64},
        GOOD | {"sha256": "0" * 64 + "\n"},
        GOOD | {"sha256": int("1" * 64)},
        GOOD | {"size": -1},
        GOOD | {"size": True},
        GOOD | {"size": "1"},
        GOOD | {"mime": "image"},
        GOOD | {"mime": "image/png\nx"},
        GOOD | {"name": 5},
        GOOD | {"lifetime": "long"},
        GOOD | {"lifetime": ["run"]},
        GOOD | {"permission": "world"},
        GOOD | {"permission": ["owner"]},
    ],
)
def test_a_reference_that_cannot_be_is_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(ArtifactError):
        Reference.from_dict(fields)
