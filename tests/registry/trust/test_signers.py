"""Keys that are encrypted, and keys in hardware, sign as plain ones do; one that does not open changes nothing."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from base64 import b64decode, b64encode
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import find_spec
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.rsa import generate_private_key
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from command_line import Machine
from dragoman.cli.key_options import opened_with, refuse_shared
from dragoman_api.errors import ConfigurationError
from dragoman_registry.publisher import publish
from dragoman_registry.publisher.verify import verify
from dragoman_registry.trust.keys import Keys, beside, own_key
from dragoman_registry.trust.signers import KeyFile, Unlocking, read_public, unlocked_by
from dragoman_registry.trust.tuf_repository import Repository
from terminal import Terminal
from trust_attacks import Case, driver

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

PASSPHRASE = "correct horse battery"
PIN = "1234"
MODULES = ("/usr/lib/softhsm/libsofthsm2.so", "/usr/lib64/softhsm/libsofthsm2.so", "/usr/lib64/pkcs11/libsofthsm2.so")


def answers(passphrase: str = PASSPHRASE, pin: str = PIN, *, encrypts: bool = False) -> tuple[Unlocking, list[str]]:
    """Return a person who answers, and what they were asked."""
    questions: list[str] = []

    def ask(secret: str, key: str, *, new: bool) -> str:
        questions.append(f"{'new ' if new else ''}{secret} of {key}")
        return passphrase if secret == "passphrase" else pin

    return Unlocking(ask, encrypts=encrypts), questions


def files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture
def case(tmp_path: Path) -> Case:
    registry = Case(tmp_path / "case", http=False)
    registry.location = str(registry.root)
    return registry


@pytest.fixture
def encrypted(tmp_path: Path) -> Path:
    """A registry whose keys are encrypted."""
    way, questions = answers(encrypts=True)
    with unlocked_by(way):
        publish.build([driver(tmp_path)], to=tmp_path / "registry")
    assert len(questions) == 1
    assert questions[0].startswith("new passphrase of ")
    return tmp_path / "registry"


def test_one_passphrase_encrypts_and_opens_every_key_of_a_folder(encrypted: Path, tmp_path: Path):
    keys = [*beside(encrypted).glob("*.pem")]
    assert len(keys) == 9
    assert all(key.read_bytes().startswith(b"-----BEGIN ENCRYPTED PRIVATE KEY-----") for key in keys)
    way, questions = answers()
    with unlocked_by(way):
        publish.build([driver(tmp_path, "1.1.0")], to=encrypted)
        publish.sign(encrypted, rotate=["root", "index"])
    assert len(questions) == 1
    assert all(b"ENCRYPTED" in key.read_bytes() for key in beside(encrypted).glob("*.pem"))
    assert verify(encrypted) == []


def test_reading_a_registry_asks_for_no_passphrase(encrypted: Path):
    assert verify(encrypted) == []
    assert Repository(encrypted, Keys(beside(encrypted))).can_sign("root", "targets", "index")


@pytest.mark.parametrize("passphrase", ["wrong", "", None])
def test_a_passphrase_that_does_not_open_a_key_changes_nothing(passphrase: str | None, encrypted: Path, tmp_path: Path):
    before = files(tmp_path)
    wheel = driver(tmp_path, "1.1.0")
    before |= {str(wheel.relative_to(tmp_path)): wheel.read_bytes()}
    for change in (
        lambda: publish.build([wheel], to=encrypted),
        lambda: publish.sign(encrypted, rotate=["targets"], new_keys=[own_key(tmp_path / "t.pem")]),
    ):
        way = Unlocking() if passphrase is None else answers(passphrase)[0]
        with unlocked_by(way), pytest.raises(ConfigurationError) as caught:
            change()
        assert caught.value.code == "key-locked"
    after = {name: data for name, data in files(tmp_path).items() if not name.startswith(("t.", ".t."))}
    assert {name for name in after if not name.endswith(".lock")} == {n for n in before if not n.endswith(".lock")}
    assert verify(encrypted) == []


def test_the_public_key_beside_an_encrypted_one_must_be_its_own(encrypted: Path):
    [index], [snapshot] = (beside(encrypted).glob(f"{role}-*.pub") for role in ("index", "snapshot"))
    shutil.copy(snapshot, index)
    with unlocked_by(answers()[0]), pytest.raises(ConfigurationError, match="is the public key of another one"):
        KeyFile(index.with_suffix(".pem")).sign(b"")
    index.unlink()
    with pytest.raises(ConfigurationError, match="No such file"):
        KeyFile(index.with_suffix(".pem"))


def test_a_new_passphrase_is_long_enough(tmp_path: Path):
    with unlocked_by(answers("short", encrypts=True)[0]), pytest.raises(ConfigurationError, match="shorter than 12"):
        own_key(tmp_path / "me.pem", new=True)
    assert not (tmp_path / "me.pem").exists()


def test_a_key_that_openssl_encrypted_opens(tmp_path: Path):
    if shutil.which("openssl") is None:
        pytest.skip("no openssl here")
    plain = own_key(tmp_path / "me.pem")
    command = ["openssl", "pkcs8", "-topk8", "-in", plain, "-out", tmp_path / "locked.pem", "-passout", "stdin"]
    subprocess.run(command, input=PASSPHRASE, text=True, check=True, capture_output=True)
    shutil.copy(plain.with_suffix(".pub"), tmp_path / "locked.pub")
    (tmp_path / "locked.pem").chmod(0o600)
    with unlocked_by(answers()[0]):
        assert KeyFile(tmp_path / "locked.pem").sign(b"x") == KeyFile(plain).sign(b"x")


def test_a_key_that_hosts_cannot_verify_is_refused(tmp_path: Path):
    public = generate_private_key(65537, 2048).public_key()
    (tmp_path / "me.pub").write_bytes(public.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))
    with pytest.raises(ConfigurationError, match="it is rsa, and hosts verify Ed25519 alone"):
        read_public(tmp_path / "me.pub")


def test_what_is_no_key_of_ours_is_refused_in_words(tmp_path: Path):
    prime192v3 = f"MEkwEwYHKoZIzj0CAQYIKoZIzj0DAQMDMgAE{'A' * 64}"
    (tmp_path / "odd.pub").write_text(f"-----BEGIN PUBLIC KEY-----\n{prime192v3}\n-----END PUBLIC KEY-----\n")
    with pytest.raises(ConfigurationError, match="cannot be used as a key"):
        read_public(tmp_path / "odd.pub")
    plain = own_key(tmp_path / "me.pem")
    plain.write_bytes(b"not ENCRYPTED\n" + plain.read_bytes())
    assert KeyFile(plain).sign(b"x")
    os.mkfifo(tmp_path / "pipe.pem", 0o600)
    with pytest.raises(ConfigurationError, match="is not a regular file"):
        Keys(tmp_path).signers()


@pytest.mark.parametrize(("passphrase", "reason"), [("x" * 1_024, "1,023 bytes"), ("correct horse \udcff", "UTF-8")])
def test_a_passphrase_that_nothing_can_be_encrypted_with_is_refused_in_words(
    passphrase: str, reason: str, encrypted: Path, tmp_path: Path
):
    with unlocked_by(answers(passphrase, encrypts=True)[0]), pytest.raises(ConfigurationError, match=reason):
        own_key(tmp_path / "me.pem", new=True)
    with unlocked_by(answers(passphrase)[0]), pytest.raises(ConfigurationError, match="does not open"):
        publish.sign(encrypted, rotate=["index"])


def test_a_key_is_made_beside_a_certificate_that_others_can_read(tmp_path: Path):
    (tmp_path / "ca.pem").write_text("-----BEGIN CERTIFICATE-----\n")
    (tmp_path / "ca.pem").chmod(0o644)
    assert KeyFile(own_key(tmp_path / "me.pem", new=True)).sign(b"x")


@pytest.mark.parametrize("count", [1, 2, 4])
def test_the_new_keys_of_a_root_are_three_of_its_own(count: int, case: Case):
    made = [own_key(beside(case.root) / f"{number}.pem") for number in range(count)]
    with pytest.raises(ConfigurationError, match=f"root needs new keys: 3, not {count}"):
        publish.sign(case.root, rotate=["root"], new_keys=made)
    [targets] = beside(case.root).glob("targets-*.pem")
    for wrong in ([*made[:2], targets], [made[0], made[0], made[0]]):
        if len(wrong) == 3:
            with pytest.raises(ConfigurationError, match="already"):
                publish.sign(case.root, rotate=["root"], new_keys=wrong)
    assert Repository(case.root, Keys(beside(case.root))).root_digest == case.pin


# on the command line --------------------------------------------------------------------------------------------------


def test_a_passphrase_may_come_from_a_pipe_and_from_a_file_that_others_can_only_run(tmp_path: Path):
    os.mkfifo(pipe := tmp_path / "pipe", 0o644)  # as a shell makes one for <(…)
    (file := tmp_path / "file").touch()
    file.chmod(0o711)
    for path in (pipe, file):
        refuse_shared(str(path), "the passphrase")


def test_a_passphrase_comes_from_where_an_option_says_and_is_never_shown(tmp_path: Path):
    house = Machine(tmp_path / "home")
    file = tmp_path / "passphrase.txt"
    file.write_text(f"{PASSPHRASE}\n")
    file.chmod(0o600)
    house("registry", "init", tmp_path / "team", "--passphrase", f"file:{file}")
    sign = ["registry", "sign", tmp_path / "team", "--rotate", "index"]
    for mode, verb in {0o644: "read", 0o640: "read", 0o602: "change"}.items():
        file.chmod(mode)
        told = house(*sign, "--passphrase", f"file:{file}", code=2)
        assert f"the passphrase of {tmp_path / 'team.keys'}" in told.err
        assert f"other users can {verb} {file}; it was not used" in told.err
        assert f"chmod 600 {file}" in told.err
    file.chmod(0o400)
    house(*sign, "--passphrase", f"file:{file}")
    house(*sign, "--passphrase", "env:TEAM_PASSPHRASE", TEAM_PASSPHRASE=PASSPHRASE)
    for reference, reason in {
        "env:TEAM_PASSPHRASE": "the passphrase does not open",
        "wrong horse battery": "--passphrase does not say where",
        "": "needs its passphrase",
    }.items():
        option = ["--passphrase", reference] if reference else []
        told = house(*sign, *option, code=2, TEAM_PASSPHRASE="wrong horse battery")
        assert reason in told.err
        assert "horse" not in told.said


def test_a_variable_with_a_passphrase_does_not_reach_the_processes_that_a_command_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("TEAM_PASSPHRASE", PASSPHRASE)
    references = {"passphrase": "env:TEAM_PASSPHRASE", "pin": "env:TEAM_PASSPHRASE"}
    with opened_with(references):
        key = own_key(tmp_path / "me.pem", new=True)
        shown = subprocess.run(["/usr/bin/env"], capture_output=True, text=True, check=True).stdout
        assert PASSPHRASE not in shown
        assert KeyFile(key).sign(b"x")
    assert b"ENCRYPTED" in key.read_bytes()
    assert os.environ["TEAM_PASSPHRASE"] == PASSPHRASE


@pytest.mark.slow
def test_a_terminal_asks_for_a_passphrase_without_showing_it(tmp_path: Path):
    house = Machine(tmp_path / "home")
    first = Terminal(house, "driver", "key", tmp_path / "me.pem", "--passphrase", "ask")
    shown = first.answer("a new passphrase of", PASSPHRASE) + first.answer("Repeat for confirmation", PASSPHRASE)
    code, rest = first.end()
    assert code == 0, rest
    assert PASSPHRASE not in shown + rest
    assert b"ENCRYPTED" in (tmp_path / "me.pem").read_bytes()


# in hardware ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def token(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[int], str]:
    """A PKCS#11 token of SoftHSM, which makes Ed25519 keys: number → URI."""
    module = next((name for name in MODULES if Path(name).exists()), "")
    if not module or shutil.which("softhsm2-util") is None or find_spec("pkcs11") is None:
        if os.environ.get("REQUIRE_SOFTHSM"):
            pytest.fail("SoftHSM or python-pkcs11 is missing")
        pytest.skip("no SoftHSM here; try: apt install softhsm2, pip install python-pkcs11")
    (tmp_path / "tokens").mkdir()
    (tmp_path / "softhsm2.conf").write_text(f"directories.tokendir = {tmp_path / 'tokens'}\nlog.level = ERROR\n")
    monkeypatch.setenv("SOFTHSM2_CONF", str(tmp_path / "softhsm2.conf"))
    monkeypatch.setenv("PYKCS11LIB", module)
    command = ["softhsm2-util", "--init-token", "--free", "--label", "dragoman", "--pin", PIN, "--so-pin", "5678"]
    subprocess.run(command, check=True, capture_output=True)
    import pkcs11
    from pkcs11.util.ec import encode_named_curve_parameters

    library = pkcs11.lib(module)
    library.reinitialize()

    def make(number: int) -> str:
        with library.get_token(token_label="dragoman").open(user_pin=PIN, rw=True) as session:
            curve = {pkcs11.Attribute.EC_PARAMS: encode_named_curve_parameters("1.3.101.112")}
            parameters = session.create_domain_parameters(pkcs11.KeyType.EC_EDWARDS, curve, local=True)
            parameters.generate_keypair(
                mechanism=pkcs11.Mechanism.EC_EDWARDS_KEY_PAIR_GEN, store=True, id=bytes([number])
            )
        return f"hsm:{number}?label=dragoman"

    return make


@contextmanager
def plugged_out(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with monkeypatch.context() as patch:
        patch.delenv("PYKCS11LIB")
        yield


def test_a_root_moves_into_hardware_and_hosts_follow(
    token: Callable[[int], str], case: Case, monkeypatch: pytest.MonkeyPatch
):
    assert case.install() == "1.0.0"
    folder = beside(case.root)
    references = [own_key(folder / f"root-{n}.uri", new=True, hardware=token(n)) for n in (1, 2, 3)]
    way, questions = answers()
    with unlocked_by(way):
        publish.sign(case.root, rotate=["root"], new_keys=references)
    assert questions == ["pin of the token dragoman"]
    for old in folder.glob("root-*.pem"):
        old.unlink()
    case.release("1.1.0")
    assert case.install() == "1.1.0"
    with unlocked_by(answers()[0]):
        publish.sign(case.root, rotate=["targets"])
    assert case.install() == "1.1.0"
    before = files(case.root)
    with unlocked_by(answers(pin="0000")[0]), pytest.raises(ConfigurationError, match="the PIN is wrong"):
        publish.sign(case.root, rotate=["targets"])
    with plugged_out(monkeypatch), unlocked_by(answers()[0]), pytest.raises(ConfigurationError, match="PYKCS11LIB"):
        publish.sign(case.root, rotate=["targets"])
    assert files(case.root) == before
    assert verify(case.root) == []


def test_a_publisher_signs_with_a_key_in_hardware(token: Callable[[int], str], case: Case):
    key = own_key(case.folder / "token.uri", new=True, hardware=token(2))
    publish.add_publisher(case.root, "acme", key=key.with_suffix(".pub"), projects=[])
    with unlocked_by(answers()[0]):
        publish.sign(case.root, sign=key)
        publish.accept(case.root)
        publish.build([driver(case.folder, "1.1.0")], to=case.root, sign=key)
    assert case.install() == "1.1.0"


def test_a_reference_to_another_key_of_the_token_signs_nothing(token: Callable[[int], str], tmp_path: Path):
    key = own_key(tmp_path / "me.uri", new=True, hardware=token(1))
    key.write_text(token(2))
    with unlocked_by(answers()[0]), pytest.raises(ConfigurationError, match=r"it is not the key of its \.pub"):
        KeyFile(key).sign(b"x")
    key.write_text("hsm:7?label=dragoman")
    with unlocked_by(answers()[0]), pytest.raises(ConfigurationError, match="has no such Ed25519 key"):
        KeyFile(key).sign(b"x")


def test_a_reference_that_others_can_change_is_refused(tmp_path: Path):
    reference = own_key(tmp_path / "me.pem").with_suffix(".uri")
    reference.write_text("hsm:1?label=dragoman")
    reference.chmod(0o664)
    with pytest.raises(ConfigurationError, match="others can change the reference"):
        KeyFile(reference).sign(b"x")


@pytest.fixture
def vault(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The transit engine of a Vault, with two versions of one key."""
    keys = {number: Ed25519PrivateKey.generate() for number in (1, 2)}

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            publics = {number: key.public_key().public_bytes_raw() for number, key in keys.items()}
            self.answer({"keys": {str(n): {"public_key": b64encode(data).decode()} for n, data in publics.items()}})

        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            signature = keys[asked["key_version"]].sign(b64decode(asked["input"]))
            self.answer({"signature": f"vault:v{asked['key_version']}:{b64encode(signature).decode()}"})

        def answer(self, data: dict[str, object]) -> None:
            body = json.dumps({"data": data}).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        monkeypatch.setenv("VAULT_ADDR", f"http://127.0.0.1:{server.server_port}")
        monkeypatch.setenv("VAULT_TOKEN", "test")
        yield
        server.shutdown()


@pytest.mark.usefixtures("vault")
def test_a_key_in_a_vault_signs_with_the_version_that_it_was_referred_to(tmp_path: Path):
    key = own_key(tmp_path / "me.uri", new=True, hardware="hv:team")
    assert key.read_text() == "hv:team/2\n"
    assert KeyFile(key).sign(b"x")
    with pytest.raises(ConfigurationError, match="the public key of another version than hv:team/2 cannot be read"):
        own_key(tmp_path / "old.uri", new=True, hardware="hv:team/1")


@pytest.mark.parametrize("uri", ["file2:/etc/hostname", "ftp:x", ""])
def test_a_reference_of_another_scheme_is_refused(uri: str, tmp_path: Path):
    public = own_key(tmp_path / "me.pem").with_suffix(".pub")
    (tmp_path / "other.uri").write_text(uri)
    shutil.copy(public, tmp_path / "other.pub")
    with pytest.raises(ConfigurationError, match="is none of the schemes"):
        KeyFile(tmp_path / "other.uri").sign(b"x")
