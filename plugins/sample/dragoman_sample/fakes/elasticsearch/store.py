"""The cluster's state: indices with their shards, aliases, data streams, and what searches keep open."""

from __future__ import annotations

import base64
import fnmatch
import re
import secrets
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import anyio

from dragoman_sample.fakes.elasticsearch.errors import ServerError, illegal, no_such_index
from dragoman_sample.fakes.elasticsearch.mapping import Mapping, Node

if TYPE_CHECKING:
    from dragoman_sample.fakes.elasticsearch.versions import Release

NODE = "fake-node-000000000000"


@dataclass(slots=True)
class Doc:
    """One version of a document; `source` are the bytes as they were sent."""

    id: str
    source: bytes
    seq_no: int
    version: int
    node: Node
    ignored: list[str]
    routing: str | None
    index: Index
    slot: int = 0


class Shard:
    """One shard: the current documents, and those that a search sees since the last refresh."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.live: dict[str, Doc] = {}
        self.seen: tuple[Doc, ...] = ()
        # Versions outlive deletion, as tombstones do.
        self.versions: dict[str, int] = {}
        self.next_seq_no = 0
        self.next_slot = 0
        self.seen_slots = 0
        self.dirty_since: float | None = None

    def refresh(self) -> None:
        """Let searches see everything written so far."""
        if self.dirty_since is not None:
            self.seen, self.seen_slots, self.dirty_since = tuple(self.live.values()), self.next_slot, None

    def take(self, doc: Doc) -> None:
        """Set a document's (or a tombstone's) sequence number, its version and its place in Lucene's order."""
        doc.seq_no = self.next_seq_no
        self.next_seq_no += 1
        # Nested documents lie before their root; nothing is ever merged here.
        self.next_slot += doc.node.count()
        doc.slot = self.next_slot - 1
        doc.version = self.versions[doc.id] = self.versions.get(doc.id, 0) + 1
        if self.dirty_since is None:
            self.dirty_since = time.monotonic()


class Index:
    """One concrete index."""

    def __init__(self, name: str, release: Release, settings: dict[str, Any], mapping: dict[str, Any]) -> None:
        self.name, self.release = name, release
        self.uuid = base64.urlsafe_b64encode(secrets.token_bytes(16)).decode().rstrip("=")
        self.created = int(time.time() * 1000)
        self.settings = settings
        self.mapping = Mapping(release, mapping, settings)
        self.aliases: dict[str, dict[str, Any]] = {}
        self.stream: str | None = None
        self.closed = False
        self.refreshed = anyio.Event()
        count = int(settings.get("index.number_of_shards", 1))
        self.shards = [Shard(number) for number in range(count)]
        # The server reserves room to split: ids are hashed into this many slots, and slots are dealt to shards.
        self.slots = count << max(1, 10 - (count - 1).bit_length())

    @property
    def hidden(self) -> bool:
        """Tell whether wildcards pass it by."""
        return str(self.settings.get("index.hidden", "false")).lower() == "true" or self.stream is not None

    @property
    def window(self) -> int:
        """Return `index.max_result_window`."""
        return int(self.settings.get("index.max_result_window", 10_000))

    def shard_of(self, routing: str) -> Shard:
        """Return the shard that holds this id or routing value."""
        if len(self.shards) == 1:
            return self.shards[0]
        hashed = murmur3(routing.encode("utf-16-le"))
        if self.release.parts >= (9, 2):
            return self.shards[hashed % len(self.shards)]
        slot = hashed % self.slots
        return self.shards[slot // (self.slots // len(self.shards))]

    def refresh(self) -> None:
        """Refresh every shard and wake those who wait for it."""
        for shard in self.shards:
            shard.refresh()
        self.refreshed.set()
        self.refreshed = anyio.Event()

    def refresh_if_due(self) -> None:
        """Do what the background refresh would have done by now."""
        interval = seconds(str(self.settings.get("index.refresh_interval", "1s")))
        since = [shard.dirty_since for shard in self.shards if shard.dirty_since is not None]
        if interval >= 0 and since and time.monotonic() - min(since) >= interval:
            self.refresh()

    def lucene_count(self) -> int:
        """Return the documents as `_cat` counts them: nested ones included, unrefreshed ones not."""
        self.refresh_if_due()
        return sum(doc.node.count() for shard in self.shards for doc in shard.seen)

    def deleted_count(self) -> int:
        """Return the places in Lucene that hold nothing alive."""
        return sum(shard.seen_slots for shard in self.shards) - self.lucene_count()

    def size(self) -> int:
        """Return a believable size in bytes."""
        return 227 + sum(len(doc.source) for shard in self.shards for doc in shard.live.values())

    def check_open(self) -> None:
        """Refuse work on a closed index."""
        if self.closed:
            raise ServerError("index_closed_exception", "closed", extra={"index_uuid": self.uuid, "index": self.name})

    def check_blocks(self, *, metadata: bool = False) -> None:
        """Refuse a write that an index block forbids."""
        for key, text, status in _BLOCKS:
            if str(self.settings.get(f"index.blocks.{key}", "false")).lower() != "true":
                continue
            if metadata and key != "read_only":
                continue
            link = "; for more information, see https://www.elastic.co/docs" if "flood" in text else ""
            tail = link if self.release.parts >= (8, 19) else ""
            reason = f"index [{self.name}] blocked by: [{text}{tail}];"
            raise ServerError(
                "cluster_block_exception", reason, status=status, extra={"index_uuid": self.uuid, "index": self.name}
            )


_BLOCKS = (
    (
        "read_only_allow_delete",
        "TOO_MANY_REQUESTS/12/disk usage exceeded flood-stage watermark, index has read-only-allow-delete block",
        429,
    ),
    ("read_only", "FORBIDDEN/5/index read-only (api)", 403),
    ("write", "FORBIDDEN/8/index write (api)", 403),
)


@dataclass(slots=True)
class View:
    """One shard as an open search sees it."""

    index: Index
    shard: Shard
    docs: tuple[Doc, ...]


@dataclass
class Context:
    """A point in time or a scroll."""

    views: list[View]
    number: int
    expires: float
    targets: str
    sorted: dict[str, Any] = field(default_factory=dict)
    scroll: Any = None


class Cluster:
    """Everything one fake server knows."""

    def __init__(self, release: Release, *, name: str = "docker-cluster", opensearch: bool = False) -> None:
        self.release, self.name, self.opensearch = release, name, opensearch
        self.uuid = base64.urlsafe_b64encode(secrets.token_bytes(16)).decode().rstrip("=")
        self.settings: dict[str, Any] = {}
        self.indices: dict[str, Index] = {}
        self.streams: dict[str, list[str]] = {}
        self.templates: dict[str, dict[str, Any]] = {}
        self.contexts: dict[str, Context] = {}
        self.failing_shards: set[tuple[str, int]] = set()
        self.painless = False  # as on the real servers of the tests, which lack the module
        self._numbers = 0

    @property
    def expensive_allowed(self) -> bool:
        """Return `search.allow_expensive_queries`."""
        return str(self.settings.get("search.allow_expensive_queries", "true")).lower() != "false"

    def create(self, name: str, settings: dict[str, Any] | None = None, mapping: dict[str, Any] | None = None) -> Index:
        """Add an index.

        Raises:
            ServerError: for a bad or a taken name, setting or mapping.
        """
        check_name(name)
        if name in self.indices or name in self.streams or self.aliased(name):
            present = self.indices.get(name)
            uuid = present.uuid if present else "_na_"
            reason = f"index [{name}/{uuid}] already exists"
            raise ServerError("resource_already_exists_exception", reason, extra={"index_uuid": uuid, "index": name})
        index = Index(name, self.release, settings or {}, mapping or {})
        self.indices[name] = index
        return index

    def aliased(self, alias: str) -> list[Index]:
        """Return the indices behind an alias."""
        return [index for index in self.indices.values() if alias in index.aliases]

    def resolve(
        self, expression: str, *, hidden: bool = False, lenient: bool = False, single: bool = False
    ) -> list[Index]:
        """Return the concrete indices that an expression means, in order of name.

        Raises:
            ServerError: index_not_found_exception, for a plain name that means nothing.
        """
        matching: dict[str, Index] = {}
        names = [name for name in expression.split(",") if name]
        for position, name in enumerate(names):
            if name.startswith("-") and position:
                for dropped in fnmatch.filter(list(matching), name[1:]):
                    del matching[dropped]
            elif name in ("_all", "*") or "*" in name:
                pattern = "*" if name == "_all" else name
                matching.update(self._matching(pattern, hidden=hidden or pattern.startswith(".")))
            elif name in self.indices:
                matching[name] = self.indices[name]
            elif name in self.streams:
                matching.update({backing: self.indices[backing] for backing in self.streams[name]})
            elif behind := self.aliased(name):
                matching.update({index.name: index for index in behind})
            else:
                if name.startswith("_"):
                    check_name(name)
                if not lenient:
                    raise no_such_index(name, single=single and self.release.types)
        return [matching[name] for name in sorted(matching)]

    def _matching(self, pattern: str, *, hidden: bool) -> dict[str, Index]:
        matched = {}
        for name, index in self.indices.items():
            names = {name, *index.aliases, *([index.stream] if index.stream else [])}
            if fnmatch.filter(names, pattern) and (
                hidden or not index.hidden or any(fnmatch.fnmatchcase(n, pattern) for n in names - {name})
            ):
                matched[name] = index
        return matched

    def write_target(self, name: str, *, create: bool) -> Index:
        """Return the index that a document written to this name goes to; a missing one is created.

        Raises:
            ServerError: if the name is an alias without a write index, or a stream and the operation is no create.
        """
        if name in self.indices:
            return self.indices[name]
        if name in self.streams:
            if not create:
                raise illegal("only write ops with an op_type of create are allowed in data streams")
            return self.indices[self.streams[name][-1]]
        behind = self.aliased(name)
        if behind:
            writers = [index for index in behind if index.aliases[name].get("is_write_index")]
            if not writers and len(behind) > 1:
                raise illegal(
                    f"no write index is defined for alias [{name}]. The write index may be explicitly disabled using "
                    "is_write_index=false or the alias points to multiple indices without one being designated as a "
                    "write index"
                )
            return (writers or behind)[0]
        template = self._template(name)
        if template is not None and "data_stream" in template:
            return self.create_stream(name, template)
        body = (template or {}).get("template", {})
        return self.create(name, flat(body.get("settings", {})), body.get("mappings"))

    def create_stream(self, name: str, template: dict[str, Any] | None = None) -> Index:
        """Add a data stream with its first backing index."""
        template = template or self._template(name)
        if template is None or "data_stream" not in template:
            raise illegal(f"no matching index template found for data stream [{name}]")
        day = time.strftime("%Y.%m.%d", time.gmtime())
        body = template.get("template", {})
        mapping = dict(body.get("mappings", {}))
        mapping["properties"] = {"@timestamp": {"type": "date"}, **mapping.get("properties", {})}
        index = self.create(f".ds-{name}-{day}-000001", flat(body.get("settings", {})), mapping)
        index.stream = name
        self.streams[name] = [index.name]
        return index

    def _template(self, name: str) -> dict[str, Any] | None:
        matching = [
            body
            for body in self.templates.values()
            if any(fnmatch.fnmatchcase(name, pattern) for pattern in body.get("index_patterns", []))
        ]
        return max(matching, key=lambda body: body.get("priority", 0), default=None)

    def single(self, name: str) -> Index:
        """Return the one index that holds documents under this name, for GET and DELETE of a document."""
        matching = self.resolve(name, single=True)
        if len(matching) > 1:
            listed = ", ".join(index.name for index in matching)
            reason = (
                f"alias [{name}] has more than one index associated with it [{listed}], can't execute a single index op"
            )
            raise illegal(reason)
        if not matching:
            raise no_such_index(name, single=self.release.types)
        matching[0].check_open()
        return matching[0]

    def views(self, indices: list[Index], preference: str = "", routing: str = "") -> list[View]:
        """Return the shards to search, in the order in which the coordinating node merges them."""
        only = None
        if preference.startswith("_shards:"):
            only = {int(number) for number in preference.removeprefix("_shards:").split("|")[0].split(",")}
        views: list[View] = []
        for index in indices:
            index.check_open()
            index.refresh_if_due()
            numbers = {index.shard_of(value).number for value in routing.split(",")} if routing else None
            views += [
                View(index, shard, shard.seen)
                for shard in index.shards
                if (only is None or shard.number in only) and (numbers is None or shard.number in numbers)
            ]
        # Shards are ordered by number, then by index.
        return sorted(views, key=lambda view: (view.shard.number, view.index.name))

    def open_context(self, views: list[View], keep_alive: str, targets: str, prefix: str) -> str:
        """Keep these shards for later pages; return the id."""
        span = seconds(keep_alive, "keep_alive")
        self._numbers += max(1, len(views))
        number = self._numbers - max(1, len(views)) + 37
        # Ids of the real server grow with the number of shards; so does this one.
        text = b"%s:%d:" % (prefix.encode(), number) + secrets.token_bytes(16) + b"\0" * 100 * max(1, len(views))
        key = base64.urlsafe_b64encode(text).decode()
        self.contexts[key] = Context(views, number, time.monotonic() + span, targets)
        return key

    def context(self, key: str, keep_alive: str | None = None) -> Context:
        """Return what is kept under an id, and keep it longer.

        Raises:
            ServerError: illegal_argument_exception for garbage, search_context_missing_exception for the past.
        """
        context = self.contexts.get(key)
        if context is None or context.expires < time.monotonic():
            self.contexts.pop(key, None)
            raise missing_context(key, self.release)
        if keep_alive:
            context.expires = time.monotonic() + seconds(keep_alive, "keep_alive")
        return context


def missing_context(key: str, release: Release) -> ServerError:
    """Return the error for an id that is garbage or expired."""
    decoded = re.match(rb"(pit|scroll):(\d+):", _unbase64(key))
    if decoded is None:
        if release.parts >= (9, 1):
            return illegal("unknown transport version [105] reading search context id")
        inner = ServerError("buffer_underflow_exception", None) if release.parts >= (7, 11) else None
        ended = ServerError("e_o_f_exception", None, caused_by=inner)
        return ServerError("illegal_argument_exception", "java.io.EOFException", caused_by=ended)
    number = int(decoded[2])
    text = "No search context found for id [{}]"
    if release.parts >= (9, 1):
        text = "No search context found for id [[fakesession0000000000a][{}] searcherId [null]]"
    shards = max(1, (len(_unbase64(key)) - len(decoded[0]) - 16) // 100)
    causes = [
        ServerError("search_context_missing_exception", text.format(number + shard), status=404)
        for shard in range(shards)
    ]
    failed = [{"shard": -1, "index": None, "reason": cause.describe()} for cause in causes]
    return ServerError(
        "search_phase_execution_exception",
        "all shards failed",
        status=404,
        root=causes,
        caused_by=causes[0] if decoded[1] == b"scroll" else None,
        extra={"phase": "query", "grouped": True, "failed_shards": failed},
    )


def _unbase64(key: str) -> bytes:
    try:
        return base64.urlsafe_b64decode(key)
    except ValueError:
        return b""


def seconds(text: str, name: str = "interval") -> float:
    """Read a time value such as `2m`.

    Raises:
        ServerError: illegal_argument_exception.
    """
    match = re.fullmatch(r"(-?\d+)(d|h|m|s|ms|micros|nanos)?", text)
    if match is None or (match[2] is None and match[1] not in ("-1", "0")):
        reason = (
            f"failed to parse setting [{name}] with value [{text}] as a time value: unit is missing or unrecognized"
        )
        raise illegal(reason)
    scale = {"d": 86_400, "h": 3_600, "m": 60, "s": 1, "ms": 1e-3, "micros": 1e-6, "nanos": 1e-9, None: 1}[match[2]]
    return int(match[1]) * scale


def flat(settings: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return index settings by their whole dotted name, values as strings, as the server keeps them."""
    members: dict[str, Any] = {}
    for key, value in settings.items():
        if isinstance(value, dict):
            members.update(flat(value, f"{prefix}{key}."))
        else:
            name = prefix + key
            text = str(value).lower() if isinstance(value, bool) else None if value is None else str(value)
            members[name if name.startswith("index.") else f"index.{name}"] = text
    return members


def check_name(name: str) -> None:
    """Refuse what cannot be the name of an index.

    Raises:
        ServerError: invalid_index_name_exception.
    """
    fault = None
    if name.lower() != name:
        fault = "must be lowercase"
    elif forbidden := sorted(set(name) & set('\\/*?"<>| ,')):
        fault = f"must not contain the following characters {forbidden}"
    elif "#" in name:
        fault = "must not contain '#'"
    elif ":" in name:
        fault = "must not contain ':'"
    elif name[0] in "_-+":
        fault = "must not start with '_'." if name[0] == "_" else "must not start with '_', '-', or '+'"
    elif name in (".", ".."):
        fault = "must not be '.' or '..'"
    if fault:
        reason = f"Invalid index name [{name}], {fault}"
        raise ServerError("invalid_index_name_exception", reason, extra={"index_uuid": "_na_", "index": name})


def murmur3(data: bytes) -> int:
    """Return the 32-bit murmur3 hash with seed 0, by which ids are routed."""
    mask, value = 0xFFFFFFFF, 0
    whole = len(data) // 4 * 4
    for start in range(0, whole, 4):
        block = int.from_bytes(data[start : start + 4], "little") * 0xCC9E2D51 & mask
        block = (block << 15 | block >> 17) & mask
        value ^= block * 0x1B873593 & mask
        value = (value << 13 | value >> 19) & mask
        value = value * 5 + 0xE6546B64 & mask
    rest = int.from_bytes(data[whole:], "little") * 0xCC9E2D51 & mask
    if len(data) > whole:
        value ^= (rest << 15 | rest >> 17) * 0x1B873593 & mask
    value ^= len(data)
    value = (value ^ value >> 16) * 0x85EBCA6B & mask
    value = (value ^ value >> 13) * 0xC2B2AE35 & mask
    value ^= value >> 16
    # Java's floorMod of a signed number.
    return value - (1 << 32) if value >> 31 else value
