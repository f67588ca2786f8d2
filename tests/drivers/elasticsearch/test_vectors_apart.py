"""Vectors that a server keeps apart from documents, as it does since 9.2: every read of a document holds them."""

from __future__ import annotations

import base64
import json
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from drivers.elasticsearch.rig import OLD, OnServer, Rig, connected, on_fake, profile
from drivers.elasticsearch.test_objects import view

from dragoman_api import CellRequest, Delete, ExportRequest, Insert, PlanRequest, RowKey, Update
from dragoman_api.connections import AuthScheme, Secrets
from dragoman_api.exports import ExportForm
from dragoman_elasticsearch.connect import dialect_of
from dragoman_querydsl.columns import mapping
from dragoman_sample.fakes.elasticsearch import FakeElasticsearch
from dragoman_sample.fakes.elasticsearch.security import ApiKey

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from dragoman_api import Http

VECTOR = {"type": "dense_vector", "dims": 3, "index": True, "similarity": "l2_norm"}
PROPERTIES = {"title": {"type": "keyword"}, "made": {"type": "flattened"}, "vector": VECTOR}
VALUE = "[0.5,1.0,2.0]"
DOCUMENT = {"title": "a", "made": {"by": 1}, "vector": [0.5, 1.0, 2.0]}


async def exported(es: Rig, name: str, form: ExportForm) -> tuple[list[dict[str, Any]], list[str]]:
    await es.driver.describe_object(name)  # the host describes an object first
    request = ExportRequest(object=name, form=form)
    async with aclosing(es.driver.export_rows(request)) as parts:
        taken = [part async for part in parts]
    lines = b"".join(part.data for part in taken).splitlines()
    return [json.loads(line) for line in lines], [note.code for part in taken for note in part.notes]


class VectorRules:
    async def test_a_page_and_a_cell_hold_them(self, es: Rig) -> None:
        name = await es.index(PROPERTIES, [DOCUMENT])
        page = await es.page(name)
        assert page.rows[0]["vector"] == "[0.5,1.0,2.0]"
        assert await es.driver.fetch_cell(CellRequest(key=page.keys[0], column="vector")) == "[0.5,1.0,2.0]"
        deep = await es.page(name, columns=["vector"])
        assert deep.cells == [["[0.5,1.0,2.0]"]]

    @pytest.mark.parametrize("form", list(ExportForm))
    async def test_an_export_of_every_form_holds_them_and_says_that_documents_are_rebuilt(
        self, es: Rig, form: ExportForm
    ) -> None:
        name = await es.index(PROPERTIES, [DOCUMENT, {"title": "b"}])
        lines, notes = await exported(es, name, form)
        documents = {
            ExportForm.DOCUMENTS: lines, ExportForm.BULK: lines[1::2],
            ExportForm.ROWS: [line.get("_source") for line in lines],
        }[form]  # fmt: skip
        assert sorted(documents, key=lambda document: document["title"]) == [DOCUMENT, {"title": "b"}]
        assert notes == (["documents-rebuilt"] if es.version >= (9, 2) else [])

    @pytest.mark.parametrize(
        ("change", "whole"),
        [
            (Delete, True),
            (lambda key: Update(key, {"title": "b"}), False),
            (lambda key: Update(key, {"made": {"by": 2}}), True),
            (lambda key: Insert(key.object, {"title": "b"}, id=key.text, replace=True), True),
        ],
        ids=["delete", "edit", "edit of an object", "replacement"],
    )
    async def test_an_undo_brings_them_back(self, es: Rig, change: Any, whole: bool) -> None:
        name = await es.index(PROPERTIES, [DOCUMENT])
        [key] = (await es.page(name)).keys
        assert isinstance(key, RowKey)
        plan = await es.driver.plan_change(PlanRequest(changes=[change(key)], undo=True))
        assert ("documents-rebuilt" in {note.code for note in plan.notes}) == (whole and es.version >= (9, 2))
        assert [outcome.status for outcome in await es.driver.apply_change(plan)] == ["applied"]
        back = await es.driver.plan_change(PlanRequest(changes=plan.undo))
        assert [outcome.status for outcome in await es.driver.apply_change(back)] == ["applied"]
        [row] = (await es.page(name)).rows
        assert (row["title"], row["made"], row["vector"]) == ("a", '{"by":1}', "[0.5,1.0,2.0]")

    async def test_only_an_index_that_does_it_says_so(self, es: Rig) -> None:
        own = {"index.mapping.exclude_source_vectors": False} if es.version >= (9, 2) else {}
        for properties, settings, said in (
            (PROPERTIES, {}, es.version >= (9, 2)),
            (PROPERTIES, own, False),
            ({"vector": {"type": "dense_vector", "dims": 3, "index": False}}, {}, False),
            ({"title": {"type": "keyword"}}, {}, False),
        ):
            name = await es.index(properties, [DOCUMENT], settings=settings)
            codes = {note.code for note in (await es.driver.describe_object(name)).notes}
            assert ("documents-rebuilt" in codes) == said
            assert (await exported(es, name, ExportForm.DOCUMENTS))[0] == [DOCUMENT]


class TestVectorsOnFake(VectorRules):
    @pytest.fixture(params=["9.5.3", "8.19.21"])
    async def es(self, request: pytest.FixtureRequest) -> AsyncIterator[Rig]:
        async with on_fake(request.param) as rig:
            yield rig


class TestVectorsOnServer(VectorRules, OnServer):
    @pytest.fixture(autouse=True)
    def indexed(self, es: Rig) -> None:
        if es.version < (8, 0):
            pytest.skip("indexed vectors came with 8.0")


@dataclass(frozen=True)
class _Refusal:
    status = 403
    headers = MappingProxyType({"X-Elastic-Product": "Elasticsearch"})
    body = b"{}"
    text = "{}"


class _LesserHttp:
    """A client with the rights of a reader on a server without security: what it may not see is a 403."""

    def __init__(self, http: Http, hidden: tuple[str, ...]) -> None:
        self._http, self._hidden = http, hidden

    async def request(self, method: str, path: str, **more: Any) -> Any:
        if any(part in path for part in self._hidden):
            return _Refusal()
        return await self._http.request(method, path, **more)


@asynccontextmanager
async def reader_of(es: Rig, name: str, privileges: list[str], *, security: bool) -> AsyncIterator[Rig]:
    """Connect with an API key that may only read an index: neither the cluster's version nor, alone, its settings."""
    given = es.driver._profile
    if es.fake is not None:
        assert es.fake.security is not None
        api_key = ApiKey("reader", "secret", cluster=(), indices={name: tuple(privileges)})
        es.fake.security.keys[api_key.id] = api_key
        encoded = api_key.encoded
    elif security:
        role = {"index": [{"names": [name], "privileges": privileges}]}
        key = await es.call("POST", "/_security/api_key", {"name": "r", "role_descriptors": {"r": role}})
        encoded = base64.b64encode(f"{key['id']}:{key['api_key']}".encode()).decode()
    if es.fake is not None or security:
        secrets = Secrets(values={"api_key": encoded})
        given = msgspec.structs.replace(given, auth_scheme=AuthScheme.API_KEY, secrets=secrets, options={})
    async with connected(given, version=".".join(map(str, es.version))) as reader:
        if es.fake is None and not security:
            hidden = ("/_mapping", "/_settings") if privileges == ["read"] else ()
            reader.driver._exchanges.http = _LesserHttp(reader.driver._exchanges.http, hidden)
            version = (7, 14, 0) if es.version >= (7, 14) else (7, 0, 0)
            reader.driver._exchanges.dialect = dialect_of(version, hidden=True)
        yield reader
    if es.fake is not None:
        es.fake.faults[:] = [fault for fault in es.fake.faults if "_source_exclude_vectors" not in fault.reason]


class ReaderRules:
    @pytest.fixture
    def security(self) -> bool:
        return True

    @pytest.mark.parametrize("privileges", [["read"], ["read", "view_index_metadata"]])
    @pytest.mark.parametrize("first", ["page", "cell", *ExportForm])
    async def test_credentials_that_may_not_see_the_version_get_them_too(
        self, es: Rig, security: bool, first: str, privileges: list[str]
    ) -> None:
        """The server shows whether it takes the parameter that asks for them, and is asked that once."""
        name = await es.index(PROPERTIES, [DOCUMENT, {"title": "b"}])
        async with reader_of(es, name, privileges, security=security) as reader:
            hidden = len(privileges) == 1
            notes = (await reader.driver.describe_object(name)).notes
            reasons = [note.reason for note in notes if note.code == "documents-rebuilt"]
            assert len(reasons) == (es.version >= (9, 2) or (hidden and es.version >= (7, 14)))
            assert all(f"the index {'may keep' if hidden else 'keeps'} its vectors apart" in text for text in reasons)
            for number, read in enumerate((first, "page", "cell", *ExportForm)):
                if read == "page":
                    assert sorted(row["vector"] or "" for row in (await reader.page(name)).rows) == ["", VALUE]
                elif read == "cell":
                    cell = CellRequest(key=RowKey(name, "0"), column="vector")
                    assert await reader.driver.fetch_cell(cell) == VALUE
                else:
                    lines, codes = await exported(reader, name, ExportForm(read))
                    assert sum('"vector"' in json.dumps(line) for line in lines) == 1
                    unknown = number == 0 and hidden and es.version >= (7, 14)  # no answer has shown it yet
                    assert codes == (["documents-rebuilt"] if es.version >= (9, 2) or unknown else [])
            asking = [request for request in reader.log or () if "_source_exclude_vectors" in request.path]
            if es.version >= (9, 2):
                assert len(asking) > 3
            else:
                assert len(asking) == (es.version >= (7, 14))


class TestReadersOnFake(ReaderRules):
    @pytest.fixture(params=["9.5.3", "8.19.21", OLD])
    async def es(self, request: pytest.FixtureRequest) -> AsyncIterator[Rig]:
        given = {"options": {"username": "ada"}, "secrets": Secrets(values={"password": "pw"})}
        async with FakeElasticsearch(version=request.param, users={"ada": "pw"}) as fake:
            profile_ = profile(fake.url, auth_scheme=AuthScheme.BASIC, **given)
            async with connected(profile_, version=request.param) as rig:
                rig.fake = fake
                yield rig
            assert fake.faults == []


class TestReadersOnServer(ReaderRules, OnServer):
    @pytest.fixture
    def security(self, es: Rig, live_server: dict[str, Any]) -> bool:
        if es.version < (8, 0):
            pytest.skip("indexed vectors came with 8.0")
        return bool(live_server["security"])


def test_one_index_of_an_alias_is_enough_to_say_it() -> None:
    properties = {"properties": {"vector": VECTOR}}
    assert view(properties).rebuilt_notes() == []
    several = mapping.read(
        "both", {name: mapping.IndexMapping(json.dumps(properties).encode()) for name in ("a", "b")},  # type: ignore[arg-type]
        mapping.FieldCaps(indices=["a", "b"]), vectors_apart={"b"},
    )  # fmt: skip
    assert [note.code for note in several.rebuilt_notes()] == ["documents-rebuilt"]
