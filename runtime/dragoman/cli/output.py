"""Output of data and messages: tables, JSON, CSV; texts of a server are made safe for terminals."""

from __future__ import annotations

import base64
import json
import re
import sys
from contextlib import suppress
from decimal import Decimal
from typing import TYPE_CHECKING, Literal, TextIO

from dragoman_api.masking import UNSAFE, escaped

from .advice import advice, lines

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dragoman_api.changes import PlannedRequest
    from dragoman_api.columns import Condition, Note
    from dragoman_api.grid import Page

FORMATS = ("table", "json", "ndjson", "csv", "tsv")
SEPARATED = ("csv", "tsv")
"""Formats of one line per row with a separator between fields."""
GAP = "  "
WIDEST = 32
"""Minimum width of a column on a terminal, in characters, if its values are that long."""
ALIGNED = 400
"""Maximum width of an aligned column; a longer value would pad every row."""
SHOWN_BYTES = 64
"""Maximum number of bytes of a binary value that a table shows."""
NARROWEST = 8
"""Minimum width of a column whose long values wrap."""

_SPECIAL = {",": re.compile(r'[",\r\n]'), "\t": re.compile(r'["\t\r\n]')}
_SHORT = {0x09: "\\t", 0x0A: "\\n", 0x0D: "\\r"}
_VISIBLE = {code: _SHORT.get(code, f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}") for code in UNSAFE}
_IN_TEXT = {code: symbol for code, symbol in _VISIBLE.items() if code not in (0x09, 0x0A)}


def plain(text: str) -> str:
    """Make an untrusted text safe for one line of a terminal: control characters become visible."""
    return text if text.isprintable() else text.translate(_VISIBLE)


def plain_lines(text: str) -> str:
    """Make a text of several lines safe for a terminal."""
    return text.replace("\r\n", "\n").translate(_IN_TEXT)


def write_text(text: str) -> None:
    """Write a server's text as data: unchanged, except for control characters on a terminal."""
    sys.stdout.write((plain_lines(text) if sys.stdout.isatty() else text) + "\n")


def write_markdown(title: str, source: str) -> None:
    """Write an untrusted text under a title: rendered on a terminal, unchanged elsewhere, and always safe."""
    source = plain_lines(source)
    from dragoman_registry.index.release_documents import is_renderable

    if not (sys.stdout.isatty() and is_renderable(source)):
        sys.stdout.write(f"{title}\n\n{source.strip()}\n")
        return
    from rich.console import Console
    from rich.markdown import Markdown
    from rich.rule import Rule

    console = Console()
    console.print(Rule(title, align="left", style="dim"))
    console.print(Markdown(source, hyperlinks=False), width=min(console.width, 100))


def show(value: object) -> str:
    r"""Return a cell as text for a table: null as ``null``, nothing for a field that the row does not hold.

    A text that could be mistaken for either is quoted.

    >>> show(None), show(()), show(""), show("null"), show(" "), show('""'), show("any")
    ('null', '', '""', '"null"', '" "', '"\\"\\""', 'any')
    """
    match value:
        case None:
            return "null"
        case tuple():
            return ""
        case bool():
            return "true" if value else "false"
        case str():
            return plain(_one_line(value)) if _is_json(value, "CutJson") else _show_text(value)
        case bytes():
            return show_bytes(value)
        case list() | dict():
            return plain(dumps(value))
    return str(value)


def _show_text(text: str) -> str:
    quoted = text[:1] == '"' == text[-1:]
    return plain(dumps(text) if quoted or text == "null" or not text.strip() else text)


def show_bytes(value: bytes) -> str:
    r"""Return bytes as readable text of bounded length: printable ASCII as it is, any other byte in hex.

    >>> show_bytes(b"GIF89a"), show_bytes(bytes(200))[-21:]
    ('GIF89a', '\\x00\\x00… (200 bytes)')
    """
    head = value[:SHOWN_BYTES]
    text = "".join(chr(byte) if 0x20 <= byte < 0x7F and byte != 0x5C else f"\\x{byte:02x}" for byte in head)
    if _is_cut_bytes(value):
        return f"{text}..."
    return text if len(value) == len(head) else f"{text}… ({len(value):,} bytes)"


def show_size(size: int | None) -> str:
    """Format a number of bytes for people, in powers of 1000; a hyphen if unknown."""
    if size is None:
        return "-"
    number, unit = float(size), "B"
    for unit in ("B", "kB", "MB", "GB", "TB"):
        if number < 1000 or unit == "TB":
            break
        number /= 1000
    return f"{number:.0f} {unit}" if unit == "B" or number >= 100 else f"{number:.1f} {unit}"


def show_condition(condition: Condition | None) -> str:
    """Format a condition for people: the server's word; a hyphen if unknown."""
    return plain(condition.word) if condition else "-"


def show_count(count: int | None) -> str:
    """Format a number of rows for people; a hyphen if unknown."""
    return "-" if count is None else f"{count:,}"


def show_rows(count: int) -> str:
    """Format a number of rows with the noun."""
    return f"{count:,} row{'' if count == 1 else 's'}"


def _is_json(value: object, *also: str) -> bool:
    # By name, so that plain listings need not import the API's models.
    return type(value).__name__ in ("Json", *also)


def _is_cut_bytes(value: object) -> bool:
    return type(value).__name__ == "CutBytes"


def _one_line(text: str) -> str:
    """Remove line breaks from a JSON text; they occur only as whitespace outside its strings."""
    return text.replace("\r", " ").replace("\n", " ")


def _valid(text: str) -> bool:
    import msgspec

    from dragoman_api.json_text import decode

    try:
        decode(text, msgspec.Raw)
    except ValueError:
        return False
    return True


def base64_of(value: bytes) -> str:
    """Return bytes as base64 text, as JSON and CSV show a cell; the ellipsis of a cut one is not base64."""
    return base64.b64encode(value).decode() + ("..." if _is_cut_bytes(value) else "")


def safe_json(text: str) -> str:
    """Escape the control characters in a JSON text; its value stays the same."""
    return escaped(str(text))


def dumps(value: object) -> str:
    """Write a value as one line of JSON: numbers digit for digit, JSON cells unchanged.

    >>> dumps({"n": Decimal("1.10"), "big": 2**70, "text": "a"})
    '{"n":1.10,"big":1180591620717411303424,"text":"a"}'
    """
    match value:
        case None | bool():
            return json.dumps(value)
        case str() if _is_json(value) and _valid(value):  # a driver's claim is not enough
            return safe_json(_one_line(value))
        case str():
            return safe_json(json.dumps(str(value), ensure_ascii=False))
        case bytes():
            return f'"{base64_of(value)}"'
        case int():
            return str(int(value))
        case Decimal():
            return str(value)
        case float():
            return json.dumps(value) if value - value == 0 else "null"
        case dict():
            return "{" + ",".join(f"{dumps(str(key))}:{dumps(item)}" for key, item in value.items()) + "}"
        case list() | tuple():
            return "[" + ",".join(map(dumps, value)) + "]"
    from dragoman.spellings import plain_document

    return dumps(plain_document(value))


def write_json(value: object, *, out: TextIO | None = None) -> None:
    """Write one JSON document and a line break; on a terminal it is indented."""
    out = out or sys.stdout
    text = dumps(value)
    if out.isatty():
        import msgspec

        with suppress(RecursionError):  # a value nested that deeply stays on one line
            text = msgspec.json.format(text, indent=2)
    out.write(text + "\n")


def write_records(
    records: Sequence[Mapping[str, object]], columns: Sequence[str], *, format: str, escape: bool = False
) -> None:
    """Write rows as newline-delimited JSON, CSV or TSV; report how many cells of the latter begin like a formula.

    In CSV and TSV an empty text is ``""``. Null is an empty field without quotes, and so is a column that a row lacks.
    Without columns, there is neither.
    """
    if format == "ndjson":
        for record in records:
            sys.stdout.write(dumps(record) + "\n")
        return
    if not columns:  # a search that found nothing in an object without a schema
        return
    from dragoman.exports.csv_lines import escaped, formula_notes, is_formula

    safe, formulas = sys.stdout.isatty(), 0
    separator = "\t" if format == "tsv" else ","
    special = _SPECIAL[separator]
    nothing = '""' if len(columns) == 1 else ""  # else the line would be empty, and readers would skip it

    def field(value: object) -> str:
        nonlocal formulas
        if value is None:
            return nothing
        text = str(value) if isinstance(value, str) else base64_of(value) if isinstance(value, bytes) else show(value)
        if isinstance(value, str) and is_formula(text):
            formulas += 1
            text = escaped(text) if escape else text
        text = plain(text) if safe else text
        return '"' + text.replace('"', '""') + '"' if not text or special.search(text) else text

    sys.stdout.write(separator.join(map(field, columns)) + "\n")
    for record in records:
        sys.stdout.write(separator.join([field(record.get(name)) for name in columns]) + "\n")
    say_notes(formula_notes(formulas, escaped=escape))


def write_table(
    head: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    right: Sequence[bool] = (),
    more: str = "use --json",
    wrap: bool = False,
    wide: bool = False,
) -> None:
    """Write a table: aligned with full values, and on a terminal cut to its width.

    Args:
        head: Titles; empty for none.
        rows: Texts that are safe for a terminal.
        right: Which columns are aligned to the right; by default none.
        more: How to see the columns that a terminal has no room for.
        wrap: Wrap long values instead of hiding columns.
        wide: Cut nothing on a terminal, either.
    """
    head, rows = [*map(_encodable, head)], [[*map(_encodable, row)] for row in rows]
    column_count = max(map(len, [head, *rows]))
    head, rows = (
        head and [*head, *[""] * (column_count - len(head))],
        [[*row, *[""] * (column_count - len(row))] for row in rows],
    )
    aligned = list(right) or [False] * column_count
    if sys.stdout.isatty() and not wide:
        _write_rich(head, rows, aligned, more, wrap)
        return
    lines = [head, *rows] if head else rows
    if not lines:
        return
    widths = [min(max(map(width_of, column)), ALIGNED) for column in zip(*lines, strict=True)]
    for line in lines:
        cells = [
            " " * (width - width_of(text)) + text if at_right else text + " " * (width - width_of(text))
            for text, width, at_right in zip(line, widths, aligned, strict=True)
        ]
        sys.stdout.write(GAP.join(cells).rstrip() + "\n")


def _encodable(text: str) -> str:
    """Return a text as stdout will show it: what its encoding lacks is escaped before columns are measured."""
    encoding = sys.stdout.encoding or "ascii"
    if text.isascii() or encoding.lower().startswith("utf"):
        return text
    return text.encode(encoding, "backslashreplace").decode(encoding)


def width_of(text: str) -> int:
    """Return the columns that a text takes on a terminal."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


def _write_rich(
    head: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[bool], hint: str, wrap: bool
) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console()
    columns = list(zip(*([head, *rows] if head else rows), strict=True))
    natural = [max(map(width_of, column)) for column in columns]
    widths = _shrink(columns, console.width) if wrap else fit_columns(natural, console.width)
    column_count = len(widths)
    table = Table(box=None, show_header=bool(head), pad_edge=False, padding=(0, 2, 0, 0))
    for index, width in enumerate(widths):
        title = Text(head[index] if head else "", style="bold")
        side: Literal["left", "right"] = "right" if right[index] else "left"
        overflow: Literal["fold", "ellipsis"] = "fold" if wrap else "ellipsis"
        table.add_column(title, justify=side, no_wrap=not wrap, overflow=overflow, min_width=width, max_width=width)
    cut = 0
    for row in rows:
        cells = row[:column_count] if wrap else [fitted(text, width) for text, width in zip(row, widths, strict=False)]
        cut += sum(cell != text for cell, text in zip(cells, row, strict=False))
        table.add_row(*(Text(text, style="dim" if text == "null" else "") for text in cells))
    console.print(table)
    say_cut(cut)
    if hidden := len(right) - column_count:
        say(f"… {hidden} more {'column' if hidden == 1 else 'columns'}: {hint}")


def fitted(text: str, room: int) -> str:
    """Return a text that takes at most so many columns; an ellipsis marks what is cut.

    >>> fitted("Oolong", 6), fitted("Oolong tea", 6), fitted("x" * 1_000_000, 3), fitted("茶茶茶", 4)
    ('Oolong', 'Oolon…', 'xx…', '茶…')
    """
    if len(text) <= room and width_of(text) <= room:
        return text
    begin = text[: max(room - 1, 0)]
    while begin and width_of(begin) > room - 1:
        begin = begin[:-1]
    return f"{begin}…"


def say_cut(cells: int) -> None:
    """Say how many cells were cut to fit the terminal, if there are any."""
    if cells:
        subject = "1 cell is" if cells == 1 else f"{cells:,} cells are"
        say(f"note[cut-to-fit]: {subject} cut to fit the terminal (…): --wide shows all, --vertical more")


def _shrink(columns: Sequence[Sequence[str]], room: int) -> list[int]:
    """Return widths for all columns, narrowing the widest until they fit; words break last.

    >>> _shrink([["a", "no"], ["any words that are many"], ["unbreakable", "x"]], 30)
    [2, 13, 11]
    """
    widths = [min(max(map(width_of, column)), room) for column in columns]  # a wider value is broken anyway
    words = [max((width_of(word) for text in column for word in text.split()), default=0) for column in columns]
    for least in (words, [NARROWEST] * len(widths)):
        while sum(widths) + len(GAP) * (len(widths) - 1) > room:
            spare = [width - minimum for width, minimum in zip(widths, least, strict=True)]
            if max(spare) <= 0:
                break
            # the widest of those that can be narrower
            widths[max((i for i, left in enumerate(spare) if left > 0), key=widths.__getitem__)] -= 1
    return widths


def fit_columns(natural: Sequence[int], room: int) -> list[int]:
    """Return widths for the columns that fit, the first one whole: cut long columns before hiding any.

    >>> fit_columns([4, 5, 90, 6], 100), fit_columns([4, 90, 90], 60), fit_columns([80], 60)
    ([4, 5, 77, 6], [4, 52], [60])
    """
    widths: list[int] = []
    for width in natural:
        cut_width = min(width, room if not widths else WIDEST)
        if widths and sum(widths) + len(GAP) * len(widths) + cut_width > room:
            break
        widths.append(cut_width)
    spare = room - sum(widths) - len(GAP) * len(widths)
    for index, width in enumerate(widths):
        growth = min(max(spare, 0), natural[index] - width)
        widths[index] += growth
        spare -= growth
    return widths


def say(text: str) -> None:
    """Show a person a message besides the data, on stderr."""
    sys.stderr.write(f"  {plain(text)}\n")
    sys.stderr.flush()


def say_notes(notes: Sequence[Note]) -> None:
    """Show a result's notes, always, since the rows alone would mislead."""
    for note in notes:
        say(f"note[{note.code}]: {f'{note.column}: ' if note.column else ''}{note.reason}")
        for line in advice(note):
            say(f"  {line}")


def say_hint(hint: str, *, indent: str = "") -> None:
    """Show the lines of a hint of the host's own on stderr."""
    for line in lines(hint):
        say(f"{indent}{line}")


def write_page(page: Page, *, format: str, more: str = "use --json", escape: bool = False, wide: bool = False) -> None:
    """Write the rows of a page as a table, newline-delimited JSON, CSV or TSV."""
    names = [column.name for column in page.columns]
    if format == "table":
        numbers = [
            any(isinstance(row[at], int | float | Decimal) for row in page.cells)
            and all(row[at] in (None, ()) or isinstance(row[at], int | float | Decimal) for row in page.cells)
            for at in range(len(names))
        ]
        if names and page.cells:
            rows = [[*map(show, row)] for row in page.cells]
            write_table([plain(name) for name in names], rows, right=numbers, more=more, wide=wide)
        return
    write_records(_records(page), names, format=format, escape=escape)


def _records(page: Page) -> list[dict[str, object]]:
    """Return the rows by column name, without the fields that a row does not hold."""
    names = [column.name for column in page.columns]
    return [
        {name: cell for name, cell in zip(names, row, strict=True) if not isinstance(cell, tuple)} for row in page.cells
    ]


def request_document(planned: PlannedRequest) -> dict[str, object]:
    """Return a planned request as the document that ``--json`` writes, with its statement if it has one."""
    import msgspec

    document: dict[str, object] = msgspec.structs.asdict(planned.request)
    return document | ({"statement": planned.statement} if planned.statement else {})


def write_request(planned: PlannedRequest) -> None:
    """Write a planned request for people, below its statement if it has one."""
    if planned.statement:
        sys.stdout.write(f"# {plain(planned.statement)}\n")
    sys.stdout.write(plain_lines(str(planned.request)).rstrip("\n") + "\n")


def page_document(page: Page) -> dict[str, object]:
    """Return a page as the document that ``--json`` writes."""
    return {
        "columns": [
            {"name": column.name, "type": column.type, "kind": column.kind, "repeated": column.repeated}
            for column in page.columns
        ],
        "rows": _records(page),
        "notes": list(page.notes),
        "total": page.total,
        "total_exact": page.total_exact,
        "offset": page.offset,
        "next": page.next,
        "revision": page.revision,
        "time": page.time,
        "now": page.now,
        "keys": list(page.keys),
    }
