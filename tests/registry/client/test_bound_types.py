"""A driver is installed only for the types that its registry binds to it: each gets that type's secrets."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import wheelhouse
from dragoman_api.errors import WheelRejectedError
from installing import Place

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("bound", [{}, {"demo": "dragoman-other"}, {"other": "dragoman-demo"}])
def test_a_type_that_is_bound_to_another_project_is_refused(
    bound: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    place = Place(tmp_path, [wheelhouse.Driver().write(tmp_path / "wheels")])
    monkeypatch.setattr(place.registry, "types", lambda: bound)  # an operator may rebind a type after publication
    with pytest.raises(WheelRejectedError) as caught:
        place.install()
    assert [code for code, _ in caught.value.faults] == ["type-not-bound"]
    assert "'demo'" in caught.value.message
    assert place.leftovers() == []


def test_every_type_of_a_driver_has_to_be_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    types = [{"name": name, "label": name.title()} for name in ("demo", "demo-two")]
    place = Place(tmp_path, [wheelhouse.Driver(types=types).write(tmp_path / "wheels")])
    monkeypatch.setattr(place.registry, "types", lambda: {"demo": "dragoman-demo"})
    with pytest.raises(WheelRejectedError) as caught:
        place.install()
    assert [code for code, _ in caught.value.faults] == ["type-not-bound"]
    monkeypatch.undo()
    assert place.install().version == "1.0.0"
