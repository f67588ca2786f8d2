"""Users and their rights on the real server with its security plugin."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from drivers.opensearch.rig import on_server

from dragoman_api import AuthenticationError, ObjectsRequest, OutcomeStatus, Update
from dragoman_api.connections import AuthScheme, Secrets, SslMode
from dragoman_api.errors import ConnectionFailedError


@pytest.mark.live("opensearch-secured")
async def test_O2_a_user_signs_in_and_reads_what_the_rights_allow(live_server: dict[str, Any]) -> None:
    """A reader, who may not see the version, browses and changes nothing; a wrong password opens nothing."""

    def signed_in(name: str, password: str = "", mode: SslMode = SslMode.VERIFY_IDENTITY) -> dict[str, Any]:
        user = live_server["users"][name]
        return {
            "auth_scheme": AuthScheme.BASIC,
            "ssl_mode": mode,
            "ca_pem": Path(live_server["ca_file"]).read_text(),
            "options": {"username": user["username"]},
            "secrets": Secrets(values={"password": password or user["password"]}),
        }

    async with on_server(live_server, **signed_in("superuser")) as owner:
        name = await owner.index({"n": {"type": "integer"}}, [{"n": 1}])
        async with on_server(live_server, **signed_in("reader")) as reader:
            assert (await reader.driver.ping()).ok
            objects = await reader.driver.list_objects(ObjectsRequest())
            assert name in [item.name for item in objects]
            assert [(note.code, "indices_monitor" in note.hint) for note in objects.notes] == [("objects-hidden", True)]
            [row_key] = (await reader.page(name)).keys
            [outcome] = await reader.apply(Update(row_key, {"n": 2}))
            assert (outcome.status, "403" in outcome.reason) == (OutcomeStatus.FAILED, True)
        [outcome] = await owner.apply(Update(row_key, {"n": 2}))
        assert outcome.status is OutcomeStatus.APPLIED
    with pytest.raises(AuthenticationError, match="401"):
        async with on_server(live_server, **signed_in("superuser", "wrong")):
            pass
    with pytest.raises(ConnectionFailedError):
        async with on_server(live_server, **signed_in("superuser", mode=SslMode.DISABLED)):
            pass
