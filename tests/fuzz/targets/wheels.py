"""What is in a wheel and beside it: names, zip layout, METADATA, WHEEL, RECORD, entry points, the manifest."""

from __future__ import annotations

import io
import zipfile
from importlib.metadata import EntryPoints
from typing import TYPE_CHECKING

from hypothesis import strategies as st

from dragoman_api.connections import FieldKind
from dragoman_registry.wheels import manifest as manifests
from dragoman_registry.wheels.archive_checks import inspect
from dragoman_registry.wheels.host_environment import Host
from dragoman_registry.wheels.manifest import describe_reach, plain_permissions
from dragoman_registry.wheels.manifest_checks import check_manifest
from dragoman_registry.wheels.packaging_parsers import Unreadable, parse_wheel_name, rank_wheel
from wheelhouse import Driver, hashed, manifest, zip_entry

from ..grammar import VERSIONS, hostile_text, json_of, pasted, sections, split, spoiled_json, text
from ..target import Bounds, Broken, Target

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from hypothesis.strategies import DrawFn, SearchStrategy

HOST = Host(api="1.0.0", python="3.11.9", tags=("py3-none-any",))
MANIFEST = manifest(
    form=[
        *manifest()["form"],
        {"name": "auth_method", "label": "Auth", "kind": "choice", "default": "none",
         "choices": [{"value": "none", "label": "None"}, {"value": "basic", "label": "Basic"}]},
        {"name": "password", "label": "Password", "kind": "secret", "visible_if": {"auth_method": ["basic"]}},
        {"name": "ca_file", "label": "CA", "kind": FieldKind.FILE.value},
    ],
    auth_methods=[
        {"value": "none", "label": "None", "scheme": "none"}, {"value": "basic", "label": "Basic", "scheme": "basic"},
    ],
    permissions=["net:connection", "secrets:connection", "net:host=a.example,b.example", "memory=64MiB"],
    dependencies=[{"file": "tinylib-1.0.0-py3-none-any.whl", "sha256": "0" * 64}],
)  # fmt: skip

# the whole file -------------------------------------------------------------------------------------------------------


def _file(folder: Path) -> Callable[[bytes], object]:
    path = folder / Driver().file

    def run(data: bytes) -> None:
        path.write_bytes(data)
        _told(inspect(path, host=HOST).faults)

    return run


def _told(faults: list[object]) -> None:
    for fault in faults:
        str(fault).encode()


_PIECES = (
    b"PK\5\6" + bytes(18), b"PK\6\7" + bytes(16), b"PK\3\4" + bytes(26), b"PK\1\2" + bytes(42), b"\x75\x70\x05\0abcde",
    b"\1\0\x10\0" + bytes(16), b"PK\7\x08" + bytes(12), b"\xff\xff\xff\xff", b"\0\0\0\0", b"\xff\xff", b"\0" * 300,
)  # fmt: skip


@st.composite
def _zips(draw: DrawFn) -> bytes:
    """Make an archive whose members, modes, methods and comments are odd, and then spoil some bytes of it."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, data in Driver().members().items():
            for _ in range(draw(st.sampled_from((1, 1, 1, 1, 0, 2)))):
                info = zip_entry(name if draw(st.integers(0, 7)) else draw(hostile_text()) or "x")
                info.compress_type = draw(st.sampled_from((8, 8, 8, 0)))
                info.external_attr = draw(st.sampled_from((0o100644, 0o100644, 0o120777, 0o40755, 0o20644, 0))) << 16
                info.comment = draw(st.sampled_from((b"", b"", b"x" * 200)))
                info.extra = draw(
                    st.sampled_from((b"", b"", b"", b"\1\0\x10\0" + bytes(16), b"up\1", b"\x99\x99\1\0a"))
                )
                archive.writestr(info, draw(st.sampled_from((data, data, b"", bytes(100_000), b"\x7fELF"))))
        archive.comment = draw(st.sampled_from((b"", b"", b"PK\5\6" + bytes(18))))
    made = bytearray(out.getvalue())
    for _ in range(draw(st.integers(0, 4))):
        at = draw(st.integers(0, len(made)))
        made[at : at + draw(st.sampled_from((0, 1, 2, 4, 30)))] = draw(
            st.one_of(st.sampled_from(_PIECES), st.binary(max_size=8))
        )
    return bytes(made)


# what stands in it ----------------------------------------------------------------------------------------------------


def _contents(folder: Path) -> Callable[[bytes], object]:
    driver, path = Driver(), folder / Driver().file

    def run(data: bytes) -> None:
        metadata, wheel, record, entry_points, given, names = split(data, 6)
        members = driver.members() | {f"{driver.dist_info}/METADATA": metadata, f"{driver.dist_info}/WHEEL": wheel}
        members |= {driver.manifest_path: given, f"{driver.dist_info}/entry_points.txt": entry_points}
        members |= {name: b"x" for name in text(names).split("\n") if name and _encodable(name)}
        rows = "".join(f"{name},{','.join(hashed(body))}\n" for name, body in members.items())
        rows += f"{driver.dist_info}/RECORD,,\n"
        with zipfile.ZipFile(path, "w") as archive:
            for name, body in members.items():
                archive.writestr(zip_entry(name[:65_000]), body)
            archive.writestr(zip_entry(f"{driver.dist_info}/RECORD"), rows.encode(errors="replace") + record)
        report = inspect(path, host=HOST)
        _told(report.faults)
        if not report.faults and report.manifest is not None:
            groups = {each.group for each in EntryPoints._from_text_for(entry_points.decode(), None)}
            if groups & {"console_scripts", "gui_scripts"}:
                raise Broken("commands: a driver passes that installs some")

    return run


def _encodable(name: str) -> bool:
    try:
        return len(name.encode()) < 60_000 and "\0" not in name
    except UnicodeEncodeError:
        return False


_METADATA = (
    "Metadata-Version: 2.4", "Metadata-Version: ", "Name: dragoman-demo", "Name: ", "Version: 1.0.0", "Version: ",
    "Summary: For tests", "Requires-Python: >=3.11", "Requires-Python: ", "Requires-Dist: dragoman-api~=1.0",
    "Requires-Dist: x; ", "extra == 'a'", "python_version > '3'", " and ", " or ", "(", ")", "'", " in ", " not in ",
    "Requires-Dist: x @ https://a.example/x.whl", "Requires-Dist: x[a,b]>=1,<2", "Provides-Extra: a",
    "Dynamic: Version",
    "Description-Content-Type: text/markdown; charset=UTF-8; variant=GFM", "License-Expression: MIT OR (Apache-2.0)",
    "License-File: ../x", "Project-URL: a, https://a.example", "Keywords: a,b", "Import-Name: x", " folded", "\n\n",
    ":",
    "==1.*", "~=1.0", "===x", ">=", "<2", ",", "!=1.0", *VERSIONS,
)  # fmt: skip
_WHEEL = (
    "Wheel-Version: 1.0",
    "Tag: py3-none-any",
    "Tag: py2.py3-none-any",
    "Tag: ",
    "Root-Is-Purelib: true",
    "a.b.c-",
    "-",
    ".",
    "\r",
)
_ENTRY = (
    "[dragoman.drivers]", "demo = dragoman_demo:driver.json", "[console_scripts]", "ls = os:system", "[[x]]",
    " [gui_scripts]",
    "[", "]", "=", ":", "[DEFAULT]", "x", "%(x)s", "# c", "; c", "  indented = 1", "demo", "\r", "\x1c",
)  # fmt: skip
_NAMES = (
    "dragoman_demo/x.py", "demo-1.0.0.data/purelib/a.py", "dragoman_demo-1.0.0.data/scripts/ls",
    "dragoman_demo-1.0.0.data/purelib/x.dist-info/a",
    "x.pth", "a.so", "os.py", "tree.json", "con.txt", "a~1", "sitecustomize.py", "a/", "dragoman_demo/X.py",
    "x.dist-info/METADATA",
)  # fmt: skip


def _made_contents() -> SearchStrategy[bytes]:
    driver = Driver()
    own = driver.members()
    lines = own[f"{driver.dist_info}/METADATA"].decode()
    changed = st.tuples(st.just(lines), st.sampled_from(_METADATA), hostile_text()).map(
        lambda three: (f"{three[1]}{three[2]}\n" + three[0]).encode(errors="replace")
    )
    return sections(
        st.one_of(st.just(lines.encode()), changed, pasted(_METADATA)),
        st.one_of(st.just(own[f"{driver.dist_info}/WHEEL"]), pasted(_WHEEL)),
        st.one_of(st.just(b""), st.just(b""), pasted(("a,sha256=x,1", '"', ",", "\n", "\r", *_NAMES))),
        st.one_of(st.just(own[f"{driver.dist_info}/entry_points.txt"]), pasted(_ENTRY, glue=("\n", "\n", ""))),
        st.one_of(st.just(own[driver.manifest_path]), spoiled_json(manifest())),
        st.one_of(st.just(b""), pasted(_NAMES, glue=("\n",))),
    )


# names and manifests --------------------------------------------------------------------------------------------------


def _name(_: Path) -> Callable[[bytes], object]:
    def run(data: bytes) -> None:
        name = text(data)
        parts = parse_wheel_name(name)
        rank_wheel(name, HOST.tags)
        if parts.canonical and ("/" in name or "\\" in name or ".." in name.partition("-")[0]):
            raise Broken(f"canonical: {name!r}")

    return run


@st.composite
def _names(draw: DrawFn) -> bytes:
    """Make the name of a wheel, part by part."""
    usual = (("dragoman_demo", "a", "A.b"), ("1.0.0", *VERSIONS), ("py3", "py2.py3", "cp311", "a." * 3_000 + "b"),
             ("none", "abi3", "a." * 300 + "b"), ("any", "linux_x86_64", "a." * 300 + "b"))  # fmt: skip
    parts = [draw(st.one_of(st.just(few[0]), st.just(few[0]), st.sampled_from(few), hostile_text())) for few in usual]
    build = draw(st.sampled_from(((), (), (), ("1",), ("x",), ("1" * 5_000,))))
    end = draw(st.sampled_from((".whl", ".whl", ".whl", ".WHL", "", ".whl.whl")))
    return ("-".join((*parts[:2], *build, *parts[2:])) + end).encode(errors="surrogatepass")


def _manifest(_: Path) -> Callable[[bytes], object]:
    def run(data: bytes) -> None:
        found, faults = check_manifest(data)
        _told(list(faults))
        if (found is None) == (not faults):
            raise Broken("faults: there is a manifest beside them, or neither")
        if found is not None:
            if manifests.decode(manifests.encode(found)) != found:
                raise Broken("roundtrip: another manifest comes back")
            plain_permissions(found.permissions)
            describe_reach(found.permissions)

    return run


_SMALL = Bounds(seconds=0.1)
TARGETS = (
    Target(name="wheel-file", parses="dragoman_registry.wheels.archive_checks:inspect", make=_file, grammar=_zips,
           bounds=Bounds(seconds=0.5, mb=48)),
    Target(name="wheel-contents", parses="dragoman_registry.wheels.metadata_checks:check_claims", make=_contents,
    grammar=_made_contents,
           bounds=Bounds(seconds=0.3, seconds_per_kb=0.02, largest=400_000)),
    Target(name="wheel-name", parses="dragoman_registry.wheels.packaging_parsers:parse_wheel_name", make=_name,
           grammar=_names, allowed=(Unreadable,), bounds=_SMALL),
    Target(name="manifest", parses="dragoman_registry.wheels.manifest_checks:check_manifest", make=_manifest,
           grammar=lambda: json_of(MANIFEST), bounds=Bounds(seconds=0.2, mb_per_kb=1)),
)  # fmt: skip
