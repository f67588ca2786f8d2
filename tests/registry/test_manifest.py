"""The manifest: what comes in is checked as a whole, and every fault names its place."""

from __future__ import annotations

import json

import pytest

import wheelhouse
from dragoman_api.connections import AuthScheme, SslMode
from dragoman_api.hookspecs import DriverSpec
from dragoman_registry.manifest import Manifest, decode, encode
from dragoman_registry.vetting import check_manifest

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


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"manifest_version": 2}, "$.manifest_version"),
        ({"id": "Demo Driver"}, "$.id"),
        ({"label": " "}, "$.label"),
        ({"types": []}, "$.types: at least one"),
        ({"types": [{"name": "demo", "label": "A"}, {"name": "demo", "label": "B"}]}, "$.types: 'demo' is there twice"),
        ({"types": [{"name": "De mo", "label": "A"}]}, "$.types[0].name"),
        ({"host_api": ""}, "$.host_api: a version range"),
        ({"entry": "dragoman_demo.driver"}, "$.entry"),
        ({"entry": "os.path:join"}, "outside the import names"),
        ({"import_names": ["dragoman_demo", "a-b"]}, "$.import_names[1]"),
        ({"hooks": []}, "$.hooks: at least one"),
        ({"hooks": ["__init__"]}, "$.hooks[0]"),
        ({"capabilities": ["fly"]}, "$.capabilities[0]"),
        ({"permissions": ["subprocess"]}, "subprocess is never granted"),
        ({"permissions": ["net:host="]}, "$.permissions[0]"),
        ({"permissions": ["fs:read=/etc/passwd"]}, "$.permissions[0]"),
        ({"permissions": ["net:connection", "net:connection"]}, "is there twice"),
        ({"licence": "Free"}, "$.licence"),
        ({"dependencies": [{"file": "a-1-py3-none-any.whl", "sha256": "abc"}]}, "$.dependencies[0].sha256"),
        ({"excluded_surfaces": ["fridge"]}, "$.excluded_surfaces[0]"),
        ({"auth_methods": [{"value": "x", "label": "X", "scheme": "basic"}]}, "$.auth_methods"),
    ],
)
def test_a_wrong_value_is_named(changes: dict[str, object], fault: str):
    found = faults(**changes)
    assert any(fault in reason for reason in found), found


HOST = {"name": "host", "label": "Host"}
ONE = {"value": "a", "label": "A"}
PORT = {"name": "port", "label": "Port", "kind": "integer"}


@pytest.mark.parametrize(
    ("field", "fault"),
    [
        ({"name": "x", "label": "X", "kind": "choice"}, "exactly a field of kind 'choice' has choices"),
        ({"name": "x", "label": "X", "choices": [ONE]}, "exactly a field of kind 'choice'"),
        ({"name": "x", "label": "X", "kind": "secret", "default": "hunter2"}, "a secret has no default"),
        ({"name": "x", "label": "X", "kind": "integer", "default": "9"}, "'9' does not fit kind 'integer'"),
        ({"name": "x", "label": "X", "kind": "integer", "default": True}, "True does not fit kind 'integer'"),
        ({"name": "x", "label": "X", "kind": "choice", "default": "b", "choices": [ONE]}, "'b' is no choice"),
        ({"name": "x", "label": "X", "visible_if": {"y": ["a"]}}, "there is no field 'y'"),
        ({"name": "type", "label": "X"}, "'type' is no name a field may have"),
        ({"name": "host", "label": "X"}, "'host' is there twice"),
    ],
)
def test_a_wrong_field_is_named(field: dict[str, object], fault: str):
    found = faults(form=[HOST, PORT, field])
    assert any(fault in reason for reason in found), found


@pytest.mark.parametrize("form", [[HOST], [PORT], [HOST, {"name": "port", "label": "Port"}]])
def test_a_form_without_host_and_port_is_refused(form: list[object]):
    assert any("$.form: a field" in reason for reason in faults(form=form))


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
    assert [choice.label for choice in field.choices] == ["Username & Password", "API Key", "None"]
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
    assert {name for name, kind in kinds.items() if kind == "secret"} == {"password", "api_key"}


def test_the_elasticsearch_manifest_asks_for_the_baseline_only():
    assert elasticsearch().beyond_baseline == ()


def test_every_hook_of_the_contract_may_be_declared():
    hooks = [name for name in vars(DriverSpec) if not name.startswith("_")]
    assert not faults(hooks=hooks)
