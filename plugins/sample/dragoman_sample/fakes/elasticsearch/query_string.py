"""A subset of the query-string syntax: words, phrases, fields, ranges, wildcards, operators and parentheses."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from dragoman_sample.fakes.elasticsearch import queries
from dragoman_sample.fakes.elasticsearch.errors import ServerError, not_reproduced

if TYPE_CHECKING:
    from collections.abc import Callable

    from dragoman_sample.fakes.elasticsearch.queries import Clause, Scope

_TOKENS = re.compile(
    r"(?P<space>[\s　]+)"
    r"|(?P<and>AND\b|&&)|(?P<or>OR\b|\|\|)|(?P<not>NOT\b|!)"
    r'|(?P<quoted>"(?:\\.|[^"\\])*")'
    r"|(?P<range>(?P<open>[\[{])\s*(?P<low>\"(?:\\.|[^\"])*\"|[^\s\]}]+)\s+TO\s+(?P<high>\"(?:\\.|[^\"])*\"|[^\s\]}]+)\s*(?P<close>[\]}]))"
    r"|(?P<compare>(?P<sign>[<>]=?)\s*(?P<bound>\"(?:\\.|[^\"])*\"|[^\s()]+))"
    r"|(?P<regexp>/(?:\\.|[^/\\])*/)"
    r"|(?P<boost>\^\d+(?:\.\d+)?)|(?P<fuzzy>~\d*(?:\.\d+)?)"
    r"|(?P<mark>[+\-():])"
    r'|(?P<term>(?:\\.|[^\s"+\-!(){}\[\]^~:\\/])(?:\\.|[^\s"!(){}\[\]^~:\\/])*)',
    re.DOTALL,
)
_AFTER_MULTI = {":", "boost", "fuzzy", "and", "or"}


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str
    at: int
    match: re.Match[str] | None = None


def _syntax(text: str, why: str) -> ServerError:
    reason = f"Cannot parse '{text}': {why}"
    # The parser's message comes wrapped in one that quotes the text.
    inner = ServerError("parse_exception", why, lucene=True)
    return ServerError("parse_exception", reason, caused_by=inner, lucene=True)


def _scan(text: str) -> list[_Token]:
    listed, position = [], 0
    while position < len(text):
        match = _TOKENS.match(text, position)
        if match is None:
            if text[position] in "[{":
                raise _syntax(
                    text, f'Encountered "<EOF>" at line 1, column {len(text)}.\nWas expecting one of:\n    ...'
                )
            raise _syntax(text, f"Lexical error at line 1, column {len(text) + 1}.  Encountered: <EOF>")
        kind = next(name for name in _KINDS if match[name] is not None)
        if kind != "space":
            listed.append(_Token(match[0] if kind == "mark" else kind, match[0], position, match))
        position = match.end()
    return listed


_KINDS = ("space", "and", "or", "not", "quoted", "range", "compare", "regexp", "boost", "fuzzy", "mark", "term")


def build(argument: dict[str, Any], scope: Scope) -> Clause:
    """Compile a query_string clause.

    Raises:
        ServerError: query_shard_exception with a parse_exception inside, for bad syntax.
    """
    text = str(argument.get("query", ""))
    default = argument.get("default_field", "*")
    fields = argument.get("fields") or [default]
    # Asked of all fields, the query is lenient even when it does not say so.
    lenient = bool(argument.get("lenient", fields == ["*"]))
    operator = str(argument.get("default_operator", "OR")).upper()
    try:
        return _Reader(text, scope, fields, operator, lenient=lenient).read()
    except ServerError as fault:
        if fault.kind == "parse_exception" and (fault.reason or "").startswith("Cannot parse"):
            raise scope.error(f"Failed to parse query [{text}]", fault) from None
        raise


def _unescaped(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text, flags=re.DOTALL)


Modifier = Literal["none", "must", "not"]


class _Reader:
    """A recursive-descent reader of one query text."""

    def __init__(self, text: str, scope: Scope, fields: list[str], operator: str, *, lenient: bool) -> None:
        self.text, self.scope, self.lenient, self.operator = text, scope, lenient, operator
        self.fields = fields
        self.tokens = _scan(text)
        self.at = 0

    def peek(self, ahead: int = 0) -> str:
        at = self.at + ahead
        return self.tokens[at].kind if at < len(self.tokens) else "end"

    def take(self) -> _Token:
        self.at += 1
        return self.tokens[self.at - 1]

    def unexpected(self) -> ServerError:
        if self.peek() == "end":
            place = f'"<EOF>" at line 1, column {len(self.text)}'
        else:
            token = self.tokens[self.at]
            name = f"<{token.kind.upper()}> " if token.kind in ("and", "or", "not", "term") else f'"{token.text}" '
            place = f'" {name}"{token.text} "" at line 1, column {token.at}'
        return _syntax(self.text, f"Encountered {place}.\nWas expecting one of:\n    ...")

    def read(self) -> Clause:
        if not self.tokens:
            return queries.NONE
        clause = self.query(self.fields)
        if self.peek() != "end":
            raise self.unexpected()
        return clause

    def query(self, fields: list[str]) -> Clause:
        clauses: list[tuple[Modifier, Clause]] = []
        first = True
        while first or self.peek() not in ("end", ")"):
            conjunction = "none"
            if not first and self.peek() in ("and", "or"):
                conjunction = self.take().kind
            modifier: Modifier = "none"
            if self.peek() in ("+", "-", "not"):
                modifier = "must" if self.take().kind == "+" else "not"
            if modifier == "none" and conjunction == "none" and self.is_multi():
                clause = self.multi(fields)
            else:
                clause = self.clause(fields)
            if conjunction == "and" and clauses and clauses[-1][0] == "none":
                clauses[-1] = ("must", clauses[-1][1])
            if self.operator == "AND" and conjunction == "or" and clauses and clauses[-1][0] == "must":
                clauses[-1] = ("none", clauses[-1][1])
            if modifier == "none" and (conjunction == "and" or (self.operator == "AND" and conjunction != "or")):
                modifier = "must"
            clauses.append((modifier, clause))
            first = False
        return self.joined(clauses)

    def joined(self, clauses: list[tuple[Modifier, Clause]]) -> Clause:
        if len(clauses) == 1 and clauses[0][0] == "none":
            return clauses[0][1]
        groups = {
            kind: [clause for modifier, clause in clauses if modifier == kind] for kind in ("must", "none", "not")
        }
        combined = queries.join(groups["must"], groups["none"], groups["not"], [])
        text = " ".join(
            {"must": "+", "not": "-", "none": ""}[modifier]
            + (
                f"({clause.text})"
                if " " in clause.text and clause.text[0] not in "(MC" and '"' not in clause.text
                else clause.text
            )
            for modifier, clause in clauses
        )
        return queries.Clause(
            combined.test, combined.score, text + (" #*:*" if not groups["must"] + groups["none"] else "")
        )

    def is_multi(self) -> bool:
        return self.plain() and self.peek(1) == "term" and self.peek(2) not in _AFTER_MULTI and self.plain(1)

    def plain(self, ahead: int = 0) -> bool:
        # A word with a wildcard is never part of a run of words.
        return self.peek(ahead) == "term" and not re.search(r"(?<!\\)[*?]", self.tokens[self.at + ahead].text)

    def multi(self, fields: list[str]) -> Clause:
        words = [self.take().text]
        while self.plain() and self.peek(1) not in _AFTER_MULTI:
            words.append(self.take().text)
        return self.across(fields, lambda path: self.words(path, _unescaped(" ".join(words))))

    def clause(self, fields: list[str]) -> Clause:
        if self.peek() == "term" and self.peek(1) == ":":
            name = _unescaped(self.take().text)
            self.take()
            if name == "_exists_":
                return self.exists(self.word())
            fields = [name]
        if self.peek() == "(":
            self.take()
            if self.peek() in ("end", ")"):
                raise self.unexpected()
            clause = self.query(fields)
            if self.peek() != ")":
                raise self.unexpected()
            self.take()
        else:
            clause = self.leaf(fields)
        if self.peek() == "boost":
            self.take()
        return clause

    def word(self) -> str:
        if self.peek() not in ("term", "quoted"):
            raise self.unexpected()
        return _unescaped(self.take().text.strip('"'))

    def exists(self, path: str) -> Clause:
        clause = queries.build({"exists": {"field": path}}, self.scope)
        return queries.Clause(clause.test, 1.0, f"ConstantScore({clause.text})")

    def leaf(self, fields: list[str]) -> Clause:
        kind = self.peek()
        if kind not in ("term", "quoted", "range", "compare", "regexp"):
            raise self.unexpected()
        token = self.take()
        match = token.match
        assert match is not None
        if kind == "regexp" or self.peek() == "fuzzy":
            raise not_reproduced("regular expressions and fuzzy words in query_string")
        if kind == "range":
            low, high = (_unescaped(match[name].strip('"')) for name in ("low", "high"))
            bounds = {"gte" if match["open"] == "[" else "gt": low, "lte" if match["close"] == "]" else "lt": high}
            return self.across(fields, lambda path: self.range(path, {k: v for k, v in bounds.items() if v != "*"}))
        if kind == "compare":
            key = {"<": "lt", "<=": "lte", ">": "gt", ">=": "gte"}[match["sign"]]
            bound = _unescaped(match["bound"].strip('"'))
            return self.across(fields, lambda path: self.range(path, {key: bound}))
        if kind == "quoted":
            words = _unescaped(token.text[1:-1])
            return self.across(fields, lambda path: queries.phrase_clause(path, words, self.scope))
        if not self._has_wildcard(token.text):
            return self.across(fields, lambda path: self.words(path, _unescaped(token.text)))
        if token.text == "*":
            if fields == self.fields:
                return queries.ALL
            return self.exists(fields[0])
        return self.across(fields, lambda path: self.pattern(path, token.text))

    @staticmethod
    def _has_wildcard(text: str) -> bool:
        return re.search(r"(?<!\\)[*?]", text) is not None

    def words(self, path: str, text: str) -> Clause:
        return queries.build({"match": {path: {"query": text}}}, self.scope)

    def pattern(self, path: str, text: str) -> Clause:
        field = self.scope.field(path)
        body = text[:-1]
        kind = "prefix" if text.endswith("*") and not self._has_wildcard(body) else "wildcard"
        if field is not None and field.family == "text":
            text = text.lower()
        return queries.pattern_clause(kind, path, text, self.scope, fold=False)

    def range(self, path: str, bounds: dict[str, str]) -> Clause:
        clause = queries.build({"range": {path: bounds}}, self.scope)
        return queries.Clause(clause.test, clause.score, f"{path}:{bounds}")

    def across(self, fields: list[str], build_one: Callable[[str], Clause]) -> Clause:
        mapping = self.scope.index.mapping
        everything = fields == ["*"]
        paths = list(mapping.fields) if everything else []
        for name in () if everything else fields:
            bare = name.split("^")[0]
            pattern = re.compile(".*".join(map(re.escape, bare.split("*"))) + r"\Z")
            candidates = [path for path in mapping.fields if pattern.match(path)] if "*" in bare else [bare]
            paths += [path for path in candidates if mapping.field(path) is not None or path in ("_id", "_index")]
        if not paths:
            return queries.Clause(queries.NONE.test, 0.0, f'MatchNoDocsQuery("unmapped fields [{fields[0]}]")')
        clauses = [self.one(path, build_one, lenient=everything or self.lenient) for path in paths]
        if len(clauses) == 1:
            return clauses[0]
        clause = queries.join([], clauses, [], [])
        texts = (f"({c.text})" if " " in c.text and c.text.startswith(f"{p}:") and f" {p}:" in c.text else c.text
                 for p, c in zip(paths, clauses, strict=True))  # fmt: skip
        return queries.Clause(clause.test, 1.0, f"({' | '.join(texts)})")

    def one(self, path: str, build_one: Callable[[str], Clause], *, lenient: bool) -> Clause:
        try:
            return build_one(path)
        except ServerError as fault:
            cause = fault
            if fault.kind == "query_shard_exception" and fault.caused_by is not None:
                cause = fault.caused_by
            if not lenient or fault.kind == "not_reproduced":
                raise
            text = f'MatchNoDocsQuery("failed [{path}] query, caused by {cause.kind}:[{cause.reason}]")'
            return queries.Clause(queries.NONE.test, 0.0, text)
