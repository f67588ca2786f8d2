"""Attacks on the network and on local sockets, past the broker."""

from __future__ import annotations

import ctypes
import fcntl
import os
import socket
import struct

from dragoman_worker.lockdown.kernel import NUMBERS, syscall

from .book import FoiledError, Targets, UnsupportedError, attack

_MPTCP = 262
_FASTOPEN_CONNECT = 30
_BIND_TO_DEVICE = 25
_SECONDS = 3


def greeted(sock: socket.socket) -> None:
    """Succeed only when the server has been heard."""
    sock.settimeout(_SECONDS)
    if b"welcome" not in sock.recv(200):
        raise FoiledError("no answer")


@attack
def connect_other_port(targets: Targets) -> None:
    with socket.create_connection(("127.0.0.1", targets.other_port), _SECONDS) as sock:
        greeted(sock)


@attack
def connect_other_host(targets: Targets) -> None:
    with socket.create_connection((targets.other_host, targets.other_port), _SECONDS) as sock:
        greeted(sock)


@attack
def connect_approved_port_itself(targets: Targets) -> None:
    socket.create_connection(("127.0.0.1", targets.port), _SECONDS).close()


@attack
def bind_and_listen(targets: Targets) -> None:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        sock.listen()


@attack
def listen_unbound(targets: Targets) -> None:
    """Listen on whatever port the kernel picks."""
    with socket.socket() as sock:
        sock.listen()


@attack
def mptcp(targets: Targets) -> None:
    try:
        sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM, _MPTCP)
    except OSError as error:
        if error.errno in (93, 92):
            raise UnsupportedError("no MPTCP in this kernel") from None
        raise
    with sock:
        sock.connect(("127.0.0.1", targets.other_port))
        greeted(sock)


@attack
def fast_open(targets: Targets) -> None:
    """Connect by sending: `sendto` with an address."""
    with socket.socket() as sock:
        sock.sendto(b"hello", socket.MSG_FASTOPEN, ("127.0.0.1", targets.other_port))
        greeted(sock)


@attack
def fast_open_by_sendmsg(targets: Targets) -> None:
    with socket.socket() as sock:
        sock.sendmsg([b"hello"], [], socket.MSG_FASTOPEN, ("127.0.0.1", targets.other_port))
        greeted(sock)


@attack
def fast_open_connect(targets: Targets) -> None:
    with socket.socket() as sock:
        sock.setsockopt(socket.IPPROTO_TCP, _FASTOPEN_CONNECT, 1)


@attack
def bind_to_device(targets: Targets) -> None:
    with socket.socket() as sock:
        sock.setsockopt(socket.SOL_SOCKET, _BIND_TO_DEVICE, b"lo\0")


@attack
def other_socket_option(targets: Targets) -> None:
    """Choose how the kernel sends, by an option that drivers do not need."""
    with socket.socket() as sock:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"reno")


@attack
def udp(targets: Targets) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.sendto(b"the secret", ("127.0.0.1", targets.udp_port))
        greeted(sock)


@attack
def netlink(targets: Targets) -> None:
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0) as sock:
        sock.send(struct.pack("=LHHLLBxxx", 20, 18, 0x301, 1, 0, 0))  # RTM_GETLINK, dump
        sock.recv(4096)


@attack
def vsock(targets: Targets) -> None:
    try:
        socket.socket(40, socket.SOCK_STREAM).close()
    except OSError as error:
        if error.errno == 97:
            raise UnsupportedError("no vsock in this kernel") from None
        raise


@attack
def packet_socket(targets: Targets) -> None:
    socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0).close()


@attack
def raw_socket(targets: Targets) -> None:
    socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP).close()


@attack
def libc_lookup(targets: Targets) -> None:
    socket.getaddrinfo("localhost", 80)


@attack
def interfaces_by_ioctl(targets: Targets) -> None:
    """Ask an ordinary TCP socket for the machine's addresses."""
    buffer = ctypes.create_string_buffer(4096)
    with socket.socket() as sock:
        request = struct.pack("iP", 4096, ctypes.addressof(buffer))
        fcntl.ioctl(sock, 0x8912, request)
    if b"lo" not in buffer.raw:
        raise FoiledError("nothing learnt")


@attack
def abstract_socket(targets: Targets) -> None:
    with socket.socket(socket.AF_UNIX) as sock:
        sock.connect("\0" + targets.abstract)
        greeted(sock)


@attack
def unix_socket(targets: Targets) -> None:
    with socket.socket(socket.AF_UNIX) as sock:
        sock.connect(targets.unix)
        greeted(sock)


@attack
def unix_socket_by_pair(targets: Targets) -> None:
    """Send to a path from one end of a pair that was never connected to it."""
    one, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    with one, other:
        one.sendto(b"the secret", targets.unix_datagrams)


@attack
def unix_socket_by_high_bits(targets: Targets) -> None:
    """`socket(AF_UNIX | 1 << 32)`: the kernel reads the low half."""
    family, kind, protocol = ctypes.c_ulong(1 | 1 << 32), ctypes.c_long(1), ctypes.c_long(0)
    os.close(syscall(NUMBERS["socket"], family, kind, protocol))


@attack
def terminal_input(targets: Targets) -> None:
    """Type into the terminal of the user who started the host."""
    fcntl.ioctl(0, 0x5412, b"x")
