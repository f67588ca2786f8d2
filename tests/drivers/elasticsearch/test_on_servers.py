"""Surprising behaviour of servers, and every setting of a connection, on fakes and on real servers."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from drivers.elasticsearch.rig import OnFake, OnServer, Rig, connected, profile

from dragoman_api import CellRequest, ConsoleText, Filter, OutcomeStatus, RawQuery, RowKey, Sort, Update
from dragoman_api.cells import Json
from dragoman_api.connections import AuthScheme, Secrets, SslMode
from dragoman_api.errors import (
    AuthenticationError,
    ConnectionFailedError,
    FilterNotSupportedError,
    ObjectNotFoundError,
    QueryError,
)

TEXT = {"type": "text", "fields": {"keyword": {"type": "keyword"}}}
KNOWN = {"type": "flattened"}


async def offers(es: Rig, **spec: Any) -> bool:
    """Tell whether this build has a type of field."""
    name = "t-offers"
    reply = await es.raw("PUT", f"/{name}", {"mappings": {"properties": {"x": spec}}})
    await es.raw("DELETE", f"/{name}")
    return bool(reply.status == 200)


class ColumnRules:
    """Mappings of every shape, as columns and cells."""

    async def test_E18_E19_E20_E21_E25_columns_and_cells_of_every_shape(self, es: Rig) -> None:
        properties: dict[str, Any] = {
            "Title": TEXT,
            "author": {"properties": {"name": {"type": "keyword"}, "born": {"type": "integer"}}},
            "items": {"type": "nested", "properties": {"sku": {"type": "keyword"}, "qty": {"type": "integer"}}},
            "tags": {"type": "keyword"},
            "writer": {"type": "alias", "path": "author.name"},
        }
        document = {
            "Title": "Tea", "author": {"name": "Ada"}, "items": [{"sku": "A", "qty": 1}, {"sku": "B"}, {}],
            "tags": ["x", None],
        }  # fmt: skip
        name = await es.index(properties, [document, {"Title": "Ale", "author": {"name": "Bob"}}])
        columns = {column.name: column for column in (await es.driver.describe_object(name)).columns}
        assert list(columns) == [
            "_id", "_index", "_score", "author.born", "author.name", "items", "items.qty", "items.sku", "tags",
            "Title", "writer",
        ]  # fmt: skip
        assert [each.name for each in columns.values() if each.is_key] == ["_id"]
        kept = {each.name for each in columns.values() if each.written != "always"}
        assert kept == {"_id", "_index", "_score", "items.qty", "items.sku", "writer"}
        page = await es.page(name, sort=[Sort("Title", descending=True)])
        assert page.rows[0].to_dict() | {"_score": None} == {
            "_id": "0", "_index": name, "_score": None, "author.born": None, "author.name": "Ada",
            "items": '[{"sku":"A","qty":1},{"sku":"B"},{}]', "items.qty": "[1,null,null]",
            "items.sku": '["A","B",null]', "tags": '["x",null]', "Title": "Tea", "writer": "Ada",
        }  # fmt: skip
        assert await es.ids(name, Filter("writer", "=", "Bob")) == ["1"]
        assert await es.ids(name, sort=[Sort("writer", descending=True)]) == ["1", "0"]

    async def test_E17_types_that_conflict_between_indices(self, es: Rig) -> None:
        one = await es.index(
            {"n": {"type": "long"}, "k": {"type": "keyword"}, "o": {"type": "keyword"}, "l": {"type": "integer"}},
            [{"n": 2**53 + 1, "k": "a", "o": "x", "l": 1}],
        )
        two = f"{one}-2"
        mapping = {
            "n": {"type": "double"}, "k": {"type": "long"}, "o": {"properties": {"p": {"type": "long"}}}, "l": TEXT,
        }  # fmt: skip
        await es.call("PUT", f"/{two}", {"settings": {"number_of_replicas": 0}, "mappings": {"properties": mapping}})
        es.made.append(two)
        await es.call("PUT", f"/{two}/_doc/1?refresh=true", {"n": 1.5, "k": 7, "o": {"p": 3}, "l": "one"})
        described = await es.driver.describe_object(f"{one}*")
        assert {note.column for note in described.notes} == {"n", "k", "l", "o"}
        page = await es.page(f"{one}*", sort=[Sort("n")])
        assert [row["n"] for row in page.rows] == [1.5, 2**53 + 1], "numbers of two types sort as one"
        assert [row["k"] for row in page.rows] == [7, "a"]
        assert await es.ids(f"{one}*", Filter("n", "=", 1.5)) == ["1"]
        for column in ("k", "l", "o"):
            with pytest.raises(FilterNotSupportedError):
                await es.page(f"{one}*", Filter(column, "=", "a"))
            [note] = (await es.page(f"{one}*", sort=[Sort(column)])).notes
            assert (note.code, note.column) == ("sort-dropped", column)
        assert await es.ids(f"{one}*", Filter("o.p", "=", 3)) == ["1"], "an index that lacks the leaf has no such row"

    async def test_dotted_keys_are_found_as_they_are_written(self, es: Rig) -> None:
        documents = ['{"a.b":1}', '{"a":{"b":2}}', '{"a":{"b":3},"a.b":4}', '{"a.b.c":5,"a":{"d":6}}']
        properties = {"a": {"properties": {"b": {"type": "long"}}}}
        name = await es.index(properties, documents[:3])
        assert {row["_id"]: row["a.b"] for row in (await es.page(name)).rows} == {"0": 1, "1": 2, "2": 4}
        assert await es.ids(name, Filter("a.b", ">=", 1)) == ["0", "1", "2"]
        assert await es.ids(name, sort=[Sort("a.b")]) == ["0", "1", "2"]
        deep = await es.index({"a": {"properties": {"d": {"type": "long"}}}}, documents[3:])
        [row] = (await es.page(deep, columns=["a.b.c", "a.d"])).rows
        assert row.to_dict() == {"a.b.c": 5, "a.d": 6}

    async def test_integers_of_64_bits_and_more_keep_every_digit(self, es: Rig) -> None:
        low, high, beyond = -(2**63), 2**63 - 1, 10**40 + 1
        properties = {"n": {"type": "long"}, "raw": {"type": "object", "enabled": False}}
        rows = [f'{{"n":{low}}}', f'{{"n":{high},"raw":{{"x":{beyond}}}}}', f'{{"n":{high - 1}}}', '{"n":[7,8]}']
        name = await es.index(properties, rows)
        page = await es.page(name, sort=[Sort("n")])
        assert [row["n"] for row in page.rows] == [low, "[7,8]", high - 1, high]
        assert page.rows[3]["raw"] == f'{{"x":{beyond}}}'
        assert await es.ids(name, Filter("n", "=", high)) == ["1"]
        assert await es.ids(name, Filter("n", ">", high - 1)) == ["1"]
        assert await es.ids(name, Filter("n", "between", [str(low), str(low + 1)])) == ["0"]
        assert await es.driver.fetch_cell(CellRequest(key=page.keys[3], column="raw")) == Json(f'{{"x":{beyond}}}')
        with pytest.raises(FilterNotSupportedError, match="long"):
            await es.page(name, Filter("n", "=", 2**63))
        [found] = await es.console(f'POST /{name}/_search\n{{"sort":["n"]}}')
        assert found.page is not None
        assert [row["n"] for row in found.page.rows] == [low, "[7,8]", high - 1, high]

    async def test_flattened_fields_are_one_column_whose_keys_are_asked_for(self, es: Rig) -> None:
        if not await offers(es, **KNOWN):
            pytest.skip("this build has no flattened fields")
        rows = [{"f": {"a": "x", "b": {"c": "1"}}}, {"f": {"a": "y"}}, {}]
        name = await es.index({"f": KNOWN}, rows)
        page = await es.page(name)
        assert [row["f"] for row in page.rows] == ['{"a":"x","b":{"c":"1"}}', '{"a":"y"}', None]
        [row, _, _] = (await es.page(name, columns=["f.a", "f.b.c"])).rows
        assert row.to_dict() == {"f.a": "x", "f.b.c": "1"}
        assert await es.ids(name, Filter("f.b.c", "=", "1")) == ["0"]
        assert await es.ids(name, Filter("f.a", "not-null")) == ["0", "1"]
        assert (await es.ids(name, sort=[Sort("f.a", descending=True)]))[:2] == ["1", "0"]
        with pytest.raises(FilterNotSupportedError, match="a flattened field does not take it"):
            await es.page(name, Filter("f.a", "contains", "x"))

    async def test_what_a_field_announces_runs_and_the_rest_is_refused(self, es: Rig) -> None:
        properties: dict[str, Any] = {
            "bin": {"type": "binary"},
            "off": {"type": "object", "enabled": False},
            "deaf": {"type": "keyword", "index": False, "doc_values": False},
            "half": {"type": "integer", "index": False},
            "geo": {"type": "geo_point"},
            "span": {"type": "integer_range"},
            "n": {"type": "long"},
        }
        rows = [
            {"bin": "U29tZQ==", "off": {"a": 1}, "deaf": "x", "half": 1, "geo": "1,2", "span": {"gte": 1, "lte": 2}},
            {"n": 1},
        ]
        name = await es.index(properties, rows)
        columns = {column.name: column for column in (await es.driver.describe_object(name)).columns}
        # `exists` on these would answer 200 with no rows, and "is null" would be the whole index.
        assert [each for each in ("bin", "off", "deaf") if columns[each].operators] == []
        for column in ("geo", "span"):  # called aggregatable; a sort fails, or is garbage
            assert await es.ids(name, Filter(column, "not-null")) == ["0"]
            page = await es.page(name, sort=[Sort(column)])
            assert ([note.code for note in page.notes], page.total) == (["sort-dropped"], 2)
        by_doc_values = "=" in columns["half"].operators
        assert by_doc_values is (es.version >= (8, 1))
        if by_doc_values:
            assert await es.ids(name, Filter("half", "=", 1)) == ["0"]
        assert await es.ids(name, Filter("half", "null")) == ["1"]

    async def test_an_array_that_other_indices_do_not_have_as_one(self, es: Rig) -> None:
        one = await es.index({"a": {"type": "nested", "properties": {"x": {"type": "long"}}}}, [{"a": [{"x": 1}]}])
        await es.call("PUT", f"/{one}-2", {"mappings": {"properties": {"k": {"type": "keyword"}}}})
        es.made.append(f"{one}-2")
        assert await es.ids(f"{one}*", Filter("a.x", "=", 1)) == ["0"]
        page = await es.page(f"{one}*", sort=[Sort("a.x")])
        assert (page.total, [note.code for note in page.notes]) == (1, ["sort-dropped"])
        mapping = {"properties": {"a": {"properties": {"x": {"type": "long"}}}}}
        await es.call("PUT", f"/{one}-3", {"mappings": mapping})
        es.made.append(f"{one}-3")
        with pytest.raises(FilterNotSupportedError, match="nested"):
            await es.page(f"{one}*", Filter("a.x", "=", 1))


class RequestRules:
    """Filters, walks and the console where the server's own answer would mislead."""

    async def test_as_many_values_as_the_server_takes(self, es: Rig) -> None:
        name = await es.index({"k": {"type": "keyword"}}, [{"k": "v7"}, {"k": "other"}])
        many = [f"V{at}" for at in range(1_024)]
        if es.version >= (7, 10):
            assert await es.ids(name, Filter("k", "in", many, case=False)) == ["0"]
        assert await es.ids(name, Filter("k", "not-in", [f"v{at}" for at in range(65_536)])) == ["1"]
        with pytest.raises(FilterNotSupportedError, match="65,536"):
            await es.page(name, Filter("k", "in", [f"v{at}" for at in range(65_537)]))

    async def test_names_of_indices_and_numbers_that_do_not_fit(self, es: Rig) -> None:
        name = await es.index({"n": {"type": "integer"}}, [{"n": 1}])
        other = await es.index({"n": {"type": "integer"}}, [{"n": 2}], name="shops")
        both = f"{name},{other}"
        assert await es.ids(both, Filter("_index", "=", name)) == ["0"]
        assert (await es.page(both, Filter("_index", "not-contains", "books"))).keys[0].object == other
        with pytest.raises(FilterNotSupportedError, match="would expand"):
            await es.page(both, Filter("_index", "=", "t*"))
        with pytest.raises(FilterNotSupportedError, match="out of range"):
            await es.page(both, Filter("n", "=", 2**40))
        assert await es.ids(both, Filter("n", "=", "1.0")) == ["0"]
        assert await es.ids(both, Filter("n", "=", 1.5)) == []

    async def test_a_context_that_is_lost_or_spoilt_is_told_or_renewed(self, es: Rig) -> None:
        if not es.driver._exchanges.dialect.point_in_time:
            pytest.skip("scrolls only")
        name = await es.index({"n": {"type": "long"}}, [{"n": at} for at in range(20)])
        await es.page(name, offset=9_995, limit=10)
        [opened] = es.driver._pagers.values()
        assert opened.pager.total == 20
        held = opened.pager.close()
        assert held is not None
        opened.pager.pit = "bm90IGFuIGlk"
        with pytest.raises(QueryError):
            await es.driver._run(opened.pager.fetch(5, 5, {}))
        await es.call(held.method, held.path, held.body)
        opened.pager.pit = json.loads(held.body or "")["id"]
        assert [hit.id for hit in await es.driver._run(opened.pager.fetch(5, 5, {}))] == ["5", "6", "7", "8", "9"]
        assert opened.pager.renewed
        if es.fake is None:
            await es.call("DELETE", f"/{name}")
            with pytest.raises((ObjectNotFoundError, QueryError)):
                await es.driver._run(opened.pager.fetch(10, 5, {}))

    async def test_a_document_may_be_called_like_a_search(self, es: Rig) -> None:
        name = await es.index({"n": {"type": "long"}})
        text = f'POST /{name}/_doc/_search\n{{"n": 1}}'
        [parsed] = await es.driver.parse_console(ConsoleText(text))
        assert parsed.writes
        if es.version >= (8, 0):
            [found] = await es.console(text)
            assert found.status == 201, "it does write"

    async def test_E2_E26_every_method_and_shape_of_a_request(self, es: Rig) -> None:
        name = await es.index({"n": {"type": "long"}})
        text = f'''\
        # a file as people write them
        put /{name}/_doc/1?refresh=true   // the first
        {{"n": 1, /* not stored */ "t": """say "so"
        // kept"""}}
        POST {name}/_bulk?refresh=true
        {{"index": {{"_id": 2}}}}
        {{"n": 2}}
        HEAD /{name}/_doc/2

        GET {name}/_count
        {{"query": {{"match_all": {{}}}}}}
        DELETE /{name}/_doc/2?refresh=true
        GET /_cat/indices/{name}?h=index
        '''
        found = await es.console(text)
        assert [each.status for each in found] == [201, 200, 200, 200, 200, 200]
        assert json.loads(found[3].text)["count"] == 2
        assert found[5].text.strip() == name
        assert "not stored" not in await es.source(name, "1")
        assert json.loads(await es.source(name, "1"))["t"] == 'say "so"\n        // kept'

    async def test_plain_json_is_taken_by_every_version(self, es: Rig) -> None:
        name = await es.index({"n": {"type": "long"}}, [{"n": 1}])
        assert (await es.page(name, Filter("n", "=", 1))).total == 1
        [found] = await es.console(f'POST /_bulk\n{{"index":{{"_index":"{name}"}}}}\n{{"n":2}}')
        assert (found.status, found.failed) == (200, "")
        assert {each.content_type for each in es.log if each.body} == {"application/json", "application/x-ndjson"}

    async def test_E44_E45_what_the_grid_lacks_the_console_still_does(self, es: Rig) -> None:
        name = await es.index({"n": {"type": "long"}})
        [found] = await es.console(f'PUT /{name}/_mapping\n{{"properties": {{"k": {{"type": "keyword"}}}}}}')
        assert found.status == 200
        described = await es.driver.describe_object(name)
        assert [column.name for column in described.columns[3:]] == ["k", "n"]

    async def test_numbers_of_a_console_answer_keep_their_digits(self, es: Rig) -> None:
        """E38."""
        name = await es.index({"n": {"type": "double"}}, mapping={"dynamic": False})
        await es.call("PUT", f"/{name}/_doc/1?refresh=true", '{"n":1.10,"x":123456789012345678901234567890}')
        [found] = await es.console(f"GET /{name}/_doc/1")
        assert '"n": 1.10' in found.text
        assert "123456789012345678901234567890" in found.text
        [found] = await es.console(f"GET /{name}/_search")
        assert found.page is not None
        assert [found.page.rows[0][each] for each in ("n", "x")] == [Decimal("1.10"), 123456789012345678901234567890]


class TestOnFake(ColumnRules, RequestRules, OnFake):
    pass


class TestOnServer(ColumnRules, RequestRules, OnServer):
    async def test_a_mapping_of_a_thousand_fields(self, es: Rig) -> None:
        kinds: list[dict[str, Any]] = [{"type": "keyword"}, {"type": "long"}, {"type": "date"}, {"type": "boolean"}]
        values: list[Any] = ["a", 2**53 + 1, "2024-01-01T00:00:00Z", True]
        properties = {f"f{at:04}": kinds[at % 4] for at in range(1_000)}
        whole = {f"f{at:04}": values[at % 4] for at in range(1_000)}
        settings = {"index.mapping.total_fields.limit": 1_100}
        name = await es.index(properties, [whole, {"f0999": False}, {}], settings=settings)
        assert len((await es.driver.describe_object(name)).columns) == 1_003
        page = await es.page(name)
        found = {row["_id"]: row.to_dict() for row in page.rows}
        assert {key: cell for key, cell in found["0"].items() if key in whole} == whole
        assert [key for key, cell in found["1"].items() if cell is not None and key in whole] == ["f0999"]
        for at, value in enumerate(values, 996):
            assert await es.ids(name, Filter(f"f{at:04}", "=", value), sort=[Sort(f"f{at:04}")]) == ["0"]
        assert (await es.page(name, RawQuery("a"))).total == 1, "a word in a thousand fields"

    async def test_errors_without_status_and_as_plain_text(self, es: Rig) -> None:
        [found] = await es.console("PUT /_nosuch/a/b/c/d")
        assert 400 <= found.status < 500
        assert found.notes[0].reason.startswith(f"HTTP {found.status}: ")
        format_of_the_server = {"type": "date", "format": "dd.MM.yy"}  # only it knows what such a format reads
        name = await es.index({"d": format_of_the_server}, [{"d": "01.01.24"}])
        with pytest.raises(QueryError, match="failed to parse date field"):
            await es.page(name, Filter("d", "=", "soon"))

    async def test_a_blocked_index_is_429_and_not_asked_twice(self, es: Rig) -> None:
        name = await es.index({"n": {"type": "long"}}, [{"n": 1}])
        await es.call("PUT", f"/{name}/_settings", {"index.blocks.read_only_allow_delete": True})
        mark = len(es.log)
        [found] = await es.console(f'POST /{name}/_doc\n{{"n": 2}}')
        assert (found.status, len(es.log) - mark) == (429, 1)
        assert "TOO_MANY_REQUESTS/12" in found.notes[0].reason

    async def test_E17_runtime_fields_filter_and_sort_like_others(self, es: Rig) -> None:
        if es.version < (7, 12):
            pytest.skip("runtime fields come with 7.11")
        runtime = {"runtime": {"twice": {"type": "long"}}, "properties": {"n": {"type": "long"}}}
        name = await es.index(mapping=runtime, documents=[{"n": 1, "twice": 2}, {"n": 2, "twice": 4}, {"n": 3}])
        assert await es.ids(name, Filter("twice", ">", 2)) == ["1"]
        assert await es.ids(name, Filter("twice", "null")) == ["2"]
        assert (await es.ids(name, sort=[Sort("twice", descending=True)]))[:2] == ["1", "0"]

    async def test_E17_a_runtime_field_in_the_place_of_a_mapped_one_works_like_others(self, es: Rig) -> None:
        """The server takes the runtime field for filters, sorts and `fields`; documents keep what is stored."""
        if es.version < (7, 12):
            pytest.skip("runtime fields come with 7.11")
        mapped = {"n": {"type": "long"}, "o": {"properties": {"p": {"type": "keyword"}}}, "t": {"type": "text"}}
        runtime = {"n": {"type": "keyword"}, "o.p": {"type": "long"}, "t": {"type": "long"}}
        rows = [{"n": 5, "o": {"p": "3"}, "t": "7"}, {"n": 40, "o": {"p": "20"}, "t": "8"}]
        name = await es.index(mapping={"properties": mapped, "runtime": runtime}, documents=rows)
        described = await es.driver.describe_object(name)
        types = {
            column.name: (column.type, column.sortable, column.written, column.path) for column in described.columns
        }
        assert types["n"] == ("keyword", True, "always", ("_source", "n"))
        assert types["o.p"] == ("long", True, "always", ("_source", "o.p"))
        assert types["t"] == ("long", True, "always", ("_source", "t"))
        assert described.notes == []
        assert await es.ids(name, Filter("n", ">", "40")) == ["0"]
        assert await es.ids(name, Filter("n", "starts", "4")) == ["1"]
        assert await es.ids(name, Filter("o.p", ">", 3)) == ["1"]
        assert await es.ids(name, Filter("t", "=", 7)) == ["0"]
        assert await es.ids(name, sort=[Sort("n")]) == ["1", "0"]
        assert await es.ids(name, sort=[Sort("o.p", descending=True)]) == ["1", "0"]
        page = await es.page(name, sort=[Sort("t")], columns=["n", "o.p", "t"])
        assert [[str(cell) for cell in row] for row in page.cells] == [["5", "3", "7"], ["40", "20", "8"]]
        [outcome] = await es.apply(Update(RowKey(name, "0"), {"o.p": 4}))
        assert outcome.status == OutcomeStatus.APPLIED
        assert json.loads(await es.source(name, "0")) == {"n": 5, "o": {"p": 4}, "t": "7"}


# settings of a connection


def basic(server: dict[str, Any], **more: Any) -> dict[str, Any]:
    user = server["users"]["superuser"]
    return {
        "auth_scheme": AuthScheme.BASIC,
        "options": {"username": user["username"]},
        "secrets": Secrets(values={"password": user["password"]}),
        **more,
    }


async def opens(server: dict[str, Any], url: str = "", **more: Any) -> str:
    async with connected(profile(url or server["url"], **more), version=server["version"]) as es:
        assert (await es.driver.ping()).ok
        return str((await es.driver.connect(es.driver._profile, es.http, None)).version)


@pytest.mark.live("elasticsearch")
class TestSettingsOnServer:
    async def test_E9_E10_E11_every_way_to_authenticate(self, live_server: dict[str, Any]) -> None:
        if not live_server["security"]:
            assert await opens(live_server) == live_server["version"]
            return
        assert await opens(live_server, **basic(live_server)) == live_server["version"]
        full = live_server["api_keys"]["full"]
        key = {"auth_scheme": AuthScheme.API_KEY, "secrets": Secrets(values={"api_key": full["encoded"]})}
        assert await opens(live_server, **key) == live_server["version"]
        with pytest.raises(AuthenticationError, match=f"^{AuthenticationError.prefix}"):
            await opens(live_server)

    async def test_E8_E12_E13_E14_every_way_to_encrypt(self, live_server: dict[str, Any]) -> None:
        if not (live_server["tls"] and live_server["security"]):
            with pytest.raises(ConnectionFailedError, match=f"^{ConnectionFailedError.prefix}"):
                await opens(live_server, ssl_mode=SslMode.VERIFY_IDENTITY)
            assert await opens(live_server, ssl_mode=SslMode.DISABLED, **who(live_server))
            return
        known = Path(live_server["ca_file"]).read_text(encoding="utf-8")
        stranger = Path(live_server["stranger_ca_file"]).read_text(encoding="utf-8")
        named = live_server["url"].replace("127.0.0.1", "localhost")
        wrong = live_server["wrong_name_url"]
        cases: list[tuple[SslMode, str, str, bool]] = [
            (SslMode.DISABLED, "", named, False),
            (SslMode.PREFERRED, "", named, True),
            (SslMode.REQUIRED_SKIP_VERIFY, "", named, True),
            (SslMode.VERIFY_CA, known, named, True),
            (SslMode.VERIFY_CA, stranger, named, False),
            (SslMode.VERIFY_IDENTITY, known, named, True),
            (SslMode.VERIFY_IDENTITY, "", named, False),
        ]
        if wrong:
            cases += [(SslMode.VERIFY_CA, known, wrong, True), (SslMode.VERIFY_IDENTITY, known, wrong, False)]
        for mode, ca, url, fine in cases:
            given = basic(live_server, ssl_mode=mode, ca_pem=ca)
            if fine:
                assert await opens(live_server, url, **given) == live_server["version"], (mode, url)
                continue
            with pytest.raises(ConnectionFailedError, match=f"^{ConnectionFailedError.prefix}") as caught:
                await opens(live_server, url, **given)
            assert caught.value.hint, mode
        skipping = basic(live_server, ssl_mode=SslMode.VERIFY_IDENTITY, skip_tls_verification=True)
        assert await opens(live_server, named, **skipping) == live_server["version"]


def who(server: dict[str, Any]) -> dict[str, Any]:
    return basic(server) if server["security"] else {}
