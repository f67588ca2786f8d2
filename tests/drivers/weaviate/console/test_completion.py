"""Completion of console texts: REST paths, collections and properties in GraphQL, and that no text breaks it."""

from __future__ import annotations

from drivers.weaviate.rig import OnFake, OnServer, Rig
from hypothesis import given
from hypothesis import strategies as st

from dragoman_api.console import MAX_SUGGESTIONS, CompletionRequest
from dragoman_weaviate.console_text import complete

CURSOR = "▮"
SCHEMA = {"Book": [("title", "text"), ("pages", "int")], "Author": [("name", "text")]}


async def texts(wv: Rig, marked: str) -> list[str]:
    request = CompletionRequest(text=marked.replace(CURSOR, ""), position=marked.index(CURSOR))
    return [each.text for each in (await wv.driver.complete_console(request)).suggestions]


class Rules:
    """What is suggested."""

    async def test_paths_collections_and_properties(self, wv: Rig) -> None:
        name = await wv.collection({"title": "text", "pages": "int"}, [])
        assert await texts(wv, f"po{CURSOR}") == ["POST"]
        assert await texts(wv, f"GET /v1/sch{CURSOR}") == ["schema"]
        assert name in await texts(wv, f"GET /v1/schema/{name[:5]}{CURSOR}")
        assert await texts(wv, "{ G" + CURSOR) == ["Get"]
        assert await texts(wv, "{ Get { " + name[:5] + CURSOR) == [name]
        assert await texts(wv, "{ Get { " + name + " { ti" + CURSOR + " } } }") == ["title"]
        assert await texts(wv, "{ Get { " + name + "(limit: 5) { pa" + CURSOR) == ["pages"]
        assert await texts(wv, "{ Get { " + name + "(whe" + CURSOR) == ["where"]
        assert await texts(wv, "{ Get { " + name + " { title _additional { cr" + CURSOR) == ["creationTimeUnix"]
        assert await texts(wv, "{ Aggregate { " + name + " { me" + CURSOR) == ["meta"]
        assert await texts(wv, "{ Aggregate { " + name + " { meta { c" + CURSOR) == ["count"]
        assert await texts(wv, "{ Aggregate { " + name + " { title { c" + CURSOR) == []
        assert wv.log is not None
        mark = len(wv.log)
        assert await texts(wv, "{ Get { " + name + " { ti" + CURSOR) == ["title"]
        assert len(wv.log) == mark


class TestOnFake(OnFake, Rules):
    """The rules on a fake."""


class TestOnServer(OnServer, Rules):
    """The rules on real servers."""


ARGUMENTS = ("where", "limit", "offset", "sort", "after", "tenant", "nearVector", "nearObject", "bm25", "hybrid")


def test_every_argument_of_a_query_is_suggested() -> None:
    for name in ARGUMENTS:
        text = "{ Get { Book(" + name[:-1]
        found = complete(CompletionRequest(text=text, position=len(text)), SCHEMA)
        assert name in [each.text for each in found.suggestions]


def test_a_line_of_an_open_query_continues_it() -> None:
    text = "{\n  Get {\n    Bo"
    completion = complete(CompletionRequest(text=text, position=len(text)), SCHEMA)
    assert [suggestion.text for suggestion in completion.suggestions] == ["Book"]


def test_more_collections_than_are_suggested_are_mentioned() -> None:
    for count, more in ((MAX_SUGGESTIONS, False), (MAX_SUGGESTIONS + 1, True)):
        schema: dict[str, list[tuple[str, str]]] = {f"Book{number}": [] for number in range(count)}
        completion = complete(CompletionRequest(text="{ Get { Bo", position=10), schema)
        assert (len(completion.suggestions), completion.more) == (MAX_SUGGESTIONS, more)


def test_a_path_begins_with_one_slash_whether_or_not_it_is_typed() -> None:
    for typed, path in (("", "/v1/schema"), ("/", "v1/schema"), ("/v1/", "schema"), ("v1/", "schema")):
        text = f"GET {typed}"
        found = complete(CompletionRequest(text=text, position=len(text)), SCHEMA)
        assert found.suggestions[0].text == path


PIECES = st.sampled_from(
    ["GET ", "/v1/", "{", "}", "(", ")", '"', '"""', "#", "\n", "Get", "Book", "title", "_additional", " ", "\\", "ä",
     "\ud800", "query", ":", ","]
)  # fmt: skip


@given(st.one_of(st.text(), st.lists(PIECES, max_size=40).map("".join)), st.data())
def test_no_text_and_no_position_breaks_it_and_ranges_lie_in_the_text(text: str, data: st.DataObject) -> None:
    position = data.draw(st.integers(0, len(text)))
    for each in complete(CompletionRequest(text=text, position=position), SCHEMA).suggestions:
        assert 0 <= each.start <= position <= each.end <= len(text)
