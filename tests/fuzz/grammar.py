"""Grammars that many targets share: hostile texts and numbers, spoiled JSON, versions, sections of one input."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from hypothesis.strategies import DrawFn, SearchStrategy

SECTION = b"\n%%\n"
"""Stands between the parts of an input."""

_MARK = "@raw{}@"
RAW = (
    "9" * 4_301, "-" + "9" * 4_400, "1" + "0" * 400, "1e400", "-1e-400", "1E999999999",
    "0.1000000000000000055511151231",
    "NaN", "Infinity", "[" * 2_000 + "]" * 2_000, "[" * 50_000, '{"a":' * 1_500 + "1" + "}" * 1_500, '"\\ud800"',
    '"\\u0000"', '{"a":1,"a":2}', "18446744073709551616", "-9223372036854775809", "1.0", "\ufeff1", "",
)  # fmt: skip
"""JSON, or nearly so, that no encoder writes."""

TEXTS = (
    "", " ", ".", "..", "../../x", "/etc/passwd", "a/b", "a\\b", "C:x", "con", "a\nb", "a\r\nb", "a\tb", "\x00",
    "\x1b[31m",
    "\u202e", "\u200b", "\u2028", "ſ", "İ", "ﬁ", "é", "e\u0301", "💩", "<script>alert(1)</script>",
    '"><img src=x onerror=1>',
    "javascript:alert(1)", "${x}", "%s%n", "{{x}}", "a" * 300, "A" * 5_000, "1" * 5_000, "=1+1", "command:touch x",
    "env:HOME",
    "file:/etc/passwd", "127.0.0.1", "http://127.0.0.1:1/", "[" * 500, "(" * 500, "a-" * 500, "a." * 500, "a,b;c|d",
)  # fmt: skip

VERSIONS = (
    "1.0", "1.0.0", "1!2.0", "1.0a1", "1.0.post1.dev2", "1.0+local.1", "0", "00.1", "1" * 4_301, "1." * 300 + "1",
    "v1.0",
    "1.0-1", "1.*", "", " 1.0 ", "１.０", "1.0\n", "9" * 400, "1e5", "latest", "1_0",
)  # fmt: skip


def hostile_text() -> SearchStrategy[str]:
    """Make a text that somebody may not have thought of."""
    return st.one_of(
        st.sampled_from(TEXTS),
        st.text(max_size=20),
        st.text("abc.-_0 /:", max_size=20),
        st.tuples(st.sampled_from(TEXTS), st.sampled_from((1, 2, 50, 400))).map(
            lambda pair: (pair[0] * pair[1])[:20_000]
        ),
    )


def scalars() -> SearchStrategy[Any]:
    """Make a value in place of another one."""
    numbers = st.one_of(st.integers(), st.sampled_from((0, -1, 1, 2**31, 2**53, 2**63, 2**64, 10**300)))
    return st.one_of(
        hostile_text(), numbers, st.booleans(), st.none(), st.floats(allow_nan=False, allow_infinity=False),
        st.sampled_from(([], {}, [[]], [{}], {"": {}}, [None], [1, "a", None, []], {"a": 1})),
        st.integers(0, len(RAW) - 1).map(_MARK.format),
    )  # fmt: skip


@st.composite
def spoiled_json(draw: DrawFn, example: Any, most: int = 4) -> bytes:
    """Make JSON like an example, with some things changed: values, keys, lengths, kinds, depths."""
    value = json.loads(json.dumps(example))
    for _ in range(draw(st.integers(0, most))):
        value = _edited(draw, value)
    text = json.dumps(value, ensure_ascii=draw(st.booleans()))
    for at, raw in enumerate(RAW):
        text = text.replace(f'"{_MARK.format(at)}"', raw)
    return text.encode(errors="surrogatepass")


def _edited(draw: DrawFn, value: Any) -> Any:
    """Change one place, each as likely as any other."""
    places = list(_places(value))
    if not places:
        return _other(draw, value)
    holder, key = places[draw(st.integers(0, len(places) - 1))]
    match draw(st.integers(0, 13)):
        case 0:
            del holder[key]
        case 1:
            more = draw(st.sampled_from((1, 30, 400)))
            if isinstance(holder, list):
                holder[key:key] = [holder[key]] * more
            else:
                holder |= {f"{key}{number}": holder[key] for number in range(more)}
        case 2 if isinstance(holder, dict):
            holder[draw(hostile_text())] = holder.pop(key)
        case _:
            holder[key] = _other(draw, holder[key])
    return value


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Yield every place in a value: what holds it, and where."""
    entries = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in entries:
        yield value, key
        yield from _places(inner)


def _other(draw: DrawFn, value: Any) -> Any:
    match draw(st.integers(0, 5)):
        case 0:
            return [value]
        case 1:
            return {draw(hostile_text()): value}
        case _:
            return draw(scalars())


def json_of(example: Any) -> SearchStrategy[bytes]:
    """Make JSON like an example, or any."""
    values = st.recursive(
        scalars(), lambda inner: st.lists(inner, max_size=4) | st.dictionaries(hostile_text(), inner, max_size=4)
    )
    return st.one_of(
        spoiled_json(example), spoiled_json(example), values.map(lambda value: json.dumps(value).encode()),
        st.sampled_from(RAW).map(lambda text: text.encode(errors="surrogatepass")), st.binary(max_size=200),
    )  # fmt: skip


def sections(*parts: SearchStrategy[bytes]) -> SearchStrategy[bytes]:
    """Put parts into one input."""
    return st.tuples(*parts).map(SECTION.join)


def split(data: bytes, count: int) -> list[bytes]:
    """Take the parts of an input; those that are not there are empty."""
    return [*data.split(SECTION, count - 1), *[b""] * count][:count]


@st.composite
def pasted(draw: DrawFn, words: Sequence[str], *, most: int = 30, glue: Iterable[str] = ("", " ", "\n")) -> bytes:
    """Make a text of the words of a grammar, hostile texts, and, in one of four texts, long repetitions."""
    parts, times = [], (1, 1, 1, 1, 1, 2, 40, 3_000, 15_000) if draw(st.integers(0, 3)) == 3 else (1, 1, 1, 2, 4)
    for _ in range(draw(st.integers(0, most))):
        part = draw(st.sampled_from(words)) if draw(st.integers(0, 5)) else draw(hostile_text())
        parts.append((part * draw(st.sampled_from(times)))[:30_000])
        parts.append(draw(st.sampled_from(tuple(glue))))
    return "".join(parts).encode(errors="surrogatepass")


def text(data: bytes) -> str:
    """Read an input as text; bytes that are none become halves of characters, as in names that come from a system."""
    return data.decode(errors="surrogateescape")
