"""What agents may do with a connection: its rules, applied to names, columns and amounts. No agent can change them."""

from __future__ import annotations

import json
import re
import time
import unicodedata
from collections import deque
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from dragoman.extending import AgentRules
from dragoman_api import ColumnKind, Role
from dragoman_api.errors import (
    ConfigurationError,
    DriverError,
    ObjectNotFoundError,
    Refused,
    UnsupportedOperationError,
)
from dragoman_api.remedies import Remedy, RemedyKind
from dragoman_api.wording import quoted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from dragoman import Runtime
    from dragoman_api import Column, ConsoleRequest, Description, HttpRequest

POWERS = ("read", "plan", "write")
"""What an agent may do, each with all before it."""

HOUR = 3_600.0
_ADDRESSES = ("host", "hosts", "token_url")
"""Fields of connections that name hosts."""
_CONTAINERS = (ColumnKind.JSON, ColumnKind.OTHER)


def matches(name: str, pattern: str) -> bool:
    r"""Return whether a name matches a pattern, in which only ``*`` and ``?`` stand for other characters.

    Two ways to write one letter, such as "é" and "e" with an accent of its own, are one name.

    >>> matches("orders-1", "orders*"), matches("card", "[ck]ard")
    (True, False)
    >>> matches("cafe\u0301", "caf\xe9"), matches("cafe\u0301s", "cafe*")
    (True, True)
    """
    return any(fnmatchcase(*form) for form in _forms(name, pattern.replace("[", "[[]")))


def _forms(name: str, pattern: str) -> set[tuple[str, str]]:
    """Return a name and a pattern as they are, and with each letter in the one way that Unicode prefers (form NFC)."""
    return {(name, pattern), (unicodedata.normalize("NFC", name), unicodedata.normalize("NFC", pattern))}


def may_contain(name: str, pattern: str) -> bool:
    """Return whether a name below a column could match a pattern.

    >>> may_contain("customer", "customer.email"), may_contain("customer", "*.email"), may_contain("sku", "customer.*")
    (True, True, False)
    """
    return any(_may_contain(*form) for form in _forms(name, pattern))


def _may_contain(name: str, pattern: str) -> bool:
    places = {0}
    for letter in f"{name}.":
        places = _with_stars(places, pattern)
        places = {
            place if pattern[place] == "*" else place + 1
            for place in places
            if place < len(pattern) and pattern[place] in ("*", "?", letter)
        }
    return bool(places)


def _with_stars(places: set[int], pattern: str) -> set[int]:
    """Add the places after the stars that may stand for nothing."""
    widened = set(places)
    for place in places:
        following = place
        while following < len(pattern) and pattern[following] == "*":
            following += 1
            widened.add(following)
    return widened


def _covers(patterns: Iterable[str], name: str, *, holds: bool) -> bool:
    """Return whether a pattern is of a column, of one around it, or of one that may lie in it, if it holds others."""
    parts = name.split(".")
    around = [".".join(parts[:length]) for length in range(1, len(parts) + 1)]
    return any(
        any(matches(outer, pattern) for outer in around) or (holds and may_contain(name, pattern))
        for pattern in patterns
    )


class Allowance:
    """Rows and bytes of the last hour, of all agents."""

    def __init__(self, rules: AgentRules, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._rows, self._bytes, self._clock = rules.rows_an_hour, rules.bytes_an_hour, clock
        self._answers: deque[tuple[float, int, int]] = deque()

    def charge(self, *, rows: int, size: int) -> None:
        """Count an answer."""
        self._answers.append((self._clock(), rows, size))

    def _spent(self) -> tuple[int, int]:
        since = self._clock() - HOUR
        while self._answers and self._answers[0][0] < since:
            self._answers.popleft()
        return sum(rows for _, rows, _ in self._answers), sum(size for _, _, size in self._answers)

    def left(self) -> tuple[int | None, int | None]:
        """Return the rows and bytes that this hour still allows; None for no limit."""
        rows, size = self._spent()
        return (max(0, self._rows - rows) if self._rows else None, max(0, self._bytes - size) if self._bytes else None)


class ConnectionRules:
    """The rules of one connection, and what of them is used up.

    Attributes:
        name: The connection.
        type: Its database type.
        hosts: The addresses whose hosts errors do not name; empty if the rules allow it.
        power: What agents may do.
        allowance: What this hour still allows.
    """

    def __init__(self, rules: AgentRules, *, name: str, type: str, host: str, power: str) -> None:  # noqa: A002
        self._rules = rules
        self.name, self.type, self.power = name, type, power
        self.hosts = "" if rules.hosts else host
        self.allowance = Allowance(rules)
        self._listed: set[str] = set()

    def check_power(self, power: str) -> None:
        """Refuse a call that needs more than the rules allow.

        Raises:
            Refused: They allow less.
        """
        if POWERS.index(self.power) < POWERS.index(power):
            reason = f"not sent: agents only {self.power} {self.name}"
            raise Refused(reason, code="not-allowed", details={"allow": self.power, "needs": power})

    @property
    def limits_objects(self) -> bool:
        """Whether agents see some objects only."""
        return self._rules.objects != ("*",)

    @property
    def limits_columns(self) -> bool:
        """Whether agents see some columns only."""
        return bool(self._rules.hidden or self._rules.masked) or self._rules.columns != ("*",)

    def sees(self, object_name: str) -> bool:
        """Return whether agents see an object that the server has listed, and remember it."""
        seen = any(matches(object_name, pattern) for pattern in self._rules.objects)
        if seen:
            self._listed.add(object_name)
        return seen

    def is_listed(self, object_name: str) -> bool:
        """Return whether the server has listed an object of that very name, which agents see.

        Only such a name is sent where objects are limited: a server may read others as several objects.
        """
        return object_name in self._listed

    def no_such_object(self, object_name: str) -> ObjectNotFoundError:
        """Return the error about an object that does not exist for agents, whether or not it exists."""
        remedy = Remedy(RemedyKind.LIST_OBJECTS, {"connection": self.name})
        return ObjectNotFoundError(f"{quoted(object_name[:200])} does not exist", remedies=[remedy])

    def hides(self, column: Column) -> bool:
        """Return whether a column does not exist for agents."""
        return self.hides_name(column.name, holds=column.kind in _CONTAINERS)

    def hides_name(self, name: str, *, holds: bool = False) -> bool:
        """Return whether a column of that name does not exist for agents; `holds`: it contains others."""
        return not any(matches(name, pattern) for pattern in self._rules.columns) or _covers(
            self._rules.hidden, name, holds=holds
        )

    def masks(self, column: Column) -> bool:
        """Return whether agents do not see the values of a column."""
        return _covers(self._rules.masked, column.name, holds=column.kind in _CONTAINERS)

    def check_columns(self, names: Iterable[str], columns: Sequence[Column], *, readable: bool = True) -> None:
        """Refuse columns that do not exist for agents or, where their values matter, that are masked.

        Args:
            names: What a call names.
            columns: The columns of the object.
            readable: The call depends on their values, as a filter does.

        Raises:
            DriverError: A column does not exist for agents (code ``column-unknown``).
            Refused: A column is masked.
        """
        by_name = {column.name: column for column in columns if not self.hides(column)}
        for name in names:
            column = by_name.get(name)
            if column is None:
                reason = f"there is no column {quoted(name[:200])}"
                raise DriverError(reason, code="column-unknown", details={"column": name[:200]})
            if readable and self.masks(column):
                reason = f"the values of {quoted(name)} are masked for agents, so nothing can depend on them"
                raise Refused(reason, code="column-masked", details={"column": name})

    def check_span(self, description: Description) -> None:
        """Refuse a choice of rows by time, if the time column does not exist for agents or is masked.

        Raises:
            UnsupportedOperationError: It does not exist for them.
            Refused: It is masked.
        """
        if description.time is None or not self.hides_name(description.time.column):
            self.check_columns([description.time.column] if description.time else (), description.columns)
            return
        reason = f"the rows of {quoted(description.object)} cannot be chosen by time"
        raise UnsupportedOperationError(reason, hint="use a filter on a column")

    def check_requests(self, requests: Iterable[HttpRequest], columns: Sequence[Column], *, keyed: bool) -> None:
        """Refuse requests of a plan that hold what agents do not see: a driver may have to write a row as a whole.

        An agent can set no such column, so a request that names one has its value from the stored row.

        Args:
            requests: The requests.
            columns: The columns of the object.
            keyed: They name a row that is stored, by its key.

        Raises:
            Refused: A request names a column that does not exist for agents or is masked, or cannot be read.
        """
        readable = {
            column.name: column.is_key or column.role is Role.SERVER or not (self.hides(column) or self.masks(column))
            for column in columns
        }
        patterns = (*self._rules.hidden, *self._rules.masked)
        if keyed and any(_covers(patterns, column.name, holds=False) for column in columns if column.is_key):
            raise Refused("a change names its row by a key that is hidden from agents", code="not-allowed")

        def is_shown(path: tuple[str, ...]) -> bool:
            for start in range(len(path)):  # what a driver puts around a row is no part of a column's name
                name = ".".join(path[start:])
                if name in readable or _covers(patterns, name, holds=False):
                    return readable.get(name, False)
            return True

        for request in requests:
            try:
                harmless = all(map(is_shown, _member_paths(request.body or "")))
            except (ValueError, RecursionError):
                harmless = False
            if not harmless:
                reason = "the change would write the row as a whole, with what is hidden from agents; it is not planned"
                raise Refused(
                    reason, code="not-allowed", hint="change other columns, or spell numbers as they are read"
                )

    def check_raw(self, what_for: str) -> None:
        """Refuse the server's own syntax, if some columns or objects do not exist for agents.

        It names columns, and may look values up in other objects (a ``terms`` query of Elasticsearch, a join of Solr).

        Raises:
            Refused: They are limited.
        """
        if self.limits_columns or self.limits_objects:
            reason = f"{what_for} could name what is hidden from agents; nothing was sent"
            raise Refused(reason, code="not-allowed", hint="use filter rows")

    def check_console(self, requests: Sequence[ConsoleRequest]) -> None:
        """Refuse requests of a console that agents may not send.

        Raises:
            Refused: Objects or columns are limited; a rule forbids a request; or one may write, and agents may not.
        """
        if self.limits_objects or self.limits_columns:
            reason = f"the console could name what is hidden from agents on {self.name}; nothing was sent"
            raise Refused(reason, code="not-allowed", hint="use read_rows")
        for request in requests:
            sent, forbidden = request.request, self._rules.console_forbidden
            if forbidden and (not _is_plain(sent) or _is_listed(forbidden, sent)):
                what_for = quoted(f"{sent.method} {sent.path}"[:200])
                reason = f"a rule of {self.name} forbids {what_for} to agents; nothing was sent"
                raise Refused(reason, code="not-allowed")
        if not all(map(self.reads, requests)):
            self.check_power("write")

    def reads(self, request: ConsoleRequest) -> bool:
        """Return whether a console request only reads: driver and host agree on it, or the owner says so."""
        sent = request.request
        if _is_listed(self._rules.console_reads, sent) and _is_plain(sent):
            return not _keeps(sent) and _body_reads(sent)
        return not request.writes and surely_reads(sent, database=self.type)

    def rows_for(self, wanted_rows: int) -> int:
        """Return how many rows an answer may have.

        Raises:
            Refused: This hour allows no more (code ``limit-exceeded``).
        """
        left, _ = self._left()
        limits = [limit for limit in (self._rules.rows or None, left, wanted_rows) if limit is not None]
        return min(limits)

    def bytes_for(self) -> int:
        """Return how many bytes an answer may have.

        Raises:
            Refused: This hour allows no more (code ``limit-exceeded``).
        """
        _, left = self._left()
        return min(limit for limit in (self._rules.bytes or None, left, 1 << 40) if limit is not None)

    def check_left(self, rows: int) -> None:
        """Refuse an answer with rows that this hour no longer allows, since other calls were answered meanwhile.

        Raises:
            Refused: This hour allows fewer (code ``limit-exceeded``).
        """
        if not rows:
            return
        left, _ = self._left()
        if left is not None and rows > left:
            reason = f"other calls read rows of {self.name} meanwhile, and one hour allows {left:,} more"
            raise Refused(reason, code="limit-exceeded", hint="ask for fewer rows")

    def _left(self) -> tuple[int | None, int | None]:
        rows, size = self.allowance.left()
        for left, unit in ((rows, "rows"), (size, "bytes")):
            if left == 0:
                reason = f"agents have read all {unit} of {self.name} that one hour allows"
                raise Refused(reason, code="limit-exceeded", hint="ask for counts and summaries, or wait")
        return rows, size


def rules_of(runtime: Runtime, *, names: Sequence[str], power: str | None) -> dict[str, ConnectionRules]:
    """Return the rules of every connection that agents may use. Blocks.

    Args:
        runtime: Where connections and settings are.
        names: The connections that the command line names; empty for those of `config.toml`.
        power: What the command line allows at most; None for what `config.toml` says, or ``read``.

    Raises:
        ConfigurationError: There is no such connection, or there are none.
    """
    settings = {
        name: connection.agents
        for name, connection in runtime.settings.connections.items()
        if connection.agents is not None
    }
    saved = {name: runtime.connections.get(name) for name in {*names, *settings}}
    if not saved:
        hint = "dragoman mcp --connection NAME, or [connections.NAME.agents] in config.toml"
        raise ConfigurationError("no connection is named that agents may use", hint=hint)
    rules: dict[str, ConnectionRules] = {}
    for name in names or sorted(settings):
        connection = saved[name]
        of_file = settings.get(name)
        limits = [level for level in (of_file.allow if of_file else None, power) if level is not None]
        rules[name] = ConnectionRules(
            of_file or AgentRules(),
            name=name,
            type=connection.type,
            host=" ".join(str(connection.values.get(name, "")) for name in _ADDRESSES),
            power=min(limits, key=POWERS.index, default="read"),
        )
    return rules


# Which console requests the host itself can show to be reads, whatever a driver says of them. A list of what reads, and
# nothing else: a request that it does not know may write. Method and path decide, as written: no path with a percent
# sign, which a server decodes, is in it. The endpoints are those of the manuals of Elasticsearch 7 to 9, OpenSearch 1
# to 3, and Weaviate 1.

_INDEX = r"(?:/[a-z0-9.*][a-z0-9.,*-]*)?"
_SEARCH = (
    rf"{_INDEX}/_(?:search|count|mapping|mappings|settings|alias|stats|field_caps)",
    r"/[a-z0-9.][a-z0-9.-]*/_(?:doc|source)/[A-Za-z0-9.-]+",
    r"/|/[a-z0-9.][a-z0-9.-]*|/_cat/[a-z]+(?:/[a-z0-9.*-]+)?|/_cluster/health",
)
_SEARCH_POST = (rf"{_INDEX}/_(?:search|count|field_caps)",)
_GETS = {
    "elasticsearch": _SEARCH,
    "opensearch": _SEARCH,
    "weaviate": (r"/v1/(?:meta|schema|objects|nodes)(?:/[A-Za-z0-9_-]+)*",),
}
_POSTS = {"elasticsearch": _SEARCH_POST, "opensearch": _SEARCH_POST, "weaviate": (r"/v1/graphql",)}
_HOLDING = frozenset({"scroll", "preference", "source_content_type"})
"""Parameters with which a read keeps something on the server, or is read in another way."""
_TEXT = re.compile(r'"""(?:[^\\"]|\\.|"(?!"")|)*+(""")?|"(?:[^"\\\n]|\\.)*+(")?|(#)[^\n]*', re.DOTALL)
"""A text or a comment of GraphQL. One that is not closed is read once, to its end, and has no group."""
_GRAPHQL = re.compile(r"\s*(?:query\b[^{]*)?\{")


def surely_reads(request: HttpRequest, *, database: str) -> bool:
    """Return whether a request to a database of that type changes nothing, as far as its manual goes.

    >>> from dragoman_api import HttpRequest
    >>> surely_reads(HttpRequest("POST", "/books/_search", "{}"), database="elasticsearch")
    True
    >>> surely_reads(HttpRequest("GET", "/books/%5Fbulk"), database="elasticsearch")
    False
    """
    if _keeps(request):
        return False
    table = _POSTS if request.method == "POST" else _GETS if request.method in ("GET", "HEAD") else {}
    path = request.path.partition("?")[0]
    return any(re.fullmatch(pattern, path) for pattern in table.get(database, ())) and _body_reads(request)


def _keeps(request: HttpRequest) -> bool:
    """Return whether a parameter makes the server keep something, or may do so under another spelling."""
    query = request.path.partition("?")[2]
    names = {parameter.partition("=")[0] for parameter in re.split("[&;]", query)}  # Elasticsearch splits at both
    return any("%" in name for name in names) or bool(names & _HOLDING)


def _body_reads(request: HttpRequest) -> bool:
    """Return whether a request of GraphQL holds a query alone; True for all other requests."""
    return not request.path.partition("?")[0].endswith("/graphql") or _is_query(request.body or "")


def _is_plain(request: HttpRequest) -> bool:
    """Return whether a path has one spelling only: no server reads it as another path.

    A request has no path with other characters than printable ASCII, and none that begins with two slashes.
    """
    path = request.path.partition("?")[0]
    return not {*path} & {*"%;"} and not {*path.removesuffix("/").split("/")[1:]} & {"", ".", ".."}


def _is_listed(patterns: Iterable[str], request: HttpRequest) -> bool:
    """Return whether a request is one of those that a rule of the file lists.

    >>> from dragoman_api import HttpRequest
    >>> [_is_listed(["GET /a/*"], HttpRequest("GET", path)) for path in ("/a/b?c=d", "/a/b/", "/a/b/c")]
    [True, True, False]
    """
    path = request.path.partition("?")[0]
    path = path.removesuffix("/") or "/"
    for pattern in patterns:
        method, _, path_pattern = pattern.partition(" ")
        regex = re.escape(path_pattern).replace(r"\*\*", ".*").replace(r"\*", "[^/]*")
        if method in ("*", request.method.upper()) and re.fullmatch(regex, path, re.DOTALL):
            return True
    return False


def _member_paths(body: str) -> Iterator[tuple[str, ...]]:
    """Yield the paths of all members of JSON values, one a line or alone. Raises ValueError if they are none."""
    try:
        values = [json.loads(body)] if body else []
    except ValueError:
        values = [json.loads(line) for line in body.splitlines() if line.strip()]
    pending: list[tuple[tuple[str, ...], Any]] = [((), value) for value in values]
    while pending:
        around, value = pending.pop()
        if isinstance(value, list):
            pending += [(around, item) for item in value]
        elif isinstance(value, dict):
            for name, item in value.items():
                path = (*around, name)
                yield path
                pending.append((path, item))


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the members of an object. Raises ValueError if one is there twice."""
    if len(members := dict(pairs)) < len(pairs):
        raise ValueError("a member twice")
    return members


def _is_query(body: str) -> bool:
    """Return whether the body of a GraphQL request holds one query and no other operation."""
    try:
        document = json.loads(body, object_pairs_hook=_members)
    except (ValueError, RecursionError):
        return False
    # A server written in Go takes `Query` for `query`, and the last of two.
    if not isinstance(document, dict) or document.keys() - {"query", "variables", "operationName"}:
        return False
    text = document.get("query")
    if not isinstance(text, str):
        return False
    code = _TEXT.sub(lambda match: " " if match.lastindex else '"', text)
    return '"' not in code and bool(_GRAPHQL.match(code)) and not re.search(r"\b(?:mutation|subscription)\b", code)
