"""What a machine starts from: its disk, a disk with the checkout, and a small first file system with modules."""

from __future__ import annotations

import hashlib
import json
import lzma
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from tests.machines.debian import Archive, unpack
from tests.machines.kinds import ROOT_SUITE
from tests.machines.programs import call, find
from tests.servers.folders import build_once, cache

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from tests.machines.kinds import Machine, Processor

ROOT = Path(__file__).parents[2]
GUEST = Path(__file__).parent / "guest"
RUN = "/machine"
"""Where a machine has the disk that comes with each start."""
SITE = "lib/python3.11/site-packages"
FIRST_PARTY = ("plugins/api[testing]", ".[arrow,publish,zstd]", "plugins/sample")
PACKAGES = """
base-files base-passwd bash busybox-static coreutils cpp dash findutils grep hostname iproute2 kmod libc-bin
linux-libc-dev login mount netbase openssh-client openssh-server openssl procps python3 sed tar tzdata util-linux
"""
MODULES = ("virtio_pci", "virtio_blk", "virtio_console", "ext4", "crc32c_generic", "vsock")
"""Modules that nothing in a machine would load: its first program loads them."""


class Kernel:
    """A kernel of Debian, unpacked."""

    def __init__(self, machine: Machine) -> None:
        self.folder = cache() / "machines" / f"kernel-{machine.name}"
        build_once(self.folder, lambda folder: self._fetch(machine, folder))
        (self.image,) = self.folder.glob("boot/vmlinuz-*")

    @property
    def release(self) -> str:
        """What `uname -r` says in the machine."""
        return self.image.name.removeprefix("vmlinuz-")

    @staticmethod
    def _fetch(machine: Machine, folder: Path) -> None:
        with tempfile.TemporaryDirectory() as scratch:
            archive = Archive(Path(scratch), machine.processor.debian, machine.suites)
            archive.update()
            unpack(archive.newest_kernel(), folder)

    def modules(self) -> Iterator[tuple[str, bytes]]:
        """Yield the modules that a machine starts with, each after those that it needs."""
        files = {path.name.partition(".")[0].replace("-", "_"): path for path in self.folder.rglob("*.ko*")}
        loaded = set[str]()

        def load(name: str) -> Iterator[tuple[str, bytes]]:
            if name in loaded or name not in files:  # a kernel that holds it itself has no file of it
                return
            loaded.add(name)
            module = files[name].read_bytes()
            module = lzma.decompress(module) if files[name].suffix == ".xz" else module
            needed = re.search(rb"\0depends=([^\0]*)\0", module)
            for other in needed[1].decode().split(",") if needed else []:
                yield from load(other.replace("-", "_"))
            yield name, module

        for name in MODULES:
            yield from load(name)


def disk(processor: Processor) -> Path:
    """Make the disk of a processor's machines, once for each list of what is on it."""
    lists = [PACKAGES, ROOT_SUITE, RUN, *FIRST_PARTY, *(path.read_text() for path in _requirements())]
    lists += [path.read_text() for path in sorted(ROOT.glob("plugins/*/pyproject.toml"))]
    lists += [(ROOT / "pyproject.toml").read_text()]
    digest = hashlib.sha256("\0".join(lists).encode()).hexdigest()[:12]
    folder = cache() / "machines" / f"disk-{processor.debian}-{digest}"
    build_once(folder, lambda made: _make_disk(processor, made))
    return folder / "disk.ext4"


def _requirements() -> tuple[Path, Path]:
    return Path(__file__).with_name("requirements.txt"), ROOT / "tests/constraints.txt"


def _make_disk(processor: Processor, folder: Path) -> None:
    tree = folder / "tree"
    for name in ("bin", "lib", "sbin", *(["lib64"] if processor.debian == "amd64" else [])):
        (tree / "usr" / name).mkdir(parents=True)
        (tree / name).symlink_to(f"usr/{name}")
    archive = Archive(folder / "apt", processor.debian, (ROOT_SUITE,))
    archive.update()
    for package in archive.closure(PACKAGES.split()):
        unpack(package, tree)
    shutil.rmtree(folder / "apt")
    _configure(tree)
    packages = _environment(tree / "srv/tests")
    requirements, constraints = map(str, _requirements())
    _install(processor, packages, "-c", constraints, "-r", requirements, *_editable())
    for path in [*packages.glob("dragoman*"), *packages.glob("_editable_impl_dragoman*")]:
        shutil.rmtree(path) if path.is_dir() else path.unlink()  # the checkout comes with each start
    if sys.version_info[:2] == (3, 11):  # a machine's own compiling takes minutes
        folders = [str(tree / "usr/lib/python3.11"), str(packages)]
        command = [sys.executable, "-m", "compileall", "-q", "-s", str(tree), "-p", "/"]
        subprocess.run([*command, *folders], check=False)  # some packages hold files that no Python compiles
    (packages / "run.pth").write_text(f"import site; site.addsitedir('{RUN}/editable')\n")
    _format(tree, folder / "disk.ext4", free=3 << 30)
    shutil.copy(tree / "usr/bin/busybox", folder)
    shutil.rmtree(tree)


def _format(tree: Path, image: Path, *, free: int) -> None:
    """Make a file system of the files in a folder; they are root's, whoever makes it."""
    size = sum(path.lstat().st_size + 4096 for path in tree.rglob("*"))
    with image.open("wb") as file:
        file.truncate(size * 5 // 4 + free)
    become = [] if os.geteuid() == 0 else ["unshare", "--map-root-user"]
    call([*become, find("mkfs.ext4") or "mkfs.ext4", "-q", "-d", tree, image])


def _configure(tree: Path) -> None:
    """Do what the packages' scripts would, as far as the tests see it."""
    for name in ("passwd", "group"):
        shutil.copy(tree / f"usr/share/base-passwd/{name}.master", tree / "etc" / name)
    with (tree / "etc/passwd").open("a") as file:
        file.write("sshd:x:100:65534::/run/sshd:/usr/sbin/nologin\n")
    (tree / "etc/shadow").write_text("root:*:19000:0:99999:7:::\n")
    (tree / "etc/shadow").chmod(0o640)
    (tree / "etc/hosts").write_text("127.0.0.1 localhost machine\n::1 localhost\n")
    (tree / "etc/hostname").write_text("machine\n")
    (tree / "etc/resolv.conf").write_text("")
    (tree / "usr/bin/sh").exists() or (tree / "usr/bin/sh").symlink_to("dash")
    for name in ("proc", "sys", "dev", "run", "tmp", "root"):
        (tree / name).mkdir(exist_ok=True)
    (tree / "tmp").chmod(0o1777)
    (tree / "root").chmod(0o700)
    (tree / "usr/sbin/init").symlink_to("../bin/busybox")


def _environment(folder: Path) -> Path:
    """Make a virtual environment of the machine's Python, and return where its packages go."""
    packages = folder / SITE
    packages.mkdir(parents=True)
    (folder / "bin").mkdir()
    (folder / "bin/python").symlink_to("/usr/bin/python3")
    (folder / "pyvenv.cfg").write_text("home = /usr/bin\ninclude-system-site-packages = false\n")
    return packages


def _install(processor: Processor, folder: Path, *words: str) -> None:
    """Install wheels of a processor into a folder."""
    platform = ("--python-platform", processor.wheels, "--python-version", "3.11", "--python", sys.executable)
    wheels = ("--only-binary", ":all:", "--no-binary", "forbiddenfruit")  # its sdist is plain Python
    call(["uv", "pip", "install", "-q", "--target", folder, *platform, *wheels, *words])


def write_checkout(processor: Processor, job: Mapping[str, object], image: Path) -> None:
    """Write the disk of one start: the checkout, what the release's wheels install, and what to do there."""
    listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = call(listed, folder=ROOT).split("\0")
    paths = [ROOT / name for name in names if name] + [*(ROOT / "runtime/dragoman/bundled").rglob("*")]
    with tempfile.TemporaryDirectory() as scratch:
        tree = Path(scratch)
        for path in {*paths, *_bytecode(paths)}:
            if path.is_file():
                copy = tree / "dragoman" / path.relative_to(ROOT)
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(path, copy)
        _install(processor, tree / "editable", "--no-deps", *_editable())
        for path in (tree / "editable").glob("*.pth"):
            path.write_text(path.read_text().replace(str(ROOT), f"{RUN}/dragoman"))
        wheels = _environment(tree / "installed")
        _install(processor, wheels, "--no-deps", *map(str, sorted((ROOT / "dist").glob("*.whl"))))
        program = tree / "installed/bin/dragoman"
        lines = f"#!{RUN}/installed/bin/python", "import sys", "from dragoman.__main__ import main", "sys.exit(main())"
        program.write_text("\n".join(lines) + "\n")
        program.chmod(0o755)
        (tree / "job.json").write_text(json.dumps(job))
        tree.chmod(0o755)
        _format(tree, image, free=1 << 30)


def _editable() -> list[str]:
    return [word for name in FIRST_PARTY for word in ("-e", f"{ROOT}/{name}")]


def _bytecode(paths: Iterable[Path]) -> Iterator[Path]:
    """Yield what a Python of the machines' version compiled here: it takes an emulated processor long."""
    for path in paths:
        if path.suffix == ".py":
            yield from path.parent.glob(f"__pycache__/{path.stem}.cpython-311*.pyc")


def write_first_files(kernel: Kernel, processor: Processor, file: BinaryIO) -> None:
    """Write the file system in memory that loads modules and goes on to the disk, as the kernel reads it."""
    files = {"init": (GUEST / "first").read_bytes(), "busybox": disk(processor).with_name("busybox").read_bytes()}
    names = []
    for name, module in kernel.modules():
        files[f"{name}.ko"] = module
        names.append(name)
    files["modules"] = "\n".join(names).encode() + b"\n"
    write_archive(files, file)


def write_archive(files: Mapping[str, bytes], file: BinaryIO) -> None:
    """Write executable files of root's as an archive in cpio's newer format, which kernels unpack."""
    for number, (name, data) in enumerate([*files.items(), ("TRAILER!!!", b"")], 1):
        fields = (number, 0o100755, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(name) + 1, 0)
        header = b"070701" + "".join(f"{field:08x}" for field in fields).encode() + name.encode() + b"\0"
        file.writelines(part + b"\0" * (-len(part) % 4) for part in (header, data))
