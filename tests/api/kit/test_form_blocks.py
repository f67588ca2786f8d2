"""Blocks of a form: both drivers' forms are made of them, and each form that they make is a valid one."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman_api.connections import AuthScheme, FieldKind, FormField, SslMode
from dragoman_api.kit import form_blocks as blocks
from dragoman_registry.wheels.manifest_checks import check_manifest

PLUGINS = Path(__file__).parents[3] / "plugins"


def with_help(block: blocks.Block, name: str, text: str) -> list[FormField]:
    return [replace(field, help=text) if field.name == name else field for field in block.fields]


def without_mode(block: blocks.Block, mode: SslMode) -> list[FormField]:
    """Leave a mode out of the choice, and out of what shows the files."""
    return [
        replace(
            field,
            choices=tuple(choice for choice in field.choices if choice.value != mode.value),
            visible_if={
                name: tuple(value for value in values if value != mode.value)
                for name, values in field.visible_if.items()
            },
        )
        for field in block.fields
    ]


OF_DRIVERS = {
    "elasticsearch": (
        blocks.address(9200),
        blocks.auth(
            blocks.username_password(),
            blocks.api_key(AuthScheme.API_KEY, help="The encoded value, or the base64 of id:api_key"),
            blocks.none(),
            blocks.bearer_token(help="A service account's token, or an access token"),
            blocks.client_credentials(token_url=True),
            default="none",
        ),
        *without_mode(blocks.tls(), SslMode.REQUIRED),
        blocks.more_hosts(),
        blocks.every_request(),
    ),
    "weaviate": (
        *with_help(blocks.address(8080), "port", "The hosted service answers on 443"),
        blocks.auth(
            blocks.none(),
            blocks.api_key(
                AuthScheme.BEARER,
                help="The hosted service's key, the one the node was started with, or an OIDC access token",
            ),
            blocks.client_credentials(token_url=True),
        ),
        blocks.tls(),
        blocks.more_hosts(),
        blocks.every_request(),
    ),
}

METHODS: list[blocks.AuthBlock] = [
    blocks.none(),
    blocks.username_password(),
    blocks.api_key(AuthScheme.BEARER),
    blocks.bearer_token(),
    blocks.session(),
    blocks.client_credentials(token_url=True),
]


def fields_of(part: dict[str, object]) -> list[FormField]:
    return msgspec.convert(part["form"], list[FormField])


def manifest_of(driver: str) -> dict[str, object]:
    return json.loads((PLUGINS / driver / f"dragoman_{driver}/driver.json").read_bytes())


@pytest.mark.parametrize("driver", OF_DRIVERS)
def test_E6_E7_W5_W7_the_forms_of_both_drivers_begin_with_these_blocks(driver):
    """The blocks are what both drivers ask for; the driver's own fields follow."""
    manifest, part = manifest_of(driver), blocks.manifest_part(*OF_DRIVERS[driver])
    common = fields_of(part)
    assert fields_of(manifest)[: len(common)] == common
    assert manifest["auth_methods"] == part["auth_methods"]


@given(
    st.lists(st.sampled_from(METHODS), min_size=1, unique_by=lambda method: method.value),
    st.sampled_from(SslMode),
    st.data(),
)
def test_every_form_made_of_blocks_passes_the_checks_of_a_manifest(methods, mode, data):
    """Whatever is combined, registries accept it; no credential and no file has a default."""
    default = data.draw(st.sampled_from(methods)).value
    part = blocks.manifest_part(blocks.address(1), blocks.auth(*methods, default=default), blocks.tls(default=mode))
    made, faults = check_manifest(json.dumps({**manifest_of("weaviate"), **part}).encode())
    assert not faults
    assert made is not None
    assert made.default("auth_method") == default
    assert [method.value for method in made.auth_methods] == [method.value for method in methods]


@given(st.lists(st.sampled_from(METHODS), min_size=1, unique_by=lambda method: method.value))
def test_a_field_is_shown_for_exactly_the_methods_that_need_it(methods):
    """No method loses a field that it shares with another one, and none shows a field of another one."""
    fields = blocks.auth(*methods).fields
    for method in methods:
        shown = {field.name for field in fields if field.visible({"auth_method": method.value})}
        assert shown == {"auth_method", *(field.name for field in method.fields)}


def test_a_field_is_shown_only_where_all_of_its_conditions_hold():
    field = FormField(name="a", label="A", visible_if={"b": ("1", "2"), "c": ("3",)})
    shown = [field.visible({"b": first, "c": second}) for first in "12" for second in "34"]
    assert shown == [True, False, True, False]
    assert not field.visible({"b": "0", "c": "3"})


@pytest.mark.parametrize("mode", SslMode)
def test_a_file_is_asked_for_only_under_a_mode_that_uses_it(mode):
    shown = {field.name for field in blocks.tls().fields if field.visible({"ssl_mode": mode.value})}
    assert ("ca_file" in shown, "client_certificate" in shown) == (mode.verifies, mode.https)


@pytest.mark.parametrize(
    ("make", "named"),
    [
        (lambda: blocks.auth(blocks.none(), blocks.none()), "values"),
        (lambda: blocks.auth(blocks.none(), default="api-key"), "api-key"),
        (
            lambda: blocks.auth(
                blocks.api_key(AuthScheme.BEARER), blocks.api_key(AuthScheme.BEARER, value="b", label="B")
            ),
            "api_key",
        ),
    ],
)
def test_a_contradiction_is_an_error_of_the_author(make, named):
    with pytest.raises(ValueError, match=named):
        make()


def test_a_driver_adds_fields_of_its_own_between_blocks():
    own = FormField(name="path", label="Path", default="/")
    part = blocks.manifest_part(blocks.address(1), own, blocks.auth(blocks.none()))
    assert [field.name for field in fields_of(part)] == ["host", "port", "path", "auth_method"]
    assert part["form"][2] == {"name": "path", "label": "Path", "default": "/"}
    assert all(field.default is None for field in fields_of(part) if field.kind is FieldKind.SECRET)
