"""Secrets are left out of texts and structures, however they are written, and however a text is cut."""

from __future__ import annotations

import json
import re
import time
from base64 import b64encode, urlsafe_b64encode
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman_api import masking
from dragoman_api.masking import LEARNED, MARK, SHORTEST, Mask, MaskedStream, is_secret

PEM = "-----BEGIN KEY-----\nMIIEvQIBADANBgkq\nhkiG9w0BAQEFAASC\n-----END KEY-----\n"
SECRETS = ("hunter2-and-more", "pa$$.*[w]ord\\d+", 'quo"te/ and+plus', "münchen-geheim-😀", "aaaa", "abcab", PEM)


@pytest.mark.parametrize("secret", SECRETS)
@pytest.mark.parametrize(
    "written",
    [
        str,
        lambda text: json.dumps(text),
        lambda text: json.dumps(text, ensure_ascii=False),
        repr,
        quote,
        quote_plus,
        lambda text: quote(text, safe=""),
        lambda text: re.sub("%..", lambda escape: escape[0].lower(), quote(text, safe="")),
        lambda text: "\n".join(text[at : at + 3] for at in range(0, len(text), 3)),
    ],
)
def test_a_secret_is_masked_however_it_is_written(secret, written):
    text = f"begin {written(secret)} end"
    masked = Mask([secret])(text)
    assert masked.startswith("begin ")
    assert masked.endswith(" end")
    assert not set(secret.split("\n")[1] if "\n" in secret else secret) & set(masked) - set("begin end*\"' \n\\r")


@pytest.mark.parametrize("user", ["u", "us", "elastic", "jürgen"])
@pytest.mark.parametrize("encode", [b64encode, urlsafe_b64encode])
def test_a_password_is_masked_behind_any_user_in_base64(user, encode):
    secret = "hunter2-and>>>more???"
    header = encode(f"{user}:{secret}".encode()).decode()
    masked = Mask([secret])(f"Authorization: Basic {header}")
    assert MARK in masked
    assert not any(header[at : at + 6] in masked for at in range(len(header) // 2, len(header) - 6))


@given(st.sampled_from(SECRETS[:6]), st.lists(st.integers(0, 60), max_size=4), st.integers(0, 2))
def test_a_secret_is_masked_wherever_the_text_is_split(secret, cuts, breaks):
    """In any pieces, and with line breaks at any of the cuts: nothing of it is given out."""
    text = f"~{secret}~"
    places = sorted({min(cut, len(text)) for cut in cuts})
    pieces = [text[begin:end] for begin, end in zip([0, *places], [*places, len(text)], strict=True)]
    pieces = [piece + "\n" if at < breaks else piece for at, piece in enumerate(pieces)]
    stream = MaskedStream(Mask([secret]))
    given_out = "".join(map(stream.feed, pieces)) + stream.end()
    assert given_out.replace("\n", "") == f"~{MARK}~"


@given(st.text("abc", max_size=30), st.lists(st.integers(0, 30), max_size=6))
def test_pieces_are_masked_as_the_whole_is(text, cuts):
    """Secrets that are part of each other, that overlap, and that repeat themselves."""
    mask = Mask(["abca", "bcab", "aaaa", "abcabc"])
    places = sorted({min(cut, len(text)) for cut in cuts})
    stream = MaskedStream(mask)
    pieces = [text[begin:end] for begin, end in zip([0, *places], [*places, len(text)], strict=True)]
    assert "".join(map(stream.feed, pieces)) + stream.end() == mask(text)


@given(st.text("abcx\n", max_size=40))
def test_what_is_no_secret_stays_as_it_is(text):
    compact = text.replace("\n", "")
    if not any(secret in compact for secret in ("abca", "bcab")):
        assert Mask(["abca", "bcab"])(text) == text


def test_a_text_that_was_torn_off_does_not_end_in_half_a_secret():
    stream = MaskedStream(Mask(["hunter2-and-more"]))
    assert stream.feed("key hunter2-an") + stream.end(torn=True) == f"key {MARK}"
    assert stream.feed("a hun") + stream.end(torn=True) == "a hun"
    assert stream.feed("key hunter2-an") + stream.end() == "key hunter2-an"


def test_a_very_short_secret_does_not_tear_up_ordinary_words():
    assert Mask(["a", "the", ""])("a theatre") == "a theatre"
    assert len("the") < SHORTEST


def test_what_repeats_itself_without_an_end_is_not_held_back():
    stream = MaskedStream(Mask(["aaaa"]))
    for _ in range(100):
        stream.feed("a" * 1_000)
        assert len(stream._text) < 10


@given(st.text("ab", min_size=4, max_size=60), st.text("ab", max_size=200), st.integers(1, 7))
def test_a_beginning_is_found_however_often_letters_repeat(form, text, step):
    """By looking at each place, and by the table that long repetitions need."""
    form = form + "c"
    slow = next((at for at in range(len(text)) if form.startswith(text[at:])), len(text))
    assert Mask([form]).unfinished(text) <= slow
    assert masking._beginning(form, text) == max(slow, 0)
    stream = MaskedStream(Mask([form]))
    whole = text + form + text
    given_out = "".join(stream.feed(whole[at : at + step]) for at in range(0, len(whole), step)) + stream.end()
    assert form not in given_out
    assert given_out == Mask([form])(whole)


@pytest.mark.parametrize("text", ["a" * 30_000 + "c", "a" * 30_000, ("ab" * 15_000) + "c"])
def test_the_steps_for_a_long_token_grow_with_its_length_only(text):
    """Letters looked at, not seconds: a token of a hostile server may repeat one letter for ever."""
    form = text[:-1] + "b" * 10
    steps = 0

    class Counting(str):
        __slots__ = ()

        def __getitem__(self, key):
            nonlocal steps
            piece = str.__getitem__(self, key)
            steps += len(piece)
            return Counting(piece)

    masking._borders.cache_clear()
    found = masking._beginning(Counting(form), Counting("x" + text))
    assert steps < 100 * len(text)
    assert ("x" + text)[found:] == form[: len(text) + 1 - found]


def test_a_long_token_that_arrives_letter_by_letter_is_not_read_again_for_each(monkeypatch):
    token, looked = "".join(map(str, range(4_000))), 0
    unfinished = Mask.unfinished

    def counting(self, text):
        nonlocal looked
        looked += len(text)
        return unfinished(self, text)

    monkeypatch.setattr(Mask, "unfinished", counting)
    stream = MaskedStream(Mask([token]))
    assert "".join(map(stream.feed, f"~{token}~")) + stream.end() == f"~{MARK}~"
    assert looked < 30 * len(token)


@pytest.mark.parametrize(
    "name",
    ["password", "Password", "db_passwd", "passphrase", "client-secret", "tokens", "access_token", "accessToken",
     "apiKey", "api_key", "X-Api-Key", "credentials", "authorization", "Set-Cookie", "private key", "ssl.key.password",
     "access%5Ftoken"],
)  # fmt: skip
def test_names_of_secrets_are_known(name):
    assert is_secret(name)


@pytest.mark.parametrize("name", ["title", "tokenizer", "tokenization", "key", "author", "passage", "compass"])
def test_other_names_are_not_taken_for_secrets(name):
    assert not is_secret(name)


S = "s3same-value"


@pytest.mark.parametrize(
    "value",
    [
        {"tokens": [S, S]},
        {"auth": {"password": S}},
        {"auth": {"password": {"value": [S]}}},
        {"password": 7351973519},
        [{"a": [{"api_key": S}]}],
        {"body": json.dumps({"auth": {"password": S}})},
        {"body": json.dumps({"body": json.dumps([{"secret": S}])})},
        {"headers": [["Authorization", S]]},
        {"header": f"Bearer {S}"},
        {"url": f"https://user:{S}@example.org/"},
        {"url": f"/x?a=1&access_token={S}&b=2"},
        {"form": f"user=me&password={S}"},
        {"text": f"password: '{S}'"},
        {"text": '{"password": "' + S},
    ],
)
def test_values_called_like_a_secret_are_left_out_of_structures_at_any_depth(value):
    masked = json.dumps(Mask().structure(value))
    assert S not in masked
    assert "7351973519" not in masked
    assert MARK in masked


def test_what_stands_around_values_called_like_a_secret_stays():
    text = f"/x?a=1&access_token={S}&b=2&password='{S}'&c=3"
    assert Mask().request(text) == f"/x?a=1&access_token={MARK}&b=2&password='{MARK}'&c=3"


def test_known_secrets_are_left_out_of_keys_values_and_numbers():
    masked = Mask([S, "12345678"]).structure({S: 1, "n": 12345678, "t": f"x {S}", "l": [True, None, 1.5]})
    assert masked == {MARK: 1, "n": MARK, "t": f"x {MARK}", "l": [True, None, 1.5]}


def test_a_structure_without_secrets_stays_as_it_is():
    value = {"title": "a=b", "n": 2**70, "inner": '{"a": 1.10}', "list": ["x", {"y": None}], "pair": ["a", "b"]}
    assert Mask(["hunter2"]).structure(value) == value


@pytest.mark.parametrize("text", ['"' + "token" * 40_000, "a" * 200_000, "a:[" * 60_000, "?" * 200_000, "://" * 60_000])
def test_a_text_made_to_hold_up_a_regular_expression_does_not(text):
    began = time.perf_counter()
    Mask([S]).request(text)
    assert time.perf_counter() - began < 5


texts = st.one_of(st.just(S), st.text(max_size=8), st.text(max_size=4).map(lambda text: f"{text}{S}{text}"))
structures = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4) | inner.map(json.dumps),
    max_leaves=12,
)


@given(structures)
def test_no_structure_hides_a_known_secret(value):
    """Also as JSON in JSON, as a key, and beside escapes."""
    assert S not in json.dumps(Mask([S]).structure(value), ensure_ascii=False)


@pytest.mark.parametrize("space", [" ", "\t" * 10, " \n" * 500], ids=["one", "ten", "a thousand"])
def test_a_value_is_masked_however_far_it_stands_from_its_name(space):
    assert "hunter2" not in Mask().request(f'{{"a": {{"api_key":{space}["hunter2", {{"x": 1')
    assert "hunter2" not in Mask().request(f"password{space}={space}hunter2x")
    assert "hunter2" not in Mask().request(f"Authorization: Bearer{space}hunter2xyz")


def test_the_last_tokens_are_masked_and_secrets_stay_so():
    """Tokens come for as long as a connection is open; the mask does not grow for as long."""
    mask = Mask(["hunter2-and-more"])
    for number in range(10 * LEARNED):
        mask.learn(f"token-number-{number:05}")
        assert mask(f"hunter2-and-more token-number-{number:05}") == f"{MARK} {MARK}"
    assert mask("token-number-00000") == "token-number-00000"
    assert mask(f"token-number-{9 * LEARNED:05}") == MARK
    for _ in range(10 * LEARNED):
        mask.learn("token-again")
    assert mask(f"token-number-{10 * LEARNED - 1:05}") == MARK
    assert len(mask._forms) < 40 * (LEARNED + 1)


@given(st.lists(st.text("ab", min_size=4, max_size=12), max_size=4), st.text("ab", max_size=60))
def test_each_occurrence_of_each_secret_is_covered(secrets, text):
    """Also of those that repeat or overlap themselves."""
    mask = Mask(secrets)
    forms = [form for form in mask._forms if form in text]
    expected = {
        at + n for form in forms for at in range(len(text)) if text.startswith(form, at) for n in range(len(form))
    }
    assert {at for begin, end in mask.find(text) for at in range(begin, end)} == expected


@pytest.mark.parametrize("token", ["aaaa{}", "a" * 4_000 + "b{}" + "a" * 4_000, "ab" * 2_000 + "{}"])
def test_a_long_text_is_masked_soon_whatever_tokens_a_driver_names(token):
    """A driver names both the tokens and the text, and the host masks on its event loop."""
    mask = Mask()
    for number in range(LEARNED):
        mask.learn(token.format("a" * number))
    began = time.process_time()
    for part in ("a" * 1_000_000, "ab" * 500_000, token.format("a") * 1_000, "a" * 100_000 + "b"):
        mask(part[:1_000_000])
    assert time.process_time() - began < 10
