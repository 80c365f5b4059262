"""Secrets are gone from everything that is written, and what merely looks like one stays."""

from __future__ import annotations

import base64
import copy
import json
import math
import string
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from faultbook.runtime.redaction import KINDS, redacted, redacted_text

LETTERS = string.ascii_letters + string.digits
# Forms of secrets as their issuers document them; the letters are made up.
PLANTED = {
    "openai": "sk-proj-T3stT3stT3stT3stT3st",
    "openai old": "sk-abcdefghijklmnopqrstuvwx",
    "anthropic": "sk-ant-api03-aB3dE6gH9jK2mN5pQ8sT",
    "google": "AIzaSyA1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q",
    "github": "ghp_a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8",
    "github fine": "github_pat_11ABCDEFG0abcdefghijkl_mnopqrstuvwxyz",
    "slack": "xoxb-123456789012-abcdefghijkl",
    "aws": "AKIAIOSFODNN7EXAMPLE",
    "hugging face": "hf_aBcDeFgHiJkLmNoPqRsTuVwXyZ",
    "jwt": "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.dozjgNryP4J3jVmNHl0w5N",
    "telegram": "123456789:AAabcdefghijklmnopqrstuvwxyz0123456",
}
DIGEST = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
COMMIT = "29624c3962d00cc8355191265e7827d9fdf0f3ad"
UUID = "0c1f0d6e-2b40-4a5b-8a4e-111122223333"


@pytest.mark.parametrize("secret", PLANTED.values(), ids=PLANTED)
@pytest.mark.parametrize(
    "around",
    ["{}", "see {}.", '"{}"', "x={}", "a\n{}\nb", r"line\n{}\n", "({})", "%3D{}", "é{}é", "https://h/p?x={}&y"],
)
def test_a_token_of_a_known_form_is_found_wherever_it_stands(secret: str, around: str) -> None:
    assert secret not in redacted_text(around.format(secret))


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        ("password=hunter2", "hunter2"),
        ("PASSWORD: hunter2", "hunter2"),
        ('{"password": "hunter2"}', "hunter2"),
        (json.dumps(json.dumps({"password": 'hun"ter2', "x": 1})), "ter2"),
        (json.dumps(json.dumps(json.dumps({"password": "hunter2"}))), "hunter2"),
        ("{'db_password': 'hunter2'}", "hunter2"),
        ("--password hunter2 --verbose", "hunter2"),
        ("OPENAI_API_KEY=abc", "abc"),
        ("export HF_TOKEN='abc123'", "abc123"),
        ("clientSecret: hunter2", "hunter2"),
        ("<password>hunter2</password>", "hunter2"),
        ("password=hun,ter2", "ter2"),
        ("password=hun&ter2", "ter2"),
        ("password=[hunter2", "hunter2"),
        ('password = """hunter2"""', "hunter2"),
        ("Authorization: Bearer abcdef", "abcdef"),
        ("Authorization: hunter2", "hunter2"),
        ("curl -H 'Authorization: token abcdef' https://h", "abcdef"),
        ("curl -u joe:hunter2 https://h", "hunter2"),
        ("bearer abc123", "abc123"),
        ("Bearer%20abc123", "abc123"),
        ("Proxy-Authorization: Basic dXNlcjpwYXNz", "dXNlcjpwYXNz"),
        ("tried Basic dXNlcjpwYXNz", "dXNlcjpwYXNz"),
        ("Cookie: a=hunter2; b=x", "hunter2"),
        ('Set-Cookie: a="hunter2"; Path=/', "hunter2"),
        ("postgres://joe:hunter2@h/db", "hunter2"),
        ("postgres://joe:hun@ter2@h/db", "ter2"),
        ("postgres://joe:hun/ter2@h/db", "ter2"),
        ("redis://:hunter2@h", "hunter2"),
        (r"https:\/\/joe:hunter2@h", "hunter2"),
        (f"https://{COMMIT[:32]}@sentry/1", COMMIT[:32]),
        ("https://h/?key=abc&alt=sse", "abc"),
        ("https://h/?x=1&access_token=abc", "abc"),
        ("https://h/o?X-Amz-Signature=abc&X-Amz-Expires=5", "abc"),
        ("https://h/o?sv=1&sig=abc%2F", "abc%2F"),
        ("https%3A%2F%2Fh%3Fkey%3Dabc", "Dabc"),
        ("https://hooks.slack.com/services/T0/B0/aaaaaaaaaaaa", "aaaaaaaaaaaa"),
        ("machine h\n  login joe\n  password hunter2\n", "hunter2"),
        ("the API key is A8fZq29LmX01bbQz77", "A8fZq29LmX01bbQz77"),
        ("AWS secret access key wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", "wJalrXUtnFEMI"),
        (f"api_key={DIGEST}", DIGEST),
        ("headers=[('x-api-key', 'abc')]", "abc"),
    ],
)
def test_what_a_text_says_to_be_secret(text: str, secret: str) -> None:
    clean = redacted_text(text)
    assert secret not in clean
    assert "[redacted: " in clean
    assert redacted_text(clean) == clean


@pytest.mark.parametrize(
    "text",
    [
        "input_tokens: 123456, output_tokens=7",
        '{"max_tokens": 4096, "total_tokens": 1234567890123456}',
        f"sha256:{DIGEST}",
        f"cache_key={DIGEST}",
        f"the key {DIGEST} of commit {COMMIT}",
        f"token of run {UUID}",
        f"key: {UUID}",
        "sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=",
        "integrity key: sha384-OLBgp1GsljhM2TJ+sbHjaiH9txEUvgdDTAzHv2P24donTt6/529l+9Ua0vFImLlb",
        "docker://registry:5000/image@sha256:" + DIGEST,
        "http://localhost:8888/npm/@scope/name",
        "http://[::1]:8080/@x",
        "git@github.com:a/b.git",
        "ssh://git@github.com/a/b",
        "basic functionality and Basic authentication",
        "bearer token, Bearer authentication",
        "the secret of a good password",
        "eos_token: '</s>', pad_token='[PAD]'",
        "seconds per_token=0.351s",
        "password: None",
        'api_key=os.environ["OPENAI_API_KEY"]',
        "token=$HF_TOKEN",
        "Password:\nLogin failed",
        "a task-based risk-aware sk-learn",
        "monkey: banana, keyboard=qwerty",
        "docker run -u 1000:1000",
        "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk",
    ],
)
def test_what_is_no_secret_stays(text: str) -> None:
    assert redacted_text(text) == text


def test_the_marker_says_what_it_was() -> None:
    assert redacted_text("Bearer abc.def123") == "Bearer [redacted: bearer token]"
    assert redacted({"cookie": "a=b", "api_key": "x"}) == {
        "cookie": "[redacted: cookie]",
        "api_key": "[redacted: API key]",
    }
    text = redacted_text("https://joe:pw@h/?sig=abc&alt=1")
    assert text == "https://joe:[redacted: URL password]@h/?sig=[redacted: signature]&alt=1"
    assert all(redacted_text(f"[redacted: {kind}] x") == f"[redacted: {kind}] x" for kind in KINDS)


@pytest.mark.parametrize(
    ("text", "left"),
    [
        (
            "a -----BEGIN RSA PRIVATE KEY-----\nMIIabc+/=\n-----END RSA PRIVATE KEY----- b",
            "a [redacted: private key] b",
        ),
        (r'"-----BEGIN PRIVATE KEY-----\nMIIabc\n-----END PRIVATE KEY-----\n"', r'"[redacted: private key]\n"'),
        ("-----BEGIN OPENSSH PRIVATE KEY-----\nb3Blbn", "[redacted: private key]"),  # the text ends within it
        ("b3Blbn\nNza\n-----END PRIVATE KEY-----!", "[redacted: private key]!"),  # it begins within it
        ("-----BEGIN PUBLIC KEY-----\nMIIabc\n-----END PUBLIC KEY-----", None),
    ],
)
def test_blocks_of_private_keys(text: str, left: str | None) -> None:
    assert redacted_text(text) == (text if left is None else left)


def test_a_name_makes_a_secret_of_whatever_stands_behind_it() -> None:
    value = {
        "api_key": "abc",
        "Authorization": ["abc"],
        "dbPassword": 1234,
        "X-Api-Key": b"abc",
        "cookies": [{"name": "a", "value": "abc"}],
        "credentials": {"user": "abc"},
        "token": "abc",
        "clientSecret": "abc",
    }
    clean = redacted(value)
    assert "abc" not in json.dumps(clean)
    assert "1234" not in json.dumps(clean)
    assert list(clean) == list(value)


def test_what_a_name_does_not_make_secret() -> None:
    value = {
        "input_tokens": 123,
        "token": 5,
        "max_tokens": 4096,
        "password": None,
        "api_key": "",
        "is_secret": True,
        "api_key_env": "OPENAI_API_KEY",
        "key": "accuracy",
        "cache_key": DIGEST,
        "sha256": DIGEST,
        "eos_token": "</s>",
        "credentials": {},
    }
    assert redacted(value) == value


def test_headers_as_pairs_as_records_and_on_a_command_line() -> None:
    assert redacted([["Authorization", "abc"], ["Host", "h"]]) == [
        ["Authorization", "[redacted: authorization]"],
        ["Host", "h"],
    ]
    assert redacted({"name": "x-api-key", "value": "abc"})["value"] == "[redacted: API key]"
    assert redacted(["run", "--api-key", "abc", "--n", "3"]) == ["run", "--api-key", "[redacted: API key]", "--n", "3"]


def test_keys_are_cleaned_and_stay_apart() -> None:
    first, second = PLANTED["openai"], PLANTED["anthropic"]
    assert redacted({first: 1, second: 2}) == {"[redacted: API key]": 1, "[redacted: API key] (2)": 2}
    assert redacted({2: "a", None: "b", True: "c", b"k": "d", 1.5: "e", ("a", 1): "f"}) == {
        "2": "a",
        "null": "b",
        "true": "c",
        "k": "d",
        "1.5": "e",
        "('a', 1)": "f",
    }


class Hostile:
    def __str__(self) -> str:
        raise RuntimeError("no")


class HostileMapping(Mapping[str, str]):
    def __getitem__(self, key: str) -> str:
        raise KeyError(key)

    def __iter__(self) -> Iterator[str]:
        raise RuntimeError("no")

    def __len__(self) -> int:
        return 1


def test_values_that_json_lacks() -> None:
    clean = redacted([math.nan, math.inf, -math.inf, b"\xff\x00", {1}, (2,), Path("a/b"), 10**5000, "\ud800", 2**70])
    assert clean[:3] == [None, "Infinity", "-Infinity"]
    assert clean[4:7] == [[1], [2], "a/b"]
    assert clean[7].startswith("[integer of")
    assert clean[8:] == ["?", 2**70]
    json.dumps(clean, allow_nan=False, ensure_ascii=False).encode("utf-8")
    assert redacted([Hostile(), HostileMapping()]) == ["[unprintable Hostile]", "[unreadable HostileMapping]"]


def test_cycles_depth_and_aliases_end() -> None:
    cycle: list[Any] = ["password=hunter2"]
    cycle.append(cycle)
    assert redacted(cycle) == ["password=[redacted: password]", "[cycle]"]
    deep: Any = PLANTED["openai"]
    for _ in range(100_000):
        deep = [deep]
    assert PLANTED["openai"] not in json.dumps(redacted(deep))
    many: Any = ["x"]
    for _ in range(90):  # two to the ninetieth texts, if each was copied anew
        many = [many, many]
    redacted(many)


def test_the_value_itself_is_left_alone() -> None:
    value = {"password": "hunter2", "list": [{"token": "abc"}, "Bearer abc123"]}
    before = copy.deepcopy(value)
    redacted(value)
    assert value == before


# Each made a search quadratic, or could: what one rule looks at again and again.
@pytest.mark.parametrize(
    "piece",
    [
        *(
            "password=x&",
            "key=",
            "token=",
            "?next_token=",
            "key:key=",
            "bearer+",
            "basic+",
            "-----BEGIN PRIVATE KEY-----.",
        ),
        *(
            "http://a:b",
            "http://a:b@",
            "x://u:p/@",
            "eyJ",
            "authorization: none ",
            'password="',
            "key='key=\"",
            "--key ",
        ),
        *("machine a login b ", "password=getenv=", "password=[redacted: key", "\\", "é=", " -u a:1"),
    ],
)
def test_no_text_makes_the_time_quadratic(piece: str) -> None:
    # No clock here: what looks at the rest of the text for each of its pieces would take hours.
    clean = redacted_text(piece * (200_000 // len(piece)))
    assert redacted_text(clean) == clean


def test_a_long_transcript_keeps_everything_but_its_secrets() -> None:
    lines = [f"step {number}: read file {number}.py and ran the tests" for number in range(50_000)]
    lines[25_000] += " with password=hunter2"
    clean = redacted_text("\n".join(lines)).splitlines()
    assert [number for number, (a, b) in enumerate(zip(lines, clean, strict=True)) if a != b] == [25_000]


TOKENS = st.text(LETTERS, min_size=24, max_size=60).filter(
    lambda text: any(c.isdigit() for c in text) and any(c.islower() for c in text) and any(c.isupper() for c in text)
)
PLACES = st.sampled_from(
    [
        *("Bearer {}", "api_key={}", "key: {}", '"token": "{}"', "https://u:{}@h/p", "https://h/?key={}", "secret {}"),
        *("Authorization: {}", "--token {}", "sk-{}", "ghp_{}", "hf_{}", "AIza{}", "Cookie: sid={}", "password is {}"),
        *("machine h login l password {}", "{{'auth_token': '{}'}}", r"\"password\": \"{}\"", "xoxb-{}", "sk-ant-{}"),
    ]
)
AROUND = st.text(st.sampled_from(" \n\t,;.:=&?'\"(){}[]<>/\\@%-_eé\ud800aZ9") | st.characters(), max_size=12)
SECRETS = st.tuples(TOKENS, PLACES)


@settings(max_examples=200, deadline=None)
@given(SECRETS, AROUND, AROUND, st.sampled_from(["text", "key", "list", "json", "bytes", "deep"]))
def test_a_planted_secret_is_in_nothing_that_is_written(
    secret: tuple[str, str], before: str, after: str, shape: str
) -> None:
    token, place = secret
    text = f"{before} {place.format(token)} {after}"
    value: Any = {
        "text": text,
        "key": {text: 1},
        "list": ["x", (text, {"y": {text}})],
        "json": json.dumps({"content": text}),
        "bytes": text.encode("utf-8", "replace"),
        "deep": {"a": {"b": [{"c": text}]}},
    }[shape]
    clean = redacted(value)
    assert token not in json.dumps(clean)
    assert redacted(clean) == clean


PIECES = st.sampled_from(
    [
        *(
            "password",
            "token",
            "key",
            "=",
            ":",
            " ",
            "&",
            ",",
            '"',
            "'",
            "\\",
            "\n",
            "Bearer ",
            "Basic ",
            "https://",
            "@",
        ),
        *(
            "hunter2",
            "sk-abcdef123456",
            "[redacted: token]",
            "[redacted: ",
            "]",
            "a1B2c3D4e5F6g7H8i9",
            "authorization",
            "/",
        ),
        *(
            "-----BEGIN PRIVATE KEY-----",
            "-----END PRIVATE KEY-----",
            "?sig",
            "eyJabcdefg.abcdefgh",
            "é",
            "cookie",
            "--",
        ),
    ]
)


@settings(max_examples=300, deadline=None)
@given(st.lists(PIECES, max_size=14).map("".join))
@example('key="[redacted: token]hunter2')
def test_doing_it_again_changes_nothing(text: str) -> None:
    clean = redacted_text(text)
    assert redacted_text(clean) == clean


@settings(max_examples=100, deadline=None)
@given(st.binary(min_size=20, max_size=64), st.sampled_from(["digest {}", "sha256:{}", "commit {} by x", "image@{}"]))
def test_digests_commits_and_encoded_bytes_stay(content: bytes, around: str) -> None:
    for text in (content[:20].hex(), content[:32].hex().ljust(64, "0"), base64.b64encode(content).decode()):
        written = around.format(text)
        assert redacted_text(written) == written


VALUES = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.binary(max_size=8)
LEVEL = st.lists(VALUES, max_size=3) | st.dictionaries(
    st.text(max_size=6) | st.integers() | st.none(), VALUES, max_size=3
)


@settings(max_examples=100, deadline=None)
@given(st.lists(LEVEL | VALUES, max_size=3) | st.dictionaries(st.text(max_size=6), LEVEL, max_size=3))
def test_any_value_comes_out_as_json_and_stays_as_it_is(value: Any) -> None:
    clean = redacted(value)
    written = json.dumps(clean, allow_nan=False, ensure_ascii=False).encode("utf-8")
    assert json.loads(written) == clean
    assert redacted(clean) == clean
