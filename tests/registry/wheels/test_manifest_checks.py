"""The manifest: what comes in is checked as a whole, and every fault names its place."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

import wheelhouse
from dragoman_api.connections import AuthScheme, SslMode
from dragoman_api.hookspecs import DriverSpec
from dragoman_registry.validation import load
from dragoman_registry.wheels.manifest import Manifest, decode, encode
from dragoman_registry.wheels.manifest_checks import check_manifest

if TYPE_CHECKING:
    from collections.abc import Callable

ELASTICSEARCH = wheelhouse.ROOT / "plugins/elasticsearch/dragoman_elasticsearch/driver.json"


def faults(**changes: object) -> list[str]:
    manifest, found = check_manifest(json.dumps(wheelhouse.manifest(**changes)).encode())
    assert (manifest is None) == bool(found)
    assert {fault.code for fault in found} <= {"manifest"}
    return [fault.reason for fault in found]


def elasticsearch() -> Manifest:
    manifest, found = check_manifest(ELASTICSEARCH.read_bytes())
    assert manifest is not None, found
    return manifest


def shown(**values: str) -> set[str]:
    form = elasticsearch().form
    filled = {field.name: field.default for field in form} | values
    return {field.name for field in form if field.visible(filled)}


def test_a_valid_manifest_has_no_fault():
    assert faults() == []


def test_what_was_checked_reads_back_the_same_without_pydantic():
    manifest = elasticsearch()
    assert decode(encode(manifest)) == manifest == decode(ELASTICSEARCH.read_bytes())


def test_every_fault_is_reported_at_once_with_its_path():
    form = [{"name": "host", "label": "Host", "colour": "red"}, {"name": "port", "kind": "number"}]
    wrong = {"host_api": "=~1", "licence": "Foo-1", "hooks": ["connect", "explode"], "permissions": ["net:*"]}
    found = faults(**wrong, form=form, extra=1)
    paths = {reason.partition(":")[0] for reason in found}
    assert paths >= {"$.host_api", "$.licence", "$.hooks[1]", "$.permissions[0]", "$.form[0].colour", "$.form[1].kind"}
    assert {"$.form[1].label", "$.extra"} <= paths


def docs_at(address: str, *requests: str, capabilities: tuple[str, ...] = ("console",)) -> dict[str, object]:
    """Return changes that make a manifest name a page on requests."""
    return {"capabilities": [*capabilities], "console_docs": [{"requests": [*requests] or ["/**"], "url": address}]}


@pytest.mark.parametrize(
    ("request_line", "address"),
    [
        ("GET /a/_search?q=/_count", "https://docs.example.org/search"),
        ("POST /_search/", "https://docs.example.org/search"),
        ("GET /a/b/_search", "https://docs.example.org/"),
        ("PUT /a", "https://docs.example.org/index#put"),
        ("GET /a", "https://docs.example.org/"),
        ("GET /_cat", "https://docs.example.org/cat"),
        ("GET /_cat/x/y", "https://docs.example.org/cat"),
        ("GET /", "https://docs.example.org/"),
    ],
)
def test_the_first_page_that_is_about_a_request_explains_it(request_line: str, address: str):
    pages = [
        {"requests": ["/_search", "/*/_search"], "url": "https://docs.example.org/search"},
        {"requests": ["PUT /*"], "url": "https://docs.example.org/index#put"},
        {"requests": ["/_cat/**"], "url": "https://docs.example.org/cat"},
        {"requests": ["/**"], "url": "https://docs.example.org/"},
    ]
    changes = wheelhouse.manifest(capabilities=["console"], console_docs=pages)
    manifest, found = check_manifest(json.dumps(changes).encode())
    assert manifest is not None, found
    method, _, path = request_line.partition(" ")
    assert manifest.request_docs(method, path) == address
    assert elasticsearch().request_docs(method, path).startswith("https://www.elastic.co/docs/api/doc/elasticsearch")
    assert decode(encode(wheel_without_pages())).request_docs(method, path) == ""


def wheel_without_pages() -> Manifest:
    manifest, found = check_manifest(json.dumps(wheelhouse.manifest()).encode())
    assert manifest is not None, found
    return manifest


OAUTH: dict[str, object] = {"auth_methods": [{"value": "x", "label": "X", "scheme": "client-credentials"}]}

WRONG_VALUES = [
    ({"manifest_version": 0}, "$.manifest_version"),
    ({"id": "Demo Driver"}, "$.id"),
    ({"label": " "}, "$.label"),
    ({"types": []}, "$.types"),
    ({"types": [{"name": "demo", "label": "A"}, {"name": "demo", "label": "B"}]}, "$.types", "'demo'"),
    ({"types": [{"name": "De mo", "label": "A"}]}, "$.types[0].name"),
    ({"host_api": ""}, "$.host_api", "~="),
    ({"entry": "dragoman_demo.driver"}, "$.entry"),
    ({"entry": "os.path:join"}, "$.entry", "'os.path:join'", "import"),
    ({"import_names": ["dragoman_demo", "a-b"]}, "$.import_names[1]"),
    ({"hooks": []}, "$.hooks"),
    ({"hooks": ["__init__"]}, "$.hooks[0]"),
    ({"capabilities": ["fly"]}, "$.capabilities[0]"),
    ({"permissions": ["subprocess"]}, "$.permissions[0]", "subprocess", "never"),
    ({"permissions": ["net:host="]}, "$.permissions[0]"),
    ({"permissions": ["net:host=a.example:0"]}, "$.permissions[0]", "a.example:0", " 0 "),
    ({"permissions": ["net:host=a.example,b.example:65536"]}, "$.permissions[0]", "b.example:65536", " 65536 "),
    ({"permissions": ["net:host=0x7f.1"]}, "$.permissions[0]", "0x7f.1", "127.0.0.1"),
    ({"permissions": ["net:host=2852039166:80"]}, "$.permissions[0]", "2852039166", "169.254.169.254"),
    ({"permissions": ["net:host=a.example,169.254.169.254:80"]}, "$.permissions[0]", "169.254.169.254", "never"),
    ({"permissions": ["net:host=169.254.7.7"]}, "$.permissions[0]", "169.254.7.7", "never"),
    ({"permissions": ["net:host=168.63.129.16"]}, "$.permissions[0]", "168.63.129.16", "never"),
    ({"permissions": ["net:host=224.0.0.1"]}, "$.permissions[0]", "224.0.0.1", "never"),
    ({"permissions": ["fs:read=/etc/passwd"]}, "$.permissions[0]"),
    ({"permissions": ["net:connection", "net:connection"]}, "$.permissions", "'net:connection'"),
    ({"permissions": [f"net:host=h{n}.example" for n in range(33)]}, "$.permissions", "33", "32"),
    (
        {"permissions": [f"net:host={','.join(f'h{n}.example' for n in range(33))}"]},
        "$.permissions",
        "33",
        "32",
    ),
    ({"permissions": [f"net:host={'a' * 254}"]}, "$.permissions[0]", "254", "253"),
    ({"label": "A" * 101}, "$.label", "101", "100"),
    ({"label": "\u3164"}, "$.label", "'\u3164'"),
    ({"summary": "Good\ufe0f\U000e0100."}, "$.summary"),
    ({"types": [{"name": "demo", "label": ""}]}, "$.types[0].label", " 0 "),
    (
        {"auth_methods": [{"value": "x", "label": "X" * 101, "scheme": "none"}]},
        "$.auth_methods[0].label",
        "101",
    ),
    ({"licence": "Free"}, "$.licence"),
    ({"dependencies": [{"file": "a-1-py3-none-any.whl", "sha256": "abc"}]}, "$.dependencies[0].sha256"),
    ({"excluded_surfaces": ["fridge"]}, "$.excluded_surfaces[0]"),
    ({"capabilities": ["browse"], "console_example": "GET /"}, "$.console_example", "$.capabilities"),
    ({"capabilities": ["console"], "console_example": "GET /\nGET /"}, "$.console_example", "invisible"),
    (docs_at("https://example.org/a", capabilities=["browse"]), "$.console_docs", "$.capabilities"),
    *(
        (docs_at(address), "$.console_docs[0].url", repr(address))
        for address in (
            "http://example.org/",
            "https://127.0.0.1/",
            "https://localhost/",
            "https://a@example.org/",
            "https://example.org:8443/",
            "https://EXAMPLE.org/",
            "https://example.org\\@evil.example/",
            "//example.org/",
            "javascript:alert(1)",
            "https://xn--é.org/",
            "https://example.org/ x",
            "https://example.org?a",
            "https://[::1]/",
            "data:text/html,x",
            "https://.org/",
            "https://-a.org/",
            "",
        )
    ),
    *(
        (docs_at("https://example.org/", request), "$.console_docs[0].requests[0]", request)
        for request in ("_search", "get /a", "GET  /a", "/a b", "/**/a", "/a**", "")
    ),
    ({"auth_methods": [{"value": "x", "label": "X", "scheme": "basic"}]}, "$.auth_methods"),
    (OAUTH, "$.permissions", "'net:sign-in'", "'client-credentials'"),
    (OAUTH, "$.form", "'token_url'", "'text'"),
    (OAUTH, "$.form", "'client_id'", "'text'"),
    (OAUTH, "$.form", "'client_secret'", "'secret'"),
]


def named(found: list[str], place: str, values: list[str]) -> bool:
    """Check whether a fault begins with its place in the JSON and has every value."""
    return any(reason.startswith(f"{place}: ") and all(value in reason for value in values) for reason in found)


@pytest.mark.parametrize("wrong", WRONG_VALUES)
def test_a_wrong_value_is_named(wrong: tuple[dict[str, object], *tuple[str, ...]]):
    changes, place, *values = wrong
    assert named(found := faults(**changes), place, values), found


@pytest.mark.parametrize("port", [1, 65535])
def test_the_first_and_the_last_port_may_be_named(port: int):
    assert faults(permissions=[f"net:host=a.example:{port}"]) == []


HOST = {"name": "host", "label": "Host"}
ONE = {"value": "a", "label": "A"}
PORT = {"name": "port", "label": "Port", "kind": "integer"}


WRONG_FIELDS = [
    ({"name": "x", "label": "X", "kind": "choice"}, "$.form[2].choices"),
    ({"name": "x", "label": "X", "choices": [ONE]}, "$.form[2].choices"),
    ({"name": "x", "label": "X", "kind": "secret", "default": "hunter2"}, "$.form[2].default", "secret"),
    ({"name": "x", "label": "X", "kind": "integer", "default": "9"}, "$.form[2].default", "'9'", "'integer'"),
    ({"name": "x", "label": "X", "kind": "integer", "default": True}, "$.form[2].default", "true", "'integer'"),
    ({"name": "x", "label": "X", "kind": "choice", "default": "b", "choices": [ONE]}, "$.form[2].default", "'b'"),
    ({"name": "x", "label": "X", "visible_if": {"y": ["a"]}}, "$.form[2].visible_if", "'y'"),
    ({"name": "type", "label": "X"}, "$.form[2].name", "'type'"),
    ({"name": "x" * 65, "label": "X"}, "$.form[2].name", "x" * 65),
    ({"name": "x", "label": "X" * 101}, "$.form[2].label", "101"),
    (
        {"name": "x", "label": "X", "kind": "choice", "choices": [ONE | {"label": " "}]},
        "$.form[2].choices[0].label",
    ),
    ({"name": "host", "label": "X"}, "$.form", "'host'"),
    ({"name": "ca_file", "label": "X"}, "$.form", "'ca_file'", "'file'", "reads that file"),
    ({"name": "client_certificate", "label": "X"}, "$.form", "'client_certificate'", "'file'", "reads that file"),
]


@pytest.mark.parametrize("wrong", WRONG_FIELDS)
def test_a_wrong_field_is_named(wrong: tuple[dict[str, object], *tuple[str, ...]]):
    field, place, *values = wrong
    assert named(found := faults(form=[HOST, PORT, field]), place, values), found


def test_the_words_of_every_fault(golden: Callable[[str, list[str]], None]):
    """The words of this package only; those of pydantic are its own."""
    lines: dict[str, None] = {}
    for changes, *_ in [*WRONG_VALUES, *(({"form": [HOST, PORT, field]}, *rest) for field, *rest in WRONG_FIELDS)]:
        data = json.dumps(wheelhouse.manifest(**changes)).encode()
        foreign = {fault.reason for fault in load(Manifest, data, code="manifest")[1]}
        lines |= dict.fromkeys(ascii(line)[1:-1] for line in faults(**changes) if line not in foreign)
    golden("manifest_messages.txt", [*lines])


@pytest.mark.parametrize("form", [[HOST], [PORT], [HOST, {"name": "port", "label": "Port"}]])
def test_a_form_without_host_and_port_is_refused(form: list[object]):
    assert any(reason.startswith("$.form: ") for reason in faults(form=form))


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b"null", b'"x"', b"\xff\xfe", b"[" * 100_000])
def test_what_is_no_object_is_a_fault_and_no_exception(data: bytes):
    manifest, found = check_manifest(data)
    assert manifest is None
    assert found


def test_permissions_beyond_the_baseline_are_told_apart():
    manifest = decode(json.dumps(wheelhouse.manifest(permissions=["net:connection", "native-code"])).encode())
    assert manifest.beyond_baseline == ("native-code",)


def test_P4_the_label_of_the_elasticsearch_driver_carries_the_product():
    assert elasticsearch().label == "Elasticsearch Driver"


def test_E1_the_elasticsearch_form_has_no_database_field():
    assert not {"database", "index", "schema"} & {field.name for field in elasticsearch().form}


def test_E4_E5_host_and_port_have_their_defaults():
    assert (elasticsearch().default("host"), elasticsearch().default("port")) == ("localhost", 9200)


def test_E6_the_auth_methods_and_how_they_are_sent():
    manifest = elasticsearch()
    [field] = [field for field in manifest.form if field.name == "auth_method"]
    assert [choice.label for choice in field.choices] == [
        "Username & Password",
        "API Key",
        "None",
        "Token (bearer)",
        "OAuth Client Credentials",
    ]
    assert manifest.scheme("client-credentials") is AuthScheme.CLIENT_CREDENTIALS
    assert manifest.scheme("token") is AuthScheme.BEARER
    assert manifest.scheme("username-password") is AuthScheme.BASIC
    assert manifest.scheme("api-key") is AuthScheme.API_KEY
    assert manifest.scheme("none") is AuthScheme.NONE


def test_E7_the_api_key_is_shown_only_for_its_auth_method():
    assert "api_key" in shown(auth_method="api-key")
    assert not {"username", "password"} & shown(auth_method="api-key")
    assert "api_key" not in shown(auth_method="username-password")
    assert {"username", "password"} <= shown(auth_method="username-password")
    assert not {"api_key", "username", "password"} & shown(auth_method="none")


def test_E8_skip_tls_verification_is_an_advanced_switch_that_is_off():
    [field] = [field for field in elasticsearch().form if field.name == "skip_tls_verification"]
    assert (field.kind, field.advanced, field.default, field.label) == ("switch", True, False, "Skip TLS Verification")


def test_E12_E13_E14_ssl_modes_and_their_default():
    manifest = elasticsearch()
    [field] = [field for field in manifest.form if field.name == "ssl_mode"]
    labels = ["Disabled", "Preferred", "Required (skip verify)", "Verify CA", "Verify Identity"]
    assert [choice.label for choice in field.choices] == labels
    assert all(SslMode(choice.value) for choice in field.choices)
    assert field.default == SslMode.DISABLED


def test_secrets_of_the_elasticsearch_form_are_secret():
    kinds = {field.name: field.kind for field in elasticsearch().form}
    assert {name for name, kind in kinds.items() if kind == "secret"} == {
        "password",
        "api_key",
        "token",
        "client_secret",
        "secret_headers",
    }


def test_the_elasticsearch_manifest_asks_for_the_baseline_only():
    assert elasticsearch().beyond_baseline == ()


def test_every_hook_of_the_contract_may_be_declared():
    hooks = [name for name in vars(DriverSpec) if not name.startswith("_")]
    assert not faults(hooks=hooks)


@pytest.mark.parametrize(
    ("field", "reason"),
    [
        ({"name": "hosts", "label": "H", "default": "evil.example:443"}, "cannot have a default"),
        ({"name": "cloud_id", "label": "C", "default": "x:ZXZpbA=="}, "cannot have a default"),
        ({"name": "token_url", "label": "T", "default": "https://evil.example/"}, "cannot have a default"),
        ({"name": "hosts", "label": "H", "kind": "secret"}, "kind 'text'"),
        ({"name": "cloud_id", "label": "C", "visible_if": {"host": ["x"]}}, "always be shown"),
    ],
)
def test_a_manifest_neither_chooses_further_servers_nor_hides_where_they_are_entered(field, reason):
    made = wheelhouse.manifest()
    made["form"].append(field)
    manifest, faults = check_manifest(json.dumps(made).encode())
    assert manifest is None
    assert any(reason in fault.reason for fault in faults)
