"""Parses untrusted versions, ranges, requirements, tags, wheel names and METADATA, after checking their size.

packaging's parsers recurse, backtrack and multiply out without bounds. No other module of the host calls them, so no
text from a wheel or an index reaches them unchecked.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple

from dragoman_registry.names import PROJECT, VERSION, WHEEL
from dragoman_registry.validation import Unreadable as Unreadable

if TYPE_CHECKING:
    from email.message import Message

    from packaging.requirements import Requirement
    from packaging.specifiers import SpecifierSet
    from packaging.version import Version

MAX_VERSION = 128
"""Maximum characters of a version, or of a project's name."""

MAX_RANGE = 1_024
"""Maximum characters of a version range or a licence expression."""

MAX_CLAUSES = 64
"""Maximum commas in a range; each clause adds to the cost of evaluating it."""

MAX_DIGITS = 64
"""Maximum consecutive digits; Python itself refuses a few thousand."""

MAX_REQUIREMENT = 4_096
"""Maximum characters of a requirement with its marker."""

MAX_REQUIREMENTS = 100_000
"""Maximum characters of all requirements of one wheel, with their markers."""

MAX_PARENTHESES = 32
"""Maximum opening parentheses in one text, which bounds its depth; each level uses the parser's stack."""

MAX_NAME = 255
"""Maximum characters of a wheel's file name, as in most file systems."""

MAX_TAGS = 1_024
"""Maximum tags of one file name or one WHEEL after expanding its compressed sets."""

MAX_HEADERS = 2_000
"""Maximum headers of METADATA or WHEEL; readers search all of them for each name."""

_NUMBERS = re.compile(r"(?:0|[1-9][0-9]{0,8})(?:\.(?:0|[1-9][0-9]{0,8})){0,9}")
"""Versions that are already written as packaging would write them."""
_DIGITS = re.compile(rf"[0-9]{{{MAX_DIGITS + 1}}}")
_MIME = re.compile(r"content-type|content-transfer-encoding|mime-version")
_HEADERS = {
    "name": MAX_VERSION, "version": MAX_VERSION, "metadata-version": MAX_VERSION, "requires-python": MAX_RANGE,
    "requires-dist": MAX_REQUIREMENT, "license-expression": MAX_RANGE, "description-content-type": MAX_RANGE,
}  # fmt: skip
"""Maps each header that some reader parses to its maximum number of characters."""


def _measure(text: str, kind: str, longest: int) -> None:
    """Refuse a text that is too large for a parser."""
    many = f"{text[:40]!r}… cannot be read as {kind}: "
    if len(text) > longest:
        raise Unreadable(f"{many}it has {len(text)} characters; {longest} are allowed")
    if _DIGITS.search(text):
        raise Unreadable(f"{many}it has a number with more than {MAX_DIGITS} digits")
    for sign, name, limit in (("(", "parentheses", MAX_PARENTHESES), (",", "clauses", MAX_CLAUSES)):
        if (count := text.count(sign)) > limit:
            raise Unreadable(f"{many}it has {count} {name}; {limit} are allowed")


def project_name(text: str) -> str:
    """Return a project's name in its canonical spelling, which is used for comparison.

    >>> project_name("Dragoman_.Demo")
    'dragoman-demo'
    """
    return re.sub(r"[-_.]+", "-", text).lower()


def parse_version(text: str) -> Version:
    """Read a version. Raises Unreadable."""
    from packaging.version import InvalidVersion, Version

    _measure(text, "a version", MAX_VERSION)
    try:
        return Version(text)
    except InvalidVersion as error:
        raise Unreadable(f"{text!r} is not a version") from error


def parse_range(text: str) -> SpecifierSet:
    """Read a range of versions; an empty text is any version. Raises Unreadable."""
    from packaging.specifiers import InvalidSpecifier, SpecifierSet

    _measure(text, "a version range", MAX_RANGE)
    if "===" in text:
        raise Unreadable(f"{text!r} is not a version range: === is not allowed")
    try:
        return SpecifierSet(text)
    except InvalidSpecifier as error:
        raise Unreadable(f"{text!r} is not a version range") from error


def holds(text: str, version: str) -> bool:
    """Check whether a range includes a version; pre-releases count. Raises Unreadable.

    >>> holds(">=3.11,<4", "3.12.1"), holds("~=1.0", "2.0")
    (True, False)
    """
    return parse_range(text).contains(parse_version(version), prereleases=True)


def parse_requirement(text: str) -> Requirement:
    """Read a requirement. Raises Unreadable."""
    from packaging.requirements import Requirement

    _measure(text, "a requirement", MAX_REQUIREMENT)
    try:
        requirement = Requirement(text)
        str(requirement)  # fails for a value with both kinds of quotes
    except (ValueError, RecursionError) as error:
        reason = str(error).partition("\n")[0]
        raise Unreadable(f"{text[:200]!r} is not a requirement: {reason}") from error
    return requirement


def needed(requirement: Requirement) -> bool:
    """Check whether a requirement applies to a plain install on some platform, without extras.

    >>> needed(parse_requirement('x; extra == "test"')), needed(parse_requirement('x; os_name == "nt"'))
    (False, True)
    """
    marker = requirement.marker
    return marker is None or _possible(marker._markers)  # noqa: SLF001 - packaging has no public access to the parts


def _possible(marker: object) -> bool:
    """Check whether a parsed marker can be true if no `extra == "…"` is; "and" binds closer than "or"."""
    if isinstance(marker, tuple):
        left, comparison, right = (term.serialize() for term in marker)
        return comparison != "==" or "extra" not in (left, right) or {left, right} <= {"extra", '""'}
    assert isinstance(marker, list)
    groups: list[list[bool]] = [[]]
    for term in marker:
        if term == "or":
            groups.append([])
        elif term != "and":
            groups[-1].append(_possible(term))
    return any(map(all, groups))


@lru_cache(maxsize=1024)  # thousands of wheels share a few
def parse_tags(text: str) -> frozenset[str]:
    """Read the compressed tags at the end of a wheel's name, or of a line of WHEEL. Raises Unreadable."""
    from packaging.tags import parse_tag

    if len(text) > MAX_NAME or prod(part.count(".") + 1 for part in text.split("-")) > MAX_TAGS:
        raise Unreadable(f"{text[:40]!r}… expands to too many tags")
    try:
        return frozenset(map(str, parse_tag(text)))
    except ValueError as error:
        raise Unreadable(f"{text!r} is not a wheel tag") from error


@dataclass(frozen=True, slots=True)
class WheelNameParts:
    """The parts of a wheel's file name, and whether its spelling is canonical.

    Attributes:
        stem: Project and version as written.
    """

    project: str
    version: str
    tags: frozenset[str]
    canonical: bool
    stem: str


def parse_wheel_name(file: str) -> WheelNameParts:
    """Read the parts of a wheel's file name. Raises Unreadable."""
    from packaging.utils import InvalidWheelFilename, parse_wheel_filename

    _measure(file, "a wheel file name", MAX_NAME)
    if file.endswith(".whl"):
        parse_tags("-".join(file.removesuffix(".whl").split("-")[-3:]))
    try:
        name, number, _, tags = parse_wheel_filename(file)
    except InvalidWheelFilename as error:
        raise Unreadable(str(error)) from error
    project, version = str(name), str(number)
    parse_version(version)
    canonical = file.startswith(f"{project.replace('-', '_')}-{version}-") and all(
        kind.fits(text) for kind, text in ((WHEEL, file), (PROJECT, project), (VERSION, version))
    )
    return WheelNameParts(project, version, frozenset(map(str, tags)), canonical, "-".join(file.split("-")[:2]))


def is_wheel_of(file: str, *, project: str, version: str) -> bool:
    """Check whether a file name is that of a wheel of this release. Raises Unreadable if it is not that of a wheel."""
    head = f"{project.replace('-', '_')}-{version}-"
    if file.startswith(head) and _NUMBERS.fullmatch(version) and PROJECT.fits(project) and WHEEL.fits(file):
        tags = file[len(head) : -len(".whl")]
        if tags.count("-") == 2:  # the usual spelling, without a build number, needs no parser
            return bool(parse_tags(tags))
    name = parse_wheel_name(file)
    return (name.project, name.version) == (project, version)


def rank_wheel(file: str, tags: tuple[str, ...]) -> int | None:
    """Return how well a wheel fits: 0 for best, None if it does not fit. Raises Unreadable."""
    wheel_tags = parse_wheel_name(file).tags
    return next((index for index, tag in enumerate(tags) if tag in wheel_tags), None)


def is_licence(text: str) -> bool:
    """Check whether a text is an SPDX licence expression."""
    from packaging.licenses import InvalidLicenseExpression, canonicalize_license_expression

    try:
        _measure(text, "a licence", MAX_RANGE)
        canonicalize_license_expression(text)
    except (InvalidLicenseExpression, Unreadable, RecursionError):
        return False
    return True


def parse_headers(text: str) -> Message:
    """Read the headers of METADATA or WHEEL without a body that follows. Raises Unreadable."""
    from email.parser import HeaderParser

    headers = HeaderParser().parsestr(text)
    if len(headers) > MAX_HEADERS:
        raise Unreadable(f"it has {len(headers)} headers; {MAX_HEADERS} are allowed")
    if mime := next((name for name in headers if _MIME.fullmatch(name.lower())), ""):
        # With this header a mail parser would split the body into nested parts.
        raise Unreadable(f"it has the mail header {mime}")
    if (long := sum(map(len, map(str, headers.get_all("Requires-Dist", ()))))) > MAX_REQUIREMENTS:
        raise Unreadable(f"its requirements have {long} characters; {MAX_REQUIREMENTS} are allowed")
    for name, value in headers.items():
        if name.lower() in _HEADERS:
            _measure(str(value), name, _HEADERS[name.lower()])
    return headers


class Metadata(NamedTuple):
    """The fields of METADATA that are used.

    Attributes:
        requires_python: Range of Python versions, empty for any.
        requires: Requirements that apply without an extra, on any platform.
    """

    name: str
    version: str
    requires_python: str
    requires: tuple[Requirement, ...]
    summary: str
    description: str


def parse_metadata(text: str, *, strict: bool) -> tuple[Metadata | None, list[str]]:
    """Read METADATA.

    Args:
        text: The whole file.
        strict: Check every field; otherwise only those that are used, since many build tools are lax.

    Returns:
        The metadata, or None if it cannot be read; and its faults.
    """
    from packaging.metadata import Metadata as Parsed
    from packaging.metadata import parse_email

    try:
        parse_headers(text)
    except Unreadable as error:
        return None, [f"METADATA: {error}."]
    faults: list[str] = []
    if strict:
        try:
            Parsed.from_email(text)
        except ExceptionGroup as group:
            faults += [f"METADATA, {getattr(error, 'field', 'a field')}: {error}." for error in group.exceptions]
    elif unread := sorted({"name", "version", "requires-python"} & parse_email(text)[1].keys()):
        faults.append(f"METADATA has conflicting values for {', '.join(unread)}.")
    try:
        return _used(Parsed.from_email(text, validate=False)), faults
    except (ExceptionGroup, ValueError, RecursionError) as error:
        return None, [*faults, f"METADATA: {error}."]


def _used(metadata: Any) -> Metadata:
    return Metadata(
        name=str(metadata.name),
        version=str(metadata.version),
        requires_python=str(parse_range(str(metadata.requires_python or ""))),
        requires=tuple(filter(needed, metadata.requires_dist or ())),
        summary=metadata.summary or "",
        description=metadata.description or "",
    )
