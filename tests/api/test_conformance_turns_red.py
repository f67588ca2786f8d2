"""The conformance tests against drivers that each break one promise: the test that holds the promise turns red."""

from __future__ import annotations

import dataclasses
import inspect
import json
import posixpath
import shlex
from decimal import Decimal
from typing import Any
from urllib.parse import quote

import pytest
from api.test_memory_driver import memory_target, timed_server, vector_server
from msgspec.structs import replace

from dragoman_api.cells import MISSING, CutJson, CutText, Json
from dragoman_api.changes import Delete, Drop, HttpRequest, Insert, Outcome, OutcomeStatus, PlannedRequest, Update
from dragoman_api.columns import Condition, Object, ObjectList, Operator, TimeColumn, Written
from dragoman_api.connections import Health, ServerNode, ServerStatus
from dragoman_api.errors import (
    ConnectionFailedError,
    ConsoleSyntaxError,
    DragomanError,
    FilterNotSupportedError,
    ObjectNotFoundError,
)
from dragoman_api.grid import CellColumns
from dragoman_api.hookspecs import hookimpl
from dragoman_api.remedies import Remedy, RemedyKind
from dragoman_api.testing import DriverConformance
from dragoman_api.testing.conformance.filters import TimeConformance
from dragoman_api.testing.conformance.similar import SimilarConformance
from dragoman_api.testing.target import hooks_of
from memory_driver import MemoryDriver

MANIFEST = {
    "hooks": sorted(hooks_of(MemoryDriver())),
    "capabilities": ["browse", "sort", "filter", "edit", "drop", "console", "export", "raw-filter"],
}
BROKEN: list[tuple[str, type[MemoryDriver]]] = []


def breaks(test: str):
    """Enter a broken driver into the table under the conformance test that has to notice."""

    def enter(driver: type[MemoryDriver]) -> type[MemoryDriver]:
        BROKEN.append((test, driver))
        return driver

    return enter


class Broken(MemoryDriver):
    """A driver whose answers can be spoilt one hook at a time."""

    def column(self, column: Any) -> Any:
        return column

    def page(self, request: Any, page: Any) -> Any:
        return page

    def plan(self, request: Any, plan: Any) -> Any:
        return plan

    def _columns(self):
        return [self.column(column) for column in super()._columns()]

    @hookimpl
    async def fetch_page(self, request):
        return self.page(request, await super().fetch_page(request))

    @hookimpl
    async def plan_change(self, request):
        return self.plan(request, await super().plan_change(request))


# summaries and completion -------------------------------------------------------------------------------------------


class Summaries(MemoryDriver):
    def summary(self, summary: Any) -> Any:
        return summary

    def completion(self, completion: Any) -> Any:
        return completion

    @hookimpl
    async def summarize_column(self, request):
        return self.summary(await super().summarize_column(request))

    @hookimpl
    async def complete_console(self, request):
        return self.completion(await super().complete_console(request))


@breaks("test_a_summary_counts_the_rows_that_pages_show")
class CountsOneRowTooFew(Summaries):
    def summary(self, summary):
        return replace(summary, values=[replace(each, rows=each.rows - 1) for each in summary.values])


@breaks("test_a_summary_counts_the_rows_that_pages_show")
class LosesABucket(Summaries):
    def summary(self, summary):
        return replace(summary, buckets=summary.buckets[1:])


@breaks("test_a_summary_counts_the_rows_that_pages_show")
class ForgetsTheNulls(Summaries):
    def summary(self, summary):
        return replace(summary, missing=0)


@breaks("test_a_summary_goes_by_its_filter")
class SummarizesAllRows(Summaries):
    @hookimpl
    async def summarize_column(self, request):
        return await super().summarize_column(replace(request, filter=None))


@breaks("test_a_summary_has_no_more_than_was_asked_for")
class SummarizesWithoutBound(Summaries):
    @hookimpl
    async def summarize_column(self, request):
        return await super().summarize_column(replace(request, values=10))


@breaks("test_suggestions_replace_characters_of_the_text")
class SuggestsBehindTheText(Summaries):
    def completion(self, completion):
        return replace(completion, suggestions=[replace(each, end=each.end + 1) for each in completion.suggestions])


@breaks("test_the_name_of_the_object_is_completed_and_read_once")
class KnowsNoNames(Summaries):
    def completion(self, completion):
        return replace(completion, suggestions=[])


# objects --------------------------------------------------------------------------------------------------------------


@breaks("test_an_open_connection_is_healthy")
class SaysIll(MemoryDriver):
    @hookimpl
    async def ping(self):
        return Health(ok=False, reason="unwell")


@breaks("test_a_status_names_nodes_once_and_says_what_is_wrong")
class NamesANodeTwice(MemoryDriver):
    @hookimpl
    async def read_status(self):
        return ServerStatus(nodes=[ServerNode(name="a"), ServerNode(name="a")])


@breaks("test_a_status_names_nodes_once_and_says_what_is_wrong")
class SaysNothingOfAState(MemoryDriver):
    @hookimpl
    async def read_status(self):
        return ServerStatus(objects={"books": Condition(" ")})


@breaks("test_objects_are_listed_once_each")
class ListsTwice(MemoryDriver):
    @hookimpl
    async def list_objects(self, request):
        return ObjectList(objects=[*await super().list_objects(request), Object("books")])


@breaks("test_objects_are_listed_once_each")
class MiscountsInTheList(MemoryDriver):
    @hookimpl
    async def list_objects(self, request):
        return ObjectList(objects=[replace(each, rows=24) for each in await super().list_objects(request)])


@breaks("test_parts_of_a_list_of_objects_tile_it")
class LosesObjectsBetweenParts(MemoryDriver):
    @hookimpl
    async def list_objects(self, request):
        return await super().list_objects(replace(request, cursor=request.cursor and str(int(request.cursor) + 1)))


@breaks("test_parts_of_a_list_of_objects_tile_it")
class RepeatsObjectsBetweenParts(MemoryDriver):
    @hookimpl
    async def list_objects(self, request):
        if request.cursor == "1":
            request = replace(request, cursor="0", limit=2)
        return await super().list_objects(request)


@breaks("test_parts_of_a_list_of_objects_tile_it")
class CountsThePartAsTheWhole(MemoryDriver):
    @hookimpl
    async def list_objects(self, request):
        part = await super().list_objects(request)
        return replace(part, total=len(part))


@breaks("test_a_text_selects_names_whatever_their_case_and_counts_select_none")
class SearchesNamesByCase(MemoryDriver):
    @hookimpl
    async def list_objects(self, request):
        part = await super().list_objects(replace(request, contains=""))
        objects = [entry for entry in part if request.contains in entry.name]
        return replace(part, objects=objects, total=len(objects))


@breaks("test_a_text_selects_names_whatever_their_case_and_counts_select_none")
class GivesTheSizeOfTheLevelForASearch(MemoryDriver):
    @hookimpl
    async def list_objects(self, request):
        return await super().list_objects(replace(request, contains=""))


@breaks("test_a_text_selects_names_whatever_their_case_and_counts_select_none")
class ListsNothingWithoutCounts(MemoryDriver):
    @hookimpl
    async def list_objects(self, request):
        part = await super().list_objects(request)
        return part if request.counts else replace(part, objects=[], total=0)


@breaks("test_columns_are_unique_and_one_is_the_key")
class LetsTheKeyBeEdited(Broken):
    def column(self, column):
        return replace(column, written=Written.ALWAYS)


@breaks("test_what_a_column_cannot_do_has_a_reason")
class GivesNoReasons(Broken):
    def column(self, column):
        return replace(column, reasons={})


@breaks("test_a_missing_object_is_told")
class DescribesAnything(MemoryDriver):
    def _fetch(self, name):
        return []


class Misnames(MemoryDriver):
    """A driver that does something to the name of an object on its way to the server."""

    def name_of(self, name: str) -> str:
        return name

    @hookimpl
    async def describe_object(self, name):
        return await super().describe_object(self.name_of(name))


@breaks("test_a_name_is_never_read_as_more_than_a_name")
class PutsNamesIntoPathsAsTheyAre(Misnames):
    def name_of(self, name):
        return name.partition("?")[0].partition("#")[0]


@breaks("test_a_name_is_never_read_as_more_than_a_name")
class StripsNames(Misnames):
    def name_of(self, name):
        return name.strip()


@breaks("test_a_name_is_never_read_as_more_than_a_name")
class GoesUpTheTree(Misnames):
    def name_of(self, name):
        return posixpath.normpath(f"/{name}").lstrip("/")


class Advises(MemoryDriver):
    @hookimpl
    async def describe_object(self, name):
        try:
            return await super().describe_object(name)
        except ObjectNotFoundError as error:
            self.advise(error, name)
            raise


@breaks("test_remedies_name_things_as_the_server_spells_them")
class QuotesTheNameInARemedy(Advises):
    def advise(self, error, name):
        error.remedies = (Remedy(RemedyKind.OPEN_OBJECT, {"object": shlex.quote(name)}),)


@breaks("test_remedies_name_things_as_the_server_spells_them")
class EscapesTheNameInARemedy(Advises):
    def advise(self, error, name):
        error.remedies = (Remedy(RemedyKind.OPEN_OBJECT, {"object": quote(name)}),)


@breaks("test_remedies_name_things_as_the_server_spells_them")
class WritesACommandAsAHint(Advises):
    def advise(self, error, name):
        error.hint = f"dragoman page shop {name}"


@breaks("test_remedies_name_things_as_the_server_spells_them")
class InventsAKindOfRemedy(Advises):
    def advise(self, error, name):
        error.remedies = (Remedy("create-object", {"object": name}),)


# the manifest ---------------------------------------------------------------------------------------------------------


@breaks("test_the_manifest_says_what_the_driver_does")
class ClaimsAHookThatItLacks(MemoryDriver):
    manifest = MANIFEST | {"hooks": [*MANIFEST["hooks"], "similar"]}


@breaks("test_the_manifest_says_what_the_driver_does")
class KeepsAHookToItself(MemoryDriver):
    manifest = MANIFEST | {"hooks": MANIFEST["hooks"][1:]}


@breaks("test_the_manifest_says_what_the_driver_does")
class ClaimsASortThatItLacks(MemoryDriver):
    manifest = MANIFEST

    def _columns(self):
        return [replace(column, sortable=False, reasons={"sort": "no"}) for column in super()._columns()]


@breaks("test_the_manifest_says_what_the_driver_does")
class KeepsItsConsoleToItself(MemoryDriver):
    manifest = MANIFEST | {"capabilities": [name for name in MANIFEST["capabilities"] if name != "console"]}


@breaks("test_the_manifest_says_what_the_driver_does")
class ClaimsADropThatItRefuses(Broken):
    manifest = MANIFEST

    def plan(self, request, plan):
        return replace(plan, planned=[]) if isinstance(request.changes[0], Drop) else plan


def claiming(name: str) -> dict[str, Any]:
    return MANIFEST | {"capabilities": [*MANIFEST["capabilities"], name]}


@breaks("test_each_further_capability_is_shown_by_a_call")
class ClaimsNonsense(MemoryDriver):
    manifest = claiming("teleport")


@breaks("test_each_further_capability_is_shown_by_a_call")
class ClaimsTenantsThatItIgnores(MemoryDriver):
    manifest = claiming("tenants")


@breaks("test_each_further_capability_is_shown_by_a_call")
class ClaimsATimeThatItLacks(MemoryDriver):
    manifest = claiming("time-range")


@breaks("test_each_further_capability_is_shown_by_a_call")
class ClaimsRevisionsThatItIgnores(MemoryDriver):
    manifest = claiming("revisions")

    @hookimpl
    async def fetch_page(self, request):
        return await super().fetch_page(replace(request, revision=""))


@breaks("test_each_further_capability_is_shown_by_a_call")
class StatesNoRevision(MemoryDriver):
    manifest = claiming("revisions")

    @hookimpl
    async def fetch_page(self, request):
        return replace(await super().fetch_page(request), revision="")


@breaks("test_each_further_capability_is_shown_by_a_call")
class ClaimsARawFilterThatItRefuses(MemoryDriver):
    manifest = claiming("raw-filter")

    @hookimpl
    async def compile_filter(self, request):
        raise FilterNotSupportedError("there is no such row")


@breaks("test_each_further_capability_is_shown_by_a_call")
class KeepsItsRawFilterToItself(MemoryDriver):
    manifest = MANIFEST | {"capabilities": [name for name in MANIFEST["capabilities"] if name != "raw-filter"]}


# grid -----------------------------------------------------------------------------------------------------------------


@breaks("test_a_page_has_every_described_column")
class DropsAColumn(Broken):
    def page(self, request, page):
        return replace(page, columns=page.columns[:-1], cells=[row[:-1] for row in page.cells])


@breaks("test_cells_match_columns_and_keys_match_rows")
class LosesACell(Broken):
    def page(self, request, page):
        return replace(page, cells=[row[:-1] for row in page.cells])


@breaks("test_cells_match_columns_and_keys_match_rows")
class ShiftsTheKeys(Broken):
    def page(self, request, page):
        return replace(page, keys=page.keys[1:] + page.keys[:1])


@breaks("test_cells_match_columns_and_keys_match_rows")
class ShowsPythonLists(Broken):
    def page(self, request, page):
        return replace(page, cells=[[*row[:-1], ["a"]] for row in page.cells])


@breaks("test_chosen_columns_come_in_the_order_asked_for")
class IgnoresTheChoiceOfColumns(Broken):
    @hookimpl
    async def fetch_page(self, request):
        return await super().fetch_page(replace(request, columns=None))


@breaks("test_a_preview_names_the_requests_that_a_read_sends_first")
class NamesOtherRequests(Broken):
    @hookimpl
    async def preview_read(self, request):
        return [replace(each, path=f"{each.path}?more") for each in await super().preview_read(request)]


@breaks("test_pages_tile_the_rows")
class OverlapsPages(Broken):
    @hookimpl
    async def fetch_page(self, request):
        return await super().fetch_page(replace(request, offset=max(0, request.offset - 1)))


@breaks("test_cursors_walk_the_same_rows")
class LosesARowAtACursor(Broken):
    def page(self, request, page):
        lost = request.cursor is not None
        return replace(page, cells=page.cells[lost:], keys=page.keys[lost:])


@breaks("test_a_text_that_is_no_cursor_is_refused")
class TakesAnyCursorForTheBeginning(Broken):
    @hookimpl
    async def fetch_page(self, request):
        return await super().fetch_page(replace(request, cursor=None))


@breaks("test_a_page_behind_the_last_row_is_empty")
class SaysAnotherOffset(Broken):
    def page(self, request, page):
        return replace(page, offset=0)


@breaks("test_a_page_behind_the_last_row_is_empty")
class StartsAgainBehindTheEnd(Broken):
    @hookimpl
    async def fetch_page(self, request):
        return await super().fetch_page(replace(request, offset=request.offset % 23))


@breaks("test_the_total_of_a_page_and_the_count_are_the_rows")
class TellsThePageAsTotal(Broken):
    def page(self, request, page):
        return replace(page, total=len(page.cells))


@breaks("test_the_total_of_a_page_and_the_count_are_the_rows")
class Miscounts(MemoryDriver):
    @hookimpl
    async def count_rows(self, request):
        return await super().count_rows(request) + 1


class MarksColumns(Broken):
    marked: tuple[int, ...]

    def page(self, request, page):
        columns = [*zip(*page.cells, strict=True)]
        return replace(page, cells=CellColumns(columns, len(page.cells), json=self.marked) if columns else [])


@breaks("test_marked_columns_hold_what_their_marks_say")
class MarksTextsAsJson(MarksColumns):
    marked = (1,)


@breaks("test_marked_columns_hold_what_their_marks_say")
class MarksNumbersAsJson(MarksColumns):
    marked = (2,)


@breaks("test_marked_columns_hold_what_their_marks_say")
class MarksAColumnThatIsNotThere(MarksColumns):
    marked = (99,)


@breaks("test_a_sort_orders_the_rows")
class IgnoresTheDirection(Broken):
    @hookimpl
    async def fetch_page(self, request):
        return await super().fetch_page(
            replace(request, sort=[replace(each, descending=False) for each in request.sort])
        )


class StoresNan(Broken):
    """The cheapest book has no price that compares; it comes last, as it has to."""

    places = (-1, -1)  # ascending and descending

    def page(self, request, page):
        if not request.sort or request.sort[0].column != "price":
            return page
        descending = request.sort[0].descending
        rows = [*zip(page.cells, page.keys, strict=True)]
        cells, key = rows.pop(-1 if descending else 0)
        place = self.places[descending]
        rows.insert(len(rows) if place else 0, ([*cells[:2], float("nan"), *cells[3:]], key))
        return replace(page, cells=[cells for cells, _ in rows], keys=[key for _, key in rows])


@breaks("test_a_sort_orders_the_rows")
class SortsNanAsTheLeast(StoresNan):
    places = (0, -1)


@breaks("test_a_sort_orders_the_rows")
class SortsNumbersAsTexts(Broken):
    def page(self, request, page):
        if not request.sort or request.sort[0].column != "price":
            return page
        rows = [list(each) for each in zip(page.cells, page.keys, strict=True)]
        rows.sort(key=lambda each: str(each[0][2]), reverse=request.sort[0].descending)
        return replace(page, cells=[each[0] for each in rows], keys=[each[1] for each in rows])


@breaks("test_a_sort_orders_the_rows")
class SortsTextsByTheirEnds(Broken):
    def page(self, request, page):
        if not request.sort or request.sort[0].column != "title":
            return page
        rows = [list(row) for row in zip(page.cells, page.keys, strict=True)]
        rows.sort(key=lambda row: row[0][1][::-1], reverse=request.sort[0].descending)
        return replace(page, cells=[row[0] for row in rows], keys=[row[1] for row in rows])


@breaks("test_a_sort_by_a_column_that_does_not_exist_is_refused")
class DropsAnUnknownSort(Broken):
    @hookimpl
    async def fetch_page(self, request):
        known = {column.name for column in (await self.describe_object(request.object)).columns}
        return await super().fetch_page(replace(request, sort=[each for each in request.sort if each.column in known]))


@breaks("test_a_sort_that_has_no_effect_is_dropped_and_said")
class DropsASortInSilence(Broken):
    def page(self, request, page):
        return replace(page, notes=[])


@breaks("test_a_cell_alone_is_the_cell_of_the_page")
class CutsTheCellAlone(MemoryDriver):
    @hookimpl
    async def fetch_cell(self, request):
        value = await super().fetch_cell(request)
        return CutJson(value[:10_000] + "...") if isinstance(value, str) and len(value) > 10_000 else value


@breaks("test_a_cell_alone_is_the_cell_of_the_page")
class CutsAnotherText(Broken):
    def page(self, request, page):
        cells = [[CutText(f"!{cell[1:]}...") if type(cell) is str else cell for cell in row] for row in page.cells]
        return replace(page, cells=cells)


@breaks("test_a_cell_alone_is_the_cell_of_the_page")
class MangledLongNumber(MemoryDriver):
    @hookimpl
    async def fetch_cell(self, request):
        value = await super().fetch_cell(request)
        return float(value) if type(value) is int else value


@breaks("test_a_null_is_told_from_a_field_that_is_not_there")
class ShowsMissingAsNull(Broken):
    def page(self, request, page):
        return replace(page, cells=[[None if cell is MISSING else cell for cell in row] for row in page.cells])


@breaks("test_a_null_is_told_from_a_field_that_is_not_there")
class ShowsMissingAsNullAlone(MemoryDriver):
    @hookimpl
    async def fetch_cell(self, request):
        return (await super().fetch_cell(request)) or None


@breaks("test_a_cell_alone_is_the_cell_of_the_page")
@breaks("test_a_null_is_told_from_a_field_that_is_not_there")
@breaks("test_an_exported_row_holds_each_column_where_its_path_says")
class ShowsNullAsMissing(Broken):
    def page(self, request, page):
        return replace(page, cells=[[MISSING if cell is None else cell for cell in row] for row in page.cells])


@breaks("test_a_cell_of_a_missing_row_is_told")
class ShowsNothingForAMissingRow(MemoryDriver):
    @hookimpl
    async def fetch_cell(self, request):
        return await super().fetch_cell(request) if request.key.id in self.server.objects["books"] else None


# filters --------------------------------------------------------------------------------------------------------------


@breaks("test_announced_operators_compile")
class AnnouncesMoreThanItCompiles(Broken):
    @hookimpl
    async def describe_object(self, name):
        described = await super().describe_object(name)
        return replace(described, columns=[replace(each, operators=(*Operator,)) for each in described.columns])


@breaks("test_announced_operators_compile")
class IsInexactWithoutSayingHow(MemoryDriver):
    @hookimpl
    async def compile_filter(self, request):
        compiled = await super().compile_filter(request)
        return replace(compiled, rows=[replace(each, exact=False) for each in compiled.rows])


@breaks("test_other_operators_are_refused_with_column_operator_and_reason")
class CompilesMoreThanItAnnounces(Broken):
    @hookimpl
    async def describe_object(self, name):
        described = await super().describe_object(name)
        return replace(described, columns=[replace(each, operators=each.operators[:2]) for each in described.columns])


@breaks("test_other_operators_are_refused_with_column_operator_and_reason")
class RefusesWithoutAReason(MemoryDriver):
    @hookimpl
    async def compile_filter(self, request):
        try:
            return await super().compile_filter(request)
        except FilterNotSupportedError as error:
            raise FilterNotSupportedError(error.message, details={**error.details, "reason": ""}) from None


@breaks("test_an_unknown_column_is_refused")
class LeavesOutWhatItDoesNotKnow(MemoryDriver):
    @hookimpl
    async def compile_filter(self, request):
        known = [row for row in request.rows if row.column in {column.name for column in self._columns()}]
        return await super().compile_filter(replace(request, rows=known))


@breaks("test_compiling_looks_at_the_rows_once_at_most")
class AsksTheServerToCompile(MemoryDriver):
    @hookimpl
    async def compile_filter(self, request):
        self.server.send("GET", "/books")
        return await super().compile_filter(request)


def widened(compiled, *operators: Operator):
    body = json.loads(compiled.body)
    body["rows"] = [row for row in body["rows"] if row["op"] not in operators]
    return replace(compiled, body=json.dumps(body))


@breaks("test_a_filter_never_widens")
class RunsWithoutTheRow(MemoryDriver):
    @hookimpl
    async def compile_filter(self, request):
        return widened(await super().compile_filter(request), Operator.GE)


@breaks("test_a_filter_never_widens")
class FiltersPagesAndNotCounts(MemoryDriver):
    @hookimpl
    async def count_rows(self, request):
        return await super().count_rows(replace(request, filter=None))


@breaks("test_an_exact_filter_loses_nothing")
class ComparesBordersOut(MemoryDriver):
    @hookimpl
    async def compile_filter(self, request):
        compiled = await super().compile_filter(request)
        return replace(compiled, body=compiled.body.replace('"op":">="', '"op":">"'))


class ReadsOperands(MemoryDriver):
    def operand(self, value: Any) -> Any:
        return value

    @hookimpl
    async def compile_filter(self, request):
        rows = [replace(row, value=self.operand(row.value)) for row in request.rows]
        return await super().compile_filter(replace(request, rows=rows))


@breaks("test_an_operand_means_the_same_however_it_is_spelled")
class RoundsADecimal(ReadsOperands):
    def operand(self, value):
        return float(value) if isinstance(value, Decimal) else value


@breaks("test_an_operand_means_the_same_however_it_is_spelled")
class ReadsOnlyTheFirstOfATypedList(ReadsOperands):
    def operand(self, value):
        return value.partition(",")[0] if isinstance(value, str) else value


@breaks("test_an_operand_means_the_same_however_it_is_spelled")
class TurnsTypedBooleansRound(ReadsOperands):
    def operand(self, value):
        return {"true": False, "false": True}.get(value, value) if isinstance(value, str) else value


@breaks("test_all_narrows_and_any_unites")
class TakesAnyForAll(MemoryDriver):
    @hookimpl
    async def compile_filter(self, request):
        return await super().compile_filter(replace(request, match="any"))


@breaks("test_pages_tile_a_filtered_result")
class OverlapsFilteredPages(Broken):
    @hookimpl
    async def fetch_page(self, request):
        back = 1 if request.filter and request.offset else 0
        return await super().fetch_page(replace(request, offset=request.offset - back))


@breaks("test_a_revision_shows_the_rows_as_they_were")
class IgnoresTheRevisionOfAPage(MemoryDriver):
    @hookimpl
    async def fetch_page(self, request):
        return replace(await super().fetch_page(replace(request, revision="")), revision=request.revision or "1")


@breaks("test_a_revision_shows_the_rows_as_they_were")
class IgnoresTheRevisionOfACount(MemoryDriver):
    @hookimpl
    async def count_rows(self, request):
        return await super().count_rows(replace(request, revision=""))


@breaks("test_a_revision_shows_the_rows_as_they_were")
class IgnoresTheRevisionOfACell(MemoryDriver):
    @hookimpl
    async def fetch_cell(self, request):
        return await super().fetch_cell(replace(request, revision=""))


# changes --------------------------------------------------------------------------------------------------------------


@breaks("test_planning_writes_nothing")
class WritesWhilePlanning(Broken):
    def plan(self, request, plan):
        for planned in plan.planned:
            self._send(planned.request)
        return plan


@breaks("test_applying_sends_exactly_the_planned_requests")
class SendsAnotherBody(MemoryDriver):
    def _send(self, request):
        return super()._send(replace(request, body=json.dumps(json.loads(request.body or "{}"), indent=1)))


@breaks("test_applying_sends_exactly_the_planned_requests")
class SendsOneMore(MemoryDriver):
    @hookimpl
    async def apply_change(self, plan):
        self.server.send("POST", "/refresh")
        return await super().apply_change(plan)


@breaks("test_an_inserted_row_is_there_with_its_values")
class RoundsWhatItWrites(Broken):
    def plan(self, request, plan):
        changed = [
            replace(
                each, request=replace(each.request, body=each.request.body and each.request.body.replace("813", "808"))
            )
            for each in plan.planned
        ]
        return replace(plan, planned=changed)


@breaks("test_an_update_changes_the_named_columns_only")
class WritesOnlyTheNamedColumns(Broken):
    def plan(self, request, plan):
        change = request.changes[0]
        if not hasattr(change, "values") or not hasattr(change, "key") or not plan.planned:
            return plan
        body = json.dumps(change.values)
        return replace(plan, planned=[replace(each, request=replace(each.request, body=body)) for each in plan.planned])


def written_as(described, name: str, written: Written):
    columns = [replace(column, written=written) if column.name == name else column for column in described.columns]
    return replace(described, columns=columns)


@breaks("test_a_column_that_the_server_keeps_is_never_sent")
class SendsAColumnThatTheServerKeeps(MemoryDriver):
    def __init__(self):
        super().__init__()
        self.server.kinds = {**self.server.kinds, "made": self.server.kinds["title"]}

    @hookimpl
    async def describe_object(self, name):
        return written_as(await super().describe_object(name), "made", Written.NEVER)


@breaks("test_a_column_that_the_server_keeps_is_never_sent")
class SendsAColumnOfInsertsInUpdates(MemoryDriver):
    @hookimpl
    async def describe_object(self, name):
        return written_as(await super().describe_object(name), "stock", Written.INSERT)


@breaks("test_an_update_that_names_the_key_moves_no_row")
class LeavesTheKeyOutInSilence(MemoryDriver):
    @hookimpl
    async def plan_change(self, request):
        changes = [
            replace(change, values={name: value for name, value in change.values.items() if name != "id"})
            if isinstance(change, Update)
            else change
            for change in request.changes
        ]
        return await super().plan_change(replace(request, changes=changes))


class Respells(MemoryDriver):
    """A driver that reads the values of a change in its own way."""

    def value(self, value: Any) -> Any:
        return value

    @hookimpl
    async def plan_change(self, request):
        changes = [
            replace(change, values={name: self.value(value) for name, value in change.values.items()})
            if isinstance(change, Insert | Update)
            else change
            for change in request.changes
        ]
        return await super().plan_change(replace(request, changes=changes))


@breaks("test_a_value_is_stored_alike_however_it_is_spelled")
class StoresTypedNumbersAsTexts(Respells):
    def value(self, value):
        return Json(json.dumps(value)) if type(value) is str else value


@breaks("test_a_value_is_stored_alike_however_it_is_spelled")
class StoresDecimalsAsTexts(Respells):
    def value(self, value):
        return Json(json.dumps(str(value))) if isinstance(value, Decimal) else value


@breaks("test_a_value_is_stored_alike_however_it_is_spelled")
class StoresJsonAsItsText(Respells):
    def value(self, value):
        return Json(json.dumps(str(value))) if isinstance(value, Json) else value


@breaks("test_a_value_is_stored_alike_however_it_is_spelled")
class TakesNoLists(Respells):
    def value(self, value):
        return Json("null") if isinstance(value, list) else value


@breaks("test_a_value_is_stored_alike_however_it_is_spelled")
class StoresElementsInDoublePrecision(Respells):
    def value(self, value):
        return Json(json.dumps(json.loads(value))) if isinstance(value, Json) else value


@breaks("test_a_whole_number_keeps_every_digit")
class ReadsNumbersAsFloats(Broken):
    def page(self, request, page):
        cells = [[float(cell) if type(cell) is int else cell for cell in cells] for cells in page.cells]
        return replace(page, cells=cells)


@breaks("test_a_whole_number_keeps_every_digit")
class LosesDigitsOfACell(MemoryDriver):
    @hookimpl
    async def fetch_cell(self, request):
        cell = await super().fetch_cell(request)
        return float(cell) if type(cell) is int else cell


@breaks("test_an_insert_takes_the_key_from_its_column")
class IgnoresTheKeyAmongTheValues(MemoryDriver):
    def _request(self, change):
        if isinstance(change, Insert):
            change = replace(change, values={name: each for name, each in change.values.items() if name != "id"})
        return super()._request(change)


@breaks("test_an_update_that_the_driver_does_not_make_is_refused")
class UpdatesNevertheless(MemoryDriver):
    """Its target names no change."""


@breaks("test_a_change_of_a_row_that_changed_meanwhile_is_a_conflict")
class Overwrites(Broken):
    def plan(self, request, plan):
        bare = [
            replace(each, request=replace(each.request, path=each.request.path.split("?")[0])) for each in plan.planned
        ]
        return replace(plan, planned=bare)


@breaks("test_an_insert_never_overwrites")
class ReplacesUnasked(Overwrites):
    pass


@breaks("test_a_deleted_row_is_gone")
class OnlySaysItDeleted(MemoryDriver):
    def _send(self, request):
        return (200, {"id": "x"}) if request.method == "DELETE" else super()._send(request)


@breaks("test_a_deleted_row_is_gone")
class DeletesTheObject(Broken):
    def plan(self, request, plan):
        return replace(
            plan,
            planned=[
                replace(each, request=replace(each.request, path="/scratch"))
                if each.request.method == "DELETE"
                else each
                for each in plan.planned
            ],
        )


class Unguarded(Broken):
    """A driver that sends changes without a guard in their key to whatever the row holds by then."""

    method = "PUT"

    def plan(self, request, plan):
        def sent(planned):
            change = request.changes[planned.changes[0]]
            if planned.request.method != self.method or change.key.guard:
                return planned
            path = planned.request.path.partition("?")[0]
            return replace(planned, request=replace(planned.request, path=path))

        return replace(plan, planned=[sent(each) for each in plan.planned])


@breaks("test_a_change_without_a_guard_spares_a_row_that_changed_since")
class OverwritesWhatChangedSince(Unguarded):
    pass


@breaks("test_a_change_without_a_guard_spares_a_row_that_changed_since")
class DeletesWhatChangedSince(Unguarded):
    method = "DELETE"


class Misreports(MemoryDriver):
    """A driver that has another word for `unknown`."""

    word = OutcomeStatus.FAILED

    @hookimpl
    async def apply_change(self, plan):
        said = await super().apply_change(plan)
        return [replace(each, status=self.word) if each.status == "unknown" else each for each in said]


@breaks("test_a_change_whose_answer_is_lost_is_unknown")
class SaysThatALostWriteFailed(Misreports):
    pass


@breaks("test_a_change_whose_answer_is_lost_is_unknown")
class SaysThatALostWriteIsAConflict(Misreports):
    word = OutcomeStatus.CONFLICT


@breaks("test_a_change_whose_answer_is_lost_is_unknown")
class TakesALostWriteForApplied(Misreports):
    word = OutcomeStatus.APPLIED


@breaks("test_a_change_whose_answer_is_lost_is_unknown")
class SaysThatALostWriteWasNeverSent(MemoryDriver):
    @hookimpl
    async def apply_change(self, plan):
        [outcome] = await super().apply_change(plan)
        if outcome.status == "unknown":
            raise ConnectionFailedError(outcome.reason, details={"sent": False})
        return [outcome]


@breaks("test_every_change_has_one_outcome")
class ForgetsWhatItRefused(Broken):
    def plan(self, request, plan):
        return replace(plan, refusals=[])


@breaks("test_every_change_has_one_outcome")
class ReportsTheFirstOnly(MemoryDriver):
    @hookimpl
    async def apply_change(self, plan):
        return (await super().apply_change(plan))[:1]


@breaks("test_rows_of_a_load_are_written_and_each_has_an_outcome")
class JoinsRowsThatWereGivenIds(MemoryDriver):
    @hookimpl
    async def apply_change(self, plan):
        outcomes = await super().apply_change(plan)
        return [replace(outcomes[0], rows=len(outcomes))] if plan.bulk else outcomes


@breaks("test_rows_of_a_load_are_written_and_each_has_an_outcome")
class SendsTheFirstRowOfALoadOnly(MemoryDriver):
    @hookimpl
    async def apply_change(self, plan):
        if not plan.bulk:
            return await super().apply_change(plan)
        await super().apply_change(replace(plan, planned=plan.planned[:1]))
        return [Outcome(change=0, status=OutcomeStatus.APPLIED, rows=len(plan.planned))]


@breaks("test_changes_of_one_row_are_carried_out_in_order")
class SendsTheLastOneFirst(Broken):
    def plan(self, request, plan):
        bare = [replace(each.request, path=each.request.path.partition("?")[0]) for each in plan.planned]
        planned = [replace(each, request=sent) for each, sent in zip(plan.planned, bare, strict=True)]
        return replace(plan, planned=planned[::-1])


@breaks("test_an_undo_takes_back_what_was_applied_and_nothing_else")
class UndoesWhatWasNeverDone(Broken):
    def plan(self, request, plan):
        key = getattr(request.changes[0], "key", None)
        return replace(
            plan, undo=[Delete(replace(key, guard={})) for _ in plan.planned] if key and request.undo else []
        )


@breaks("test_a_drop_of_more_than_one_object_is_refused")
class DropsByWildcard(Broken):
    def plan(self, request, plan):
        if not isinstance(request.changes[0], Drop) or plan.planned:
            return plan
        made = HttpRequest("DELETE", f"/{request.changes[0].object}")
        return replace(plan, planned=[PlannedRequest(request=made, changes=[0])], refusals=[])


# console --------------------------------------------------------------------------------------------------------------


@breaks("test_reads_and_writes_are_told_apart")
class TakesADeleteForARead(MemoryDriver):
    @hookimpl
    async def parse_console(self, text):
        parsed = await super().parse_console(text)
        return [replace(each, writes=each.writes and each.request.method != "DELETE") for each in parsed]


@breaks("test_reads_and_writes_are_told_apart")
class TakesEverythingForAWrite(MemoryDriver):
    @hookimpl
    async def parse_console(self, text):
        return [replace(each, writes=True) for each in await super().parse_console(text)]


@breaks("test_the_console_begins_with_a_request_that_reads")
class HasNoExample(MemoryDriver):
    manifest = MANIFEST


@breaks("test_the_console_begins_with_a_request_that_reads")
class BeginsWithAWrite(MemoryDriver):
    manifest = MANIFEST | {"console_example": 'PUT /books/1 {"title": "x"}'}


@breaks("test_the_console_begins_with_a_request_that_reads")
class BeginsWithWhatIsNotThere(MemoryDriver):
    manifest = MANIFEST | {"console_example": "GET /nothing/here"}


@breaks("test_parsing_sends_nothing_and_keeps_order_and_lines")
class CountsLinesFromZero(MemoryDriver):
    @hookimpl
    async def parse_console(self, text):
        return [replace(each, line=each.line - 1) for each in await super().parse_console(text)]


@breaks("test_parsing_sends_nothing_and_keeps_order_and_lines")
class SendsWhileParsing(MemoryDriver):
    @hookimpl
    async def parse_console(self, text):
        self.server.send("GET", "/")
        return await super().parse_console(text)


@breaks("test_a_comment_makes_no_request_and_breaks_none")
class TakesACommentForARequest(MemoryDriver):
    @hookimpl
    async def parse_console(self, text):
        return await super().parse_console(replace(text, text=text.text.replace("# expect", "GET /expect")))


@breaks("test_a_syntax_error_says_where")
class SaysNotWhere(MemoryDriver):
    @hookimpl
    async def parse_console(self, text):
        try:
            return await super().parse_console(text)
        except ConsoleSyntaxError as error:
            raise ConsoleSyntaxError(error.message) from None


@breaks("test_a_syntax_error_says_where")
class SkipsWhatItCannotParse(MemoryDriver):
    @hookimpl
    async def parse_console(self, text):
        try:
            return await super().parse_console(text)
        except ConsoleSyntaxError:
            return []


@breaks("test_an_answer_is_of_the_request_that_was_parsed")
class SendsAnotherPath(MemoryDriver):
    @hookimpl
    async def execute_console(self, request):
        pretty = replace(request.request, path=request.request.path + ("&x" if "?" in request.request.path else "?x"))
        return replace(await super().execute_console(replace(request, request=pretty)), request=request.request)


@breaks("test_an_answer_is_of_the_request_that_was_parsed")
class AnswersATableWithoutRows(MemoryDriver):
    @hookimpl
    async def execute_console(self, request):
        return replace(await super().execute_console(request), page=None)


# exports --------------------------------------------------------------------------------------------------------------


class Exporting(MemoryDriver):
    """A driver whose export can be spoilt part by part."""

    def part(self, part: Any) -> Any:
        return part

    @hookimpl
    async def export_rows(self, request):
        async for part in super().export_rows(request):
            yield self.part(part)


@breaks("test_an_export_is_whole_lines_of_json")
class BreaksLines(Exporting):
    def part(self, part):
        return replace(part, data=part.data[:-1])


@breaks("test_an_export_is_whole_lines_of_json")
class ExportsArrays(Exporting):
    def part(self, part):
        return replace(part, data=b"[]\n" * part.rows)


@breaks("test_an_export_has_every_row_once")
class LosesTheLastPart(MemoryDriver):
    @hookimpl
    async def export_rows(self, request):
        held = None
        async for part in super().export_rows(request):
            if held is not None:
                yield held
            held = part


@breaks("test_an_export_under_a_filter_has_what_the_filter_leaves")
class ExportsEverything(MemoryDriver):
    @hookimpl
    async def export_rows(self, request):
        async for part in super().export_rows(replace(request, filter=None)):
            yield part


@breaks("test_an_exported_row_holds_each_column_where_its_path_says")
class NamesAnotherPlace(MemoryDriver):
    @hookimpl
    async def describe_object(self, name):
        found = await super().describe_object(name)
        columns = [replace(each, path=("row", "title")) if each.name == "tags" else each for each in found.columns]
        return replace(found, columns=columns)


@breaks("test_an_exported_row_holds_each_column_where_its_path_says")
class ExportsRounded(Exporting):
    def part(self, part):
        return replace(part, data=part.data.replace(b"9.5", b"9.50000001"))


@breaks("test_an_export_goes_on_behind_a_checkpoint")
class StartsAgain(MemoryDriver):
    @hookimpl
    async def export_rows(self, request):
        async for part in super().export_rows(replace(request, checkpoint=None)):
            yield part


# shares of exports ----------------------------------------------------------------------------------------------------


class Shares(MemoryDriver):
    def split(self, request: Any, split: Any) -> Any:
        return split

    @hookimpl
    async def split_export(self, request):
        return self.split(request, await super().split_export(request))


@breaks("test_the_shares_of_an_export_are_the_whole")
class LosesTheLastShare(Shares):
    def split(self, request, split):
        return replace(split, shares=split.shares[:2])


@breaks("test_the_shares_of_an_export_are_the_whole")
class RepeatsAShare(Shares):
    def split(self, request, split):
        return replace(split, shares=[split.shares[0], *split.shares][: request.shares])


@breaks("test_the_shares_of_an_export_are_the_whole")
class MakesMoreSharesThanWanted(Shares):
    @hookimpl
    async def split_export(self, request):
        return await super().split_export(replace(request, shares=request.shares + 1))


@breaks("test_the_shares_of_an_export_are_the_whole")
class SetsCheckpointsInShares(MemoryDriver):
    @hookimpl
    async def export_rows(self, request):
        async for part in super().export_rows(request):
            yield replace(part, checkpoint="1abc")


@breaks("test_the_shares_of_a_filtered_export_are_what_the_filter_leaves")
class SplitsWithoutTheFilter(MemoryDriver):
    @hookimpl
    async def export_rows(self, request):
        whole = replace(request, filter=None, share=None) if request.share else request
        async for part in super().export_rows(whole):
            yield replace(part, checkpoint=None)


@breaks("test_a_share_read_again_is_the_same")
class TurnsTheRowsRoundEachTime(MemoryDriver):
    turns = 0

    @hookimpl
    async def export_rows(self, request):
        self.turns += 1
        async for part in super().export_rows(request):
            lines = part.data.splitlines(keepends=True)
            yield replace(part, data=b"".join(lines[:: 1 if self.turns % 2 else -1]))


@breaks("test_a_share_read_again_is_the_same")
class KeepsSilentAboutTheSnapshot(Shares):
    def split(self, request, split):
        return replace(split, snapshot="")


@breaks("test_a_snapshot_is_held_until_it_is_freed")
class HoldsNothing(MemoryDriver):
    @hookimpl
    async def hold_snapshot(self, request):
        return False


@breaks("test_a_snapshot_is_held_until_it_is_freed")
class FreesNothing(MemoryDriver):
    @hookimpl
    async def hold_snapshot(self, request):
        return await super().hold_snapshot(replace(request, seconds=1))


@breaks("test_a_share_of_another_export_is_refused")
class TakesSharesOfOtherForms(MemoryDriver):
    @hookimpl
    async def export_rows(self, request):
        async for part in super().export_rows(replace(request, share=None)):
            yield part


# ranges of time -------------------------------------------------------------------------------------------------------


@breaks("test_the_time_column_is_described_and_holds_instants")
class NamesNoColumn(MemoryDriver):
    @hookimpl
    async def describe_object(self, name):
        return replace(await super().describe_object(name), time=TimeColumn(column="when"))


@breaks("test_the_time_column_is_described_and_holds_instants")
class ShowsDays(Broken):
    def page(self, request, page):
        at = [column.name for column in page.columns].index("at")
        return replace(page, cells=[[*cells[:at], cells[at] and cells[at][:10]] for cells in page.cells])


@breaks("test_a_range_of_time_leaves_the_rows_inside_it")
class IgnoresTheRange(MemoryDriver):
    @hookimpl
    async def fetch_page(self, request):
        return await super().fetch_page(replace(request, time=None))


@breaks("test_a_range_of_time_leaves_the_rows_inside_it")
class TakesTheLastInstant(MemoryDriver):
    def _rows(self, request, revision):
        time = request.time
        last = [] if time is None or time.until is None else super()._rows(replace(request, time=None), revision)
        return [*super()._rows(request, revision), *(row for row in last if row["row"].get("at") == time.until)]


@breaks("test_a_range_of_time_leaves_the_rows_inside_it")
class KeepsRowsWithoutATime(MemoryDriver):
    def _rows(self, request, revision):
        everything = super()._rows(replace(request, time=None), revision)
        kept = [] if request.time is None else [row for row in everything if row["row"].get("at") is None]
        return [*super()._rows(request, revision), *kept]


@breaks("test_a_count_and_an_export_keep_to_the_range")
class CountsAllTime(MemoryDriver):
    @hookimpl
    async def count_rows(self, request):
        return await super().count_rows(replace(request, time=None))


@breaks("test_a_count_and_an_export_keep_to_the_range")
class ExportsAllTime(MemoryDriver):
    @hookimpl
    async def export_rows(self, request):
        async for part in super().export_rows(replace(request, time=None)):
            yield part


@breaks("test_a_range_holds_beside_a_filter")
class JoinsTheRangeByOr(MemoryDriver):
    def _rows(self, request, revision):
        rows = super()._rows(request, revision)
        if None in (request.time, request.filter):
            return rows
        others = super()._rows(replace(request, filter=None), revision)
        return [*rows, *(row for row in others if row not in rows)]


@breaks("test_a_cursor_of_another_range_is_refused")
class TakesAnyCursor(MemoryDriver):
    @hookimpl
    async def fetch_page(self, request):
        page = await super().fetch_page(replace(request, offset=int(request.cursor or 0), cursor=None))
        return replace(page, next=page.next and str(int(request.cursor or 0) + request.limit))


# similar rows -------------------------------------------------------------------------------------------------------


class Similar(MemoryDriver):
    def near(self, request: Any, page: Any) -> Any:
        return page

    @hookimpl
    async def similar_rows(self, request):
        return self.near(request, await super().similar_rows(request))


@breaks("test_rows_near_a_row_come_nearest_first_and_without_it")
class FarthestFirst(Similar):
    def near(self, request, page):
        return replace(page, cells=page.cells[::-1], keys=page.keys[::-1])


@breaks("test_rows_near_a_row_come_nearest_first_and_without_it")
class FindsTheRowItself(Similar):
    def near(self, request, page):
        return replace(page, keys=[request.key, *page.keys[1:]]) if request.key else page


@breaks("test_rows_near_a_row_come_nearest_first_and_without_it")
class FindsMoreThanAsked(Similar):
    @hookimpl
    async def similar_rows(self, request):
        return await super().similar_rows(replace(request, limit=request.limit + 1))


@breaks("test_rows_near_a_row_come_nearest_first_and_without_it")
class CallsTheDistanceLikeAColumn(Similar):
    def near(self, request, page):
        return replace(page, columns=[*page.columns[:-1], page.columns[0]])


@breaks("test_the_vector_of_a_row_finds_that_row_first")
class MissesTheNearest(Similar):
    def near(self, request, page):
        far = [at for at, cells in enumerate(page.cells) if cells[-1] > 0]
        return replace(page, cells=[page.cells[at] for at in far], keys=[page.keys[at] for at in far])


@breaks("test_the_vector_of_a_row_finds_that_row_first")
class ShowsAllColumns(Similar):
    @hookimpl
    async def similar_rows(self, request):
        return await super().similar_rows(replace(request, columns=None))


@breaks("test_similar_rows_go_by_their_filter")
class ForgetsTheFilterOfSimilarRows(Similar):
    @hookimpl
    async def similar_rows(self, request):
        return await super().similar_rows(replace(request, filter=None))


@breaks("test_similar_rows_go_by_their_filter")
class FiltersTheNearestOnly(Similar):
    @hookimpl
    async def similar_rows(self, request):
        page = await super().similar_rows(request)
        whole = await super().similar_rows(replace(request, filter=None))
        near = [at for at, key in enumerate(page.keys) if key in whole.keys]
        return replace(page, cells=[page.cells[at] for at in near], keys=[page.keys[at] for at in near])


@breaks("test_what_nothing_is_near_to_is_refused")
class TakesAnyColumn(Similar):
    @hookimpl
    async def similar_rows(self, request):
        return await super().similar_rows(replace(request, column=None))


@breaks("test_what_nothing_is_near_to_is_refused")
class CutsTheVector(Similar):
    @hookimpl
    async def similar_rows(self, request):
        vector = request.vector and request.vector[:3]
        return await super().similar_rows(replace(request, vector=vector))


@breaks("test_what_nothing_is_near_to_is_refused")
class IsNearToNothing(Similar):
    @hookimpl
    async def similar_rows(self, request):
        if request.key is not None and request.key.id not in self.server.objects["books"]:
            request = replace(request, key=None, vector=[0.0, 0.0, 0.0])
        return await super().similar_rows(request)


@pytest.mark.parametrize(("name", "driver"), [pytest.param(*each, id=each[1].__name__) for each in BROKEN])
async def test_a_broken_driver_turns_its_promise_red(name, driver):
    arguments = {"name": "*"} if "name" in inspect.signature(getattr(DriverConformance, name)).parameters else {}
    servers = {TimeConformance: timed_server, SimilarConformance: vector_server}
    server = next((make() for tests, make in servers.items() if hasattr(tests, name)), None)
    target = await memory_target(driver() if server is None else driver(server))
    target = dataclasses.replace(target, manifest=getattr(driver, "manifest", {}))
    if driver is UpdatesNevertheless:
        target = dataclasses.replace(target, change={})
    with pytest.raises((AssertionError, DragomanError, pytest.fail.Exception)):
        await getattr(DriverConformance(), name)(target, **arguments)


async def test_a_driver_may_store_nan_which_comes_last():
    await DriverConformance().test_a_sort_orders_the_rows(await memory_target(StoresNan()))


async def test_a_driver_that_tells_missing_fields_from_nulls_has_to_say_so():
    target = dataclasses.replace(await memory_target(ShowsNullAsMissing()), tells_missing=False)
    with pytest.raises(AssertionError, match="does not say"):
        await DriverConformance().test_cells_match_columns_and_keys_match_rows(target)


def test_every_promise_is_broken_by_some_driver():
    promises = {name for name in dir(DriverConformance) if name.startswith("test_")}
    assert {name for name, _ in BROKEN} == promises
