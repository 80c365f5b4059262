"""Where in a text a secret may stand: a table of patterns, each with a judge of what it finds.

A text is searched as bytes, by RE2, so that no pattern takes more than linear time, whoever wrote the text.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable
from functools import cache
from typing import Any

import re2

from faultbook.runtime.redaction_names import ELSEWHERE, NO_SECRET, judged, looks_random, meaning

Judge = Callable[[bytes, bytes], str | None]  # of a name and what stands behind it: the kind of secret, if it is one

_PARTS = {
    "SIGNS": r"\xc0\xc1\xf5-\xff",
    "LEAD": r"(?:^|[^A-Za-z0-9]|\\[bfnrt]|\\u[0-9A-Fa-f]{4}|%[0-9A-Fa-f]{2})",  # what may stand right before a token
    "ROOT": r"""(?i:passw(?:or)?d|passphrase|passcode|pwd|pass|secret|key|token|auth(?:orization)?|credential|cookie|
        sessid)""",
    "NAME": r"(?:(?i:api|access|secret|private|auth) )?[\w.\-]*<ROOT>(?:s|[_\-]?[0-9]{1,3})?",
    "QUOTED": r"""b?(?:\\{2,}"[^"\r\n<SIGNS>]+|\\"(?:[^"\\\r\n<SIGNS>]|\\\\\\"|\\[^"\r\n<SIGNS>])+|\"""[^"<SIGNS>]+|
        "(?:[^"\\\r\n<SIGNS>]|\\[^\r\n<SIGNS>])+|\\{2,}'[^'\r\n<SIGNS>]+|\\'(?:[^'\\\r\n<SIGNS>]|\\\\\\'|\\[^'\r\n<SIGNS>])+|
        '''[^'<SIGNS>]+|'(?:[^'\\\r\n<SIGNS>]|\\[^\r\n<SIGNS>])+|`[^`\r\n<SIGNS>]+)""",
    "END": r"\s\"'`\x3c\x3e<SIGNS>",
    "HOST": r"<END>/?#",
    "AFTER": r"(?:[\s:=+]|%20|\\[nt]|\\u0020){1,5}",
    "PREFIXED": r"""AIza[0-9A-Za-z_\-]{20,}|gh[a-z]_[A-Za-z0-9]{16,}|github_pat_[A-Za-z0-9_]{16,}|
        glpat-[A-Za-z0-9_\-]{16,}|xox[a-z]-[A-Za-z0-9\-]{8,}|xapp-[A-Za-z0-9\-]{10,}|hf_[A-Za-z0-9]{16,}|
        (?:AKIA|ASIA|AGPA|AIDA|AROA)[A-Z0-9]{12,}|npm_[A-Za-z0-9]{30,}|pypi-[A-Za-z0-9_\-]{30,}|gsk_[A-Za-z0-9]{20,}|
        r8_[A-Za-z0-9]{20,}|(?:xai|nvapi|pplx|tvly|sess)-[A-Za-z0-9_\-]{20,}|lsv2_[A-Za-z0-9_]{20,}|
        dop_v1_[a-f0-9]{30,}|[srp]k_(?:live|test)_[A-Za-z0-9]{8,}|whsec_[A-Za-z0-9+/=]{16,}|
        SG\.[A-Za-z0-9_\-]{10,}\.[A-Za-z0-9_\-]{10,}|ya29\.[A-Za-z0-9_\-.]{16,}|[0-9]{8,10}:AA[A-Za-z0-9_\-]{30,}""",
}
# First blocks and what says of itself what it is (a parameter, a header, a name with a value), then addresses, then
# tokens of a known form, then whatever looks random beside a word.
_RULES = r"""
block      -{4,5} ?(BEGIN|END) [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)? ?-{4,5}
parameter  (?:[?&;#]|%3[Ff]|%26)(?:amp;)?([\w.\-%\[\]]*(?i:key|token|sig|signature|hmac|secret|passw(?:or)?d|pwd|pass|
           auth|credentials?))(?:=|%3[Dd])([^<END>&#;]+)
header     (?m)^[ \t\x3c\x3e*]{0,8}((?i:(?:set-)?cookie))[ \t]*:[ \t]*([^\r\n<SIGNS>]+)
header     ((?i:(?:proxy-)?authorization|(?:set-)?cookie))[ \t]*[:=][ \t]*
           ([^\\<END>](?:[^\r\n"'\\<SIGNS>]|\\[^rn"'<SIGNS>])*)
name       (<NAME>)\\*["'`]?\]?[ \t]{0,20}(?:=\x3e|:=|[:=!]=?|\x3e)[ \t]{0,20}
           (<QUOTED>|[\[{(:=]{0,9}[^\[{(\\&,;:=<END>][^&,;:=<END>]*)
name       ["'](<NAME>)["'][ \t]*,[ \t]*(<QUOTED>)
name       (--[\w\-]*<ROOT>s?)[ \t]+(<QUOTED>|[^\-<END>][^<END>]*)
account    (?:\s-u|--user)[ =]{0,3}["']?[^\s:"'@/]{1,64}:([^\s"'<SIGNS>]+)
netrc      (?:machine\s+\S+|default)\s+(?:(?:login|account)\s+\S+\s+)+password\s+([^\s<SIGNS>]+)
url        :(?:\\?/){2}[^<HOST>:@\[]*:([^<HOST>]+)@
url        :(?:\\?/){2}[^<HOST>:@\[]*:([^<HOST>]*[^0-9<HOST>][^<HOST>]*[/?#][^<END>]*)@
token      :(?:\\?/){2}([^<HOST>:@\[]{16,})(?::[^<HOST>@]*)?@
token      (?:hooks\.slack\.com/(?:services|workflows|triggers)|discord(?:app)?\.com/api/webhooks)/([\w/\-]{16,})
bearer     (?i:bearer)<AFTER>["']?([A-Za-z0-9._~+/=\-]{6,})
basic      (?i:basic)<AFTER>["']?([A-Za-z0-9+/_\-]{8,}={0,2})
jwt        (eyJ[A-Za-z0-9_\-]{6,}\.[A-Za-z0-9_\-]{6,}(?:\.[A-Za-z0-9_\-]*){0,3})
sk         <LEAD>(sk-[A-Za-z0-9_\-]{6,})
api        (sk-(?:ant|proj|or|svcacct)-[A-Za-z0-9_\-]{6,})
api        <LEAD>(<PREFIXED>)
beside     ((?i:key|secret|passw(?:or)?d|passphrase|authorization|credential)s?|(?i:token))["'`\])]*
           (?:[\s:=,]{1,4}|\s(?:is|was|are|as|of|value|set to|header)[\s:=]{1,4})["'`(]*([A-Za-z0-9._~+/\-]{16,}={0,2})
"""


def _beside(name: bytes, value: bytes) -> str | None:
    return (meaning(name.decode())[0] or "token") if looks_random(value) else None


def _header(name: bytes, value: bytes) -> str | None:
    kind = "cookie" if b"cookie" in name.lower() else "authorization"
    return None if value.strip().lower() in NO_SECRET or ELSEWHERE.fullmatch(value) else kind


def _parameter(name: bytes, value: bytes) -> str | None:
    kind = meaning(name[-300:].decode("ascii", "replace"))[0]
    if kind is None:
        kind = "signature" if name.lower().endswith((b"sig", b"signature", b"hmac")) else "token"
    return None if value.lower() in NO_SECRET else kind


def _bearer(_: bytes, value: bytes) -> str | None:
    return "bearer token" if len(value) >= 16 or re.search(rb"[0-9._~+/=\-]", value.rstrip(b".,;-")) else None


def _basic(_: bytes, value: bytes) -> str | None:
    """Base64 of a user and a password, and no word that follows the word "basic"."""
    letters = value.translate(bytes.maketrans(b"-_", b"+/")).rstrip(b"=")
    letters = letters[: len(letters) - (len(letters) % 4 == 1)]
    plain = base64.b64decode(letters + b"=" * (-len(letters) % 4)).decode("utf-8", "replace")
    credentials = ":" in plain and plain.isprintable() and "\ufffd" not in plain
    return "basic credentials" if credentials or (len(value) >= 12 and re.search(rb"[0-9=+]", value)) else None


def _sk(_: bytes, value: bytes) -> str | None:
    return "API key" if len(value) >= 19 or re.search(rb"[0-9]", value) else None


def private_key(_name: bytes, _value: bytes) -> str:
    """Whatever stands between the marks of a private key is one."""
    return "private key"


def _account(_: bytes, value: bytes) -> str | None:
    return None if value.isdigit() else "password"


_JUDGES: dict[str, Judge] = {
    "block": private_key,
    "name": judged,
    "beside": _beside,
    "header": _header,
    "parameter": _parameter,
    "bearer": _bearer,
    "basic": _basic,
    "sk": _sk,
    "account": _account,
    "api": lambda _name, _value: "API key",
    "jwt": lambda _name, _value: "JWT",
    "netrc": lambda _name, _value: "password",
    "token": lambda _name, _value: "token",
    "url": lambda _name, _value: "URL password",
}


def _compiled(pattern: str) -> Any:
    for name, part in reversed(_PARTS.items()):
        pattern = pattern.replace(f"<{name}>", part)
    return re2.compile(re.sub(r"\n\s*", "", pattern).encode("ascii"), _options())


def _options() -> Any:
    options = re2.Options()
    options.encoding = re2.Options.Encoding.LATIN1  # a byte is a letter: names and signs are ASCII, the rest passes
    options.max_mem = 64 << 20
    return options


@cache
def rules() -> tuple[tuple[Any, Judge], ...]:
    """Patterns in the order in which they are to be used, each with its judge."""
    lines = re.sub(r"\n +", "", _RULES.strip()).splitlines()
    return tuple((_compiled(pattern), _JUDGES[judge]) for judge, pattern in (line.split(maxsplit=1) for line in lines))


@cache
def any_rule() -> Any:
    """All patterns as one: a single pass says which of them match somewhere, and in most texts none does."""
    together = re2.Set.SearchSet(_options())
    for pattern, _ in rules():
        together.Add(pattern.pattern)
    together.Compile()
    return together
