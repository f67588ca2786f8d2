"""Users and their rights on the real server."""

from __future__ import annotations

from typing import Any

import pytest
from drivers.solr.rig import on_server

from dragoman_api import AuthenticationError, Filter, OutcomeStatus, Update
from dragoman_api.connections import AuthScheme, Secrets
from dragoman_api.errors import AccessDeniedError

APPLIED = OutcomeStatus.APPLIED


@pytest.mark.live("solr-secured")
async def test_a_user_signs_in_and_reads_what_the_rights_allow(live_server: dict[str, Any]) -> None:
    """S2: a reader browses and changes nothing; a wrong password opens nothing."""

    def signed_in(name: str, password: str = "") -> dict[str, Any]:
        user = live_server["users"][name]
        secrets = Secrets(values={"password": password or user["password"]})
        return {"auth_scheme": AuthScheme.BASIC, "options": {"username": user["username"]}, "secrets": secrets}

    async with on_server(live_server, **signed_in("owner")) as owner:
        name = await owner.core([{"id": "a", "n_i": 1}])
        async with on_server(live_server, **signed_in("reader")) as reader:
            assert (await reader.driver.ping()).ok
            assert [key.id for key in (await reader.page(name, Filter("n_i", "=", 1))).keys] == ["a"]
            [outcome] = await reader.apply(Update((await reader.page(name)).keys[0], {"n_i": 2}))
            assert outcome.status is OutcomeStatus.FAILED
            with pytest.raises(AccessDeniedError):
                await reader.driver.http.get_json("/solr/admin/cores?action=UNLOAD&core=x")
        [outcome] = await owner.apply(Update((await owner.page(name)).keys[0], {"n_i": 2}))
        assert outcome.status is APPLIED
        with pytest.raises(AuthenticationError):
            async with on_server(live_server, **signed_in("owner", "wrong")):
                pass
