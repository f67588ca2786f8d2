// Made by plugins/workbench/typescript.py from dragoman_workbench/messages; change it there.

/**
 * Every request and answer between the page and the server; `page/messages.ts` is generated from it.
 *
 * Internal: the stable interface is the Python API. The page sends each request as a POST with a JSON body to ``/api/…``
 * and, except for ``enter``, with the secret in the header ``Dragoman-Secret``. `ROUTES` at the end lists them. A failure
 * is `Failed` with a status of 400 or more:
 *
 * - 400 the body is not what the route takes; 404 there is no such route or id; 413 it is too large; 429 too many at once
 * - 401 the secret is missing or expired: the page asks the person to open the workbench again
 * - 403 the Host or Origin header names another site
 * - 422 a DragomanError; `RequestFailure.code` says which
 *
 * ``GET /api/events`` (same header, read with fetch) answers with ``text/event-stream``; the ``data`` of each message is
 * one `ServerEvent`. ``GET /download/TICKET`` streams an export; the browser navigates to it, so it has no header. A
 * ticket holds once, for 30 seconds. ``POST /upload?name=NAME`` (same header, ``application/octet-stream``) takes a file
 * to import, whose bytes are the body, and answers with `imports.Uploaded`.
 *
 * **Cells.** A cell is null, true, false or a string, which stands for that text, or a pair ``[tag, text]``:
 *
 * - ``integer``, ``decimal``: a number with its digits as the server sent them, of any length; never a JSON number
 * - ``json``: an array or object, as JSON text with its digits and key order; ``[]`` and ``{}`` are empty ones
 * - ``bytes``: a binary value as base64
 * - ``cut-text``, ``cut-json``, ``cut-bytes``: only the beginning of such a value; ``cell`` fetches all of it
 * - ``missing``: the row has no such value, where the driver tells that apart from null; the text is empty
 *
 * A value that the page sends takes the same form, without the cut tags.
 *
 * **Rows.** Which rows a request is about is a `dragoman.RowSelection`, in the JSON that the address of a grid holds, too.
 *
 * **Keys.** `GridRow.key` is a text that only the server reads; the page sends it back unchanged. `GridRow.id` is for
 * people.
 */

export type CellTag = "integer" | "decimal" | "json" | "bytes" | "cut-text" | "cut-json" | "cut-bytes" | "missing";

export type Tagged = readonly [CellTag, string];

export type Cell = null | boolean | string | Tagged;

/**
 * What the page offers as a button beside a failure.
 *
 * Attributes:
 *     action: What the button does: ``command`` copies `target`; ``edit``, ``new``, ``objects`` and ``drivers`` show
 *         that view; the others call that route with `target`.
 *     target: A plugin's id, a connection's name, or the command to copy; empty for all drivers.
 */
export interface Action {
  readonly action: "command" | "drivers" | "edit" | "enable" | "install" | "new" | "objects" | "open" | "repair" | "unlock" | "update";
  readonly label: string;
  readonly target: string;
}

/** A person's answer. */
export interface AnswerQuestion {
  readonly id: string;
  readonly yes: boolean;
}

/** What became of each change; `undo` is the ticket of a change file (``/download/TICKET``), empty for none. */
export interface Applied {
  readonly outcomes: readonly OutcomeAnswer[];
  readonly undo: string;
}

/** Send a plan, once. */
export interface ApplyAsked {
  readonly connection: string;
  readonly plan: string;
}

/** The number of rows with a value from `lower`, included, to `upper`, excluded. */
export interface Bar {
  readonly lower: Cell;
  readonly upper: Cell;
  readonly rows: number;
}

/** A search: all words must occur. */
export interface BrowseAsked {
  readonly words?: string;
  readonly type?: string;
  readonly capability?: string;
  readonly compatible?: boolean;
}

/** Drivers, the best match first (500 at most), and the registries that could not be read, with the reason. */
export interface Browsed {
  readonly drivers: readonly DriverSummary[];
  readonly omitted: number;
  readonly failures: Readonly<Record<string, string>>;
}

/** The whole value. */
export interface CellAnswer {
  readonly cell: Cell;
}

/** The whole value of one cell. */
export interface CellAsked {
  readonly connection: string;
  readonly key: string;
  readonly column: string;
  readonly revision?: string;
}

/**
 * One change of the change list.
 *
 * Attributes:
 *     object: Of an insert and a drop.
 *     key: Of an update and a delete: `GridRow.key`.
 *     values: By column: of an insert and an update.
 *     id: Of an insert: its primary key; null to let the server make one.
 *     replace: An insert may replace the row with that id.
 *     tenant: Of an insert.
 */
export interface ChangeEntry {
  readonly kind: "delete" | "drop" | "insert" | "update";
  readonly object?: string;
  readonly key?: string;
  readonly values?: Readonly<Record<string, Cell>>;
  readonly id?: string | null;
  readonly replace?: boolean;
  readonly tenant?: string | null;
}

/**
 * One column of an object.
 *
 * Attributes:
 *     name: Dotted path or special name; unique within the object.
 *     type: The server's own name of the type, or ``mixed``.
 *     kind: What its values are, which decides how they are shown, read and exported.
 *     repeated: Every value is an array whose elements have the kind.
 *     multiple: A value may be an array of such values, although a single one needs none; the description cannot tell.
 *         The host looks at some rows, and reads the column as lists where they hold arrays.
 *     many: The values of a column that is `multiple` are lists in a table: with ``array`` a list of one stands for
 *         an array of one, with ``value`` for the value alone. Empty if the host decides.
 *     role: What the column is for; only inserts may name a key column.
 *     written: Which changes may name the column.
 *     sortable: A sort on it has an effect.
 *     operators: Filter operators that the column supports.
 *     reasons: Why an operator, ``sort``, ``filter``, ``edit``, ``export`` or ``any`` does not work, one sentence
 *         each, by that name. With ``export``, exports lack values that rows may have, and say so. With ``any``, no
 *         filter of several rows that matches any of them may name the column; the host refuses it.
 *     path: Member names that lead to the value in a row of an export. The last may be a dotted name, which is
 *         first looked up as one name. Empty for a column that exports lack.
 *     arrays: Beginnings of that dotted name at which each row has an array, outermost first. A row may hold a single
 *         object there; it counts as an array of one.
 *     members: The names of the numbers that each value is an object of, such as the ``lat`` and ``lon`` of a point;
 *         with `dimensions` the names of vectors, of which a value may lack some. Empty for other values.
 *     dimensions: Each value is a vector: an array of so many 32-bit floats, 0 if the server does not say how many.
 *         None for other values.
 */
export interface Column {
  readonly name: string;
  readonly type: string;
  readonly kind: ColumnKind;
  readonly repeated: boolean;
  readonly multiple: boolean;
  readonly many: "" | "array" | "value";
  readonly role: Role;
  readonly written: Written;
  readonly sortable: boolean;
  readonly operators: readonly Operator[];
  readonly reasons: Readonly<Record<string, string>>;
  readonly path: readonly string[];
  readonly arrays: readonly string[];
  readonly members: readonly string[];
  readonly dimensions: number | null;
}

export type ColumnKind = "binary" | "boolean" | "date" | "decimal" | "float" | "geo" | "integer" | "json" | "other" | "range" | "text" | "time" | "timestamp" | "unsigned";

/** How to continue a console text after that many characters (code points). */
export interface CompleteAsked {
  readonly connection: string;
  readonly text: string;
  readonly position: number;
}

/** Suggestions, the likeliest first; places are in code points. */
export interface Completed {
  readonly suggestions: readonly Suggestion[];
}

/**
 * How a server, a node or an object is, such as ``yellow``.
 *
 * Attributes:
 *     word: The server's own word for it, one or two words.
 *     level: How good it is; unknown for a word that says neither, such as ``closed``.
 */
export interface Condition {
  readonly word: string;
  readonly level: ConditionLevel;
}

export type ConditionLevel = "" | "bad" | "good" | "warning";

/**
 * The saved connections.
 *
 * Attributes:
 *     warnings: How others can change the file.
 *     samples_offered: The samples are installed, and not yet added.
 *     samples_ended: They were added, and their servers have ended since.
 */
export interface ConnectionList {
  readonly connections: readonly ConnectionSummary[];
  readonly hidden: readonly HiddenConnection[];
  readonly warnings: readonly string[];
  readonly samples_offered: boolean;
  readonly samples_ended: boolean;
}

/**
 * A saved connection in the list.
 *
 * Attributes:
 *     acts: What dragoman reads or runs to open it, in words.
 *     sample: What there is to see, if this workbench serves it as a sample; empty otherwise.
 */
export interface ConnectionSummary {
  readonly name: string;
  readonly type: string;
  readonly address: string;
  readonly acts: readonly string[];
  readonly open: boolean;
  readonly production: boolean;
  readonly sample: string;
}

/**
 * The answer to one request.
 *
 * Attributes:
 *     line: Where its request begins, from 1.
 *     until: The last line before the next request of the text; 0 if there is none.
 *     kind: ``grid`` and ``table`` use `page`; ``json`` and ``text`` use `text`.
 *     text: The body, JSON with its digits untouched.
 *     title: Of the rows, if one request has several answers.
 *     failed: Why it failed despite a success status; empty if it succeeded.
 *     writes: The request may have changed what the server holds.
 */
export interface ConsoleAnswer {
  readonly line: number;
  readonly until: number;
  readonly kind: "grid" | "json" | "table" | "text";
  readonly status: number;
  readonly request: HttpRequest;
  readonly page: PageAnswer | null;
  readonly text: string;
  readonly notes: readonly Note[];
  readonly title: string;
  readonly failed: string;
  readonly seconds: number;
  readonly writes: boolean;
}

/**
 * Copy rows.
 *
 * Attributes:
 *     making: `CopyPlanned.making`, as a person has confirmed it; only this request makes the object.
 *     undo: Keep a file of changes that take the copy back.
 */
export interface CopyAsked {
  readonly connection: string;
  readonly rows: RowSelection;
  readonly target: string;
  readonly object: string;
  readonly renamed?: Readonly<Record<string, string>>;
  readonly ids?: "derive" | "keep" | "new" | null;
  readonly making?: string;
  readonly on_conflict?: "fail" | "overwrite" | "skip";
  readonly undo?: boolean;
}

/**
 * What becomes of a column in a copy.
 *
 * Attributes:
 *     target: Its type where it goes; None if the object there has no such column.
 *     to: The name of the column that receives its values; empty if it is left out.
 *     reason: Why it is left out, or what changes; empty if it is carried as it is.
 *     consent: The request agrees to that.
 *     lost: It is left out under any name.
 */
export interface CopyColumn {
  readonly name: string;
  readonly type: string;
  readonly target: string | null;
  readonly to: string;
  readonly reason: string;
  readonly consent: boolean;
  readonly lost: boolean;
}

/**
 * Rows to copy to another connection, which is open, too.
 *
 * Attributes:
 *     target: The connection that receives them.
 *     object: Its object, which may be missing.
 *     renamed: New names of columns by their old ones; an empty name leaves the column out.
 *     ids: What becomes of the ids in another type of database; None to choose what loses nothing, else to ask.
 */
export interface CopyPlanAsked {
  readonly connection: string;
  readonly rows: RowSelection;
  readonly target: string;
  readonly object: string;
  readonly renamed?: Readonly<Record<string, string>>;
  readonly ids?: "derive" | "keep" | "new" | null;
}

/**
 * What a copy would do.
 *
 * Attributes:
 *     making: The request that makes the object; empty if it exists.
 *     differs: The connections have different types.
 *     rows: The number of rows that were looked at.
 *     ids_reason: What becomes of the ids, as a sentence.
 *     ids_consent: The request agrees to that, or nothing is lost by it.
 */
export interface CopyPlanned {
  readonly exists: boolean;
  readonly making: string;
  readonly columns: readonly CopyColumn[];
  readonly differs: boolean;
  readonly rows: number;
  readonly ids: "derive" | "keep" | "new";
  readonly ids_reason: string;
  readonly ids_consent: boolean;
  readonly notes: readonly Note[];
}

/** A number of rows as text, and what makes it approximate. */
export interface Counted {
  readonly rows: string;
  readonly notes: readonly Note[];
}

/**
 * A driver's description of one object.
 *
 * Attributes:
 *     object: The requested name.
 *     columns: The columns in the order of the grid.
 *     structure: The server's own definition as JSON text, for a structure view.
 *     notes: Conflicts between types, missing rights.
 *     time: The time column, if the manifest has the capability ``time-range`` and the object has such a column.
 *     object_member: The member of an exported row that names the row's object; empty if rows have none.
 *     server_members: Members of an exported row, or of a search hit, that the server computes for every row, so that
 *         no change can write them. An import leaves them out with a note, and refuses a row with any other member
 *         that it cannot write.
 *     tenants: The object has tenants, and its rows are those of one; None if the driver does not tell.
 *
 * Raises:
 *     ValueError: Two columns have one name: their cells could not be told apart.
 */
export interface Description {
  readonly object: string;
  readonly columns: readonly Column[];
  readonly structure: string;
  readonly notes: readonly Note[];
  readonly time: TimeColumn | null;
  readonly object_member: string;
  readonly server_members: readonly string[];
  readonly tenants: boolean | null;
}

/** The columns of one object. */
export interface DescriptionAsked {
  readonly connection: string;
  readonly object: string;
}

/** It was done. */
export interface Done {
  readonly done: boolean;
}

/** A driver by id; `version` only where a route takes one. */
export interface DriverNamed {
  readonly id: string;
  readonly version?: string | null;
}

/**
 * Everything known about a driver.
 *
 * Attributes:
 *     skipped: Newer versions that do not fit, and why.
 *     rollback_versions: Versions to which one can roll back, the active one first.
 *     pin: The version it is pinned to; empty for none.
 *     used_by: Saved connections of its types.
 */
export interface DriverPage {
  readonly driver: DriverSummary;
  readonly versions: readonly VersionSummary[];
  readonly permissions: readonly string[];
  readonly publisher: string;
  readonly readme: string;
  readonly changelog: string;
  readonly report: Report | null;
  readonly skipped: readonly string[];
  readonly hooks: readonly string[];
  readonly server_versions: readonly string[];
  readonly licence: string;
  readonly rollback_versions: readonly string[];
  readonly pin: string;
  readonly used_by: readonly string[];
}

/**
 * A driver in a list.
 *
 * Attributes:
 *     state: ``available``, ``installed``, ``update``, ``disabled``, ``linked``, ``incompatible`` or ``unreadable``.
 *     reaches: What it can reach, in words.
 *     size: Bytes of its wheel, 0 if unknown.
 *     unavailable_here: Why it is not available on the device that asks (P6); empty if it is.
 */
export interface DriverSummary {
  readonly id: string;
  readonly label: string;
  readonly types: readonly string[];
  readonly version: string;
  readonly state: string;
  readonly reaches: string;
  readonly summary: string;
  readonly registry: string;
  readonly size: number;
  readonly capabilities: readonly string[];
  readonly unavailable_here: string;
}

/** A request without parameters: ``{}``. */
export interface Empty {
}

/** The exchange of a one-time token, from the address's fragment (``/#token=…``), for a secret. */
export interface Enter {
  readonly token: string;
}

/** The secret for the header. */
export interface Entered {
  readonly secret: string;
}

/**
 * Send requests of a console text, in order.
 *
 * Attributes:
 *     line: Only the request that holds this line, from 1; null for all.
 *     stop_on_error: Stop after the first answer that reports a failure; otherwise the others are sent, too.
 *     remember: Add the text to the history, without what looks like a secret.
 */
export interface ExecuteAsked {
  readonly connection: string;
  readonly text: string;
  readonly variables?: Readonly<Record<string, string>>;
  readonly line?: number | null;
  readonly stop_on_error?: boolean;
  readonly remember?: boolean;
}

/** The answers so far; `error` is what ended the run early, and `unsent` what comes after that. */
export interface Executed {
  readonly answers: readonly ConsoleAnswer[];
  readonly error: RequestFailure | null;
  readonly unsent: readonly UnsentRequest[];
}

/** How each row of the filter is sent, and the same page as a command and as Python. */
export interface Explained {
  readonly rows: readonly Explanation[];
  readonly command: string;
  readonly python: string;
}

/**
 * How one filter row was compiled.
 *
 * Attributes:
 *     row: The number of the filter row, from 0.
 *     clause: The clause that is sent, in the server's syntax.
 *     exact: The clause means exactly what the filter row says, whatever the rows hold.
 *     approximations: How the meaning of the clause differs, one sentence each. The host repeats them as notes of
 *         every page, count and export.
 *     unlikely: How it would differ for rare stored values, of which the driver has looked at rows and seen none; one
 *         sentence each. They make no notes, since a warning on nearly every filter is none, but `exact` is false.
 *     same_element: Numbers of the filter rows that must hold for the same array element.
 */
export interface Explanation {
  readonly row: number;
  readonly clause: string;
  readonly exact: boolean;
  readonly approximations: readonly string[];
  readonly unlikely: readonly string[];
  readonly same_element: readonly number[];
}

/**
 * Export rows.
 *
 * Attributes:
 *     to: ``download``: answers with a ticket; the export begins when the browser fetches it. ``folder``: into the
 *         folder given at the start.
 */
export interface ExportAsked {
  readonly connection: string;
  readonly rows: RowSelection;
  readonly to: "download" | "folder";
  readonly file: string;
  readonly format?: ExportedFile;
}

/**
 * An export, as ``exports`` and the event ``export`` report it.
 *
 * Attributes:
 *     ticket: For ``/download/TICKET``, while `state` is ``waiting``.
 *     resumable: It can go on where it ended: ``exports/resume``.
 *     changes: How often it has changed; of two reports, that with the larger number is the newer one.
 */
export interface ExportJob {
  readonly id: string;
  readonly connection: string;
  readonly object: string;
  readonly file: string;
  readonly to: "download" | "folder";
  readonly state: "cancelled" | "failed" | "finished" | "running" | "waiting";
  readonly ticket: string;
  readonly rows: number;
  readonly bytes: number;
  readonly total: number | null;
  readonly sha256: string;
  readonly notes: readonly Note[];
  readonly error: RequestFailure | null;
  readonly resumable: boolean;
  readonly changes: number;
}

/** An export by id. */
export interface ExportNamed {
  readonly id: string;
}

/**
 * What the file of an export is: a `dragoman.FileFormat` that the page can choose.
 *
 * Attributes:
 *     compression: Its compression; null goes by the file's name in the folder, and means none for a download.
 *     escape: Put an apostrophe before the texts of a CSV or TSV file that a spreadsheet would take for a formula.
 *         Other formats ignore it.
 */
export interface ExportedFile {
  readonly format?: "bulk" | "csv" | "documents" | "json" | "parquet" | "rows" | "tsv";
  readonly compression?: "bzip2" | "gzip" | "zstd" | null;
  readonly escape?: boolean;
}

/** All exports since the start. */
export interface Exports {
  readonly exports: readonly ExportJob[];
}

/** The body of every answer with a status of 400 or more. */
export interface Failed {
  readonly error: RequestFailure;
}

/** One value of a choice and its label. */
export interface FieldChoice {
  readonly value: string;
  readonly label: string;
}

/**
 * What a person entered in one field.
 *
 * Attributes:
 *     kind: ``value``; ``keep`` for the saved secret or file; ``secret`` for a typed one, which is stored in a file
 *         that only this user can read; ``reference`` for the `id` of a known one; ``path`` for the path of a file of
 *         certificates.
 *     value: A switch as a boolean, everything else as text; null for an empty field.
 */
export interface FieldEntry {
  readonly kind?: "keep" | "path" | "reference" | "secret" | "value";
  readonly value?: boolean | string | null;
}

/**
 * One filter row of a grid.
 *
 * Attributes:
 *     column: The column's name.
 *     op: An operator, or its command line spelling.
 *     value: A scalar; for ``in``, ``not-in`` and ``between`` a list, or a comma-separated text; None if
 *         the operator takes no value. In a column of kind ``binary``, each value is base64 text; in one of kind
 *         ``timestamp``, it may be a period (``2026-11-23T00:00:00Z/2026-11-24T00:00:00Z``). ``near`` takes a
 *         latitude, a longitude and a distance (``52.52,13.405,5km``), ``in-box`` the latitude and the longitude of
 *         two corners (``south,west,north,east``).
 *     group: Rows with the same group on leaves of one nested array must hold for the same element (E35).
 *     case: True compares letter case, False ignores it, None leaves it to the operator.
 *
 * >>> Filter("price", ">=", 10).op
 * <Operator.GE: '>='>
 */
export interface Filter {
  readonly type: "filter";
  readonly column: string;
  readonly op: Operator;
  readonly value: boolean | number | string | ReadonlyArray<boolean | number | string | null> | null;
  readonly group: string | null;
  readonly case: boolean | null;
}

/**
 * The form of one connection.
 *
 * Attributes:
 *     revision: Of the saved connection that is edited, which a save sends back; empty for a new one.
 *     installed: False if the driver should be offered first (P2).
 */
export interface Form {
  readonly type: string;
  readonly revision: string;
  readonly name: string;
  readonly driver: DriverSummary;
  readonly installed: boolean;
  readonly fields: readonly InputField[];
}

/** The form of a new connection by `type`, or of a saved one by `name`. Nothing is installed. */
export interface FormAsked {
  readonly type?: string;
  readonly name?: string;
}

/** A value and the number of rows that hold it. */
export interface FrequentValue {
  readonly cell: Cell;
  readonly rows: number;
}

/**
 * One row: its cells in the order of the columns.
 *
 * Attributes:
 *     id: For people; empty if the row has none.
 *     key: What changes and ``cell`` send back; null if no change can name the row.
 */
export interface GridRow {
  readonly id: string;
  readonly key: string | null;
  readonly cells: readonly Cell[];
}

/** A saved connection that cannot be used, and why. */
export interface HiddenConnection {
  readonly name: string;
  readonly reason: string;
}

/** What was run on a connection, the newest first. */
export interface History {
  readonly entries: readonly HistoryEntry[];
}

/** One text that was run; `at` is seconds since the epoch. */
export interface HistoryEntry {
  readonly at: number;
  readonly text: string;
}

/**
 * One exact request: what a preview shows is what is sent, byte for byte.
 *
 * Attributes:
 *     method: The HTTP method, in capitals.
 *     path: A `RequestPath`: percent-encoded, with its query string, from its one slash at the beginning.
 *     body: The bytes that are sent, as text; None for no body.
 *     content_type: The content type of the body.
 *
 * Raises:
 *     ValueError: The path could lead elsewhere, or is not one; or method or content type could be more than that.
 */
export interface HttpRequest {
  readonly method: string;
  readonly path: string;
  readonly body: string | null;
  readonly content_type: string;
}

/**
 * Import a file.
 *
 * Attributes:
 *     create: Make the object if it is missing, with `types` for a table.
 *     undo: Keep a file of changes that take the import back.
 *     dry_run: Send nothing, and show the first requests.
 */
export interface ImportAsked {
  readonly connection: string;
  readonly object: string;
  readonly upload: string;
  readonly format?: "bulk" | "csv" | "documents" | "json" | "parquet" | "rows" | "tsv" | null;
  readonly delimiter?: string | null;
  readonly encoding?: string | null;
  readonly id?: string | null;
  readonly renamed?: Readonly<Record<string, string>>;
  readonly types?: Readonly<Record<string, string>>;
  readonly readings?: Readonly<Record<string, string>>;
  readonly on_conflict?: "fail" | "overwrite" | "skip";
  readonly create?: boolean;
  readonly undo?: boolean;
  readonly dry_run?: boolean;
  readonly tenant?: string | null;
}

/** A file that an import wrote. */
export interface ImportFileAsked {
  readonly id: string;
  readonly file: "rejected" | "undo";
}

/**
 * An import, as ``imports`` and the event ``import`` report it.
 *
 * Attributes:
 *     file: The name of the file.
 *     part: The fraction of the file that was read; None if it is not known.
 *     counts: The number of rows by outcome.
 *     rejected: Rows were not written: ``imports/rejected``.
 *     undo: There is a file that takes the import back: ``imports/undo``, ``imports/download``.
 *     requests: The first requests of a dry run.
 *     resumable: It can go on where it ended: ``imports/resume``.
 *     copies: The connection that the rows come from, if it is a copy; empty for a file.
 *     new_ids: The rows get new ids, so that another copy adds them again.
 *     undoes: The import that this one takes back; empty for any other.
 *     undone: It was taken back.
 *     changes: How often it has changed; of two reports, that with the larger number is the newer one.
 */
export interface ImportJob {
  readonly id: string;
  readonly connection: string;
  readonly object: string;
  readonly file: string;
  readonly dry_run: boolean;
  readonly state: "cancelled" | "failed" | "finished" | "running";
  readonly rows: number;
  readonly part: number | null;
  readonly counts: Readonly<Record<string, number>>;
  readonly seconds: number;
  readonly rejected: boolean;
  readonly undo: boolean;
  readonly requests: readonly string[];
  readonly notes: readonly Note[];
  readonly error: RequestFailure | null;
  readonly resumable: boolean;
  readonly copies: string;
  readonly new_ids: boolean;
  readonly undoes: string;
  readonly undone: boolean;
  readonly changes: number;
}

/** An import by id. */
export interface ImportNamed {
  readonly id: string;
}

/**
 * How a file is read, as `dragoman.load` takes it.
 *
 * Attributes:
 *     object: The object that receives the rows; it may be missing.
 *     renamed: New names of the file's columns by their old ones; an empty one leaves the column out.
 *     types: The types of columns of an object that is to be made, by their new names.
 *     readings: How fields are read, by the file's columns, as `dragoman.load` takes it.
 */
export interface ImportPreviewAsked {
  readonly connection: string;
  readonly object: string;
  readonly upload: string;
  readonly format?: "bulk" | "csv" | "documents" | "json" | "parquet" | "rows" | "tsv" | null;
  readonly delimiter?: string | null;
  readonly encoding?: string | null;
  readonly id?: string | null;
  readonly renamed?: Readonly<Record<string, string>>;
  readonly types?: Readonly<Record<string, string>>;
  readonly readings?: Readonly<Record<string, string>>;
}

/**
 * What a file holds.
 *
 * Attributes:
 *     likely: The character that seems to separate the fields instead; empty if the delimiter does.
 *     likely_encoding: The encoding that the file seems to have; empty if all rows looked at are UTF-8.
 *     names: The columns of a table; empty for documents.
 *     ids: The columns whose value can become the row's id.
 *     whole: The rows are all rows of the file.
 *     proposal: For a table, the types of a new object and how its fields are read; if the object exists, the columns
 *         of numbers, times and truths, and how their fields are read.
 *     exists: The object is there; `columns` are its columns.
 *     tenants: The object may have tenants, one of which receives the rows.
 */
export interface ImportPreviewed {
  readonly format: string;
  readonly compression: string | null;
  readonly delimiter: string;
  readonly likely: string;
  readonly likely_encoding: string;
  readonly names: readonly string[];
  readonly ids: readonly string[];
  readonly rows: readonly PreviewedRow[];
  readonly whole: boolean;
  readonly proposal: Proposal | null;
  readonly exists: boolean;
  readonly tenants: boolean;
  readonly columns: readonly TargetColumn[];
}

/** A ticket for ``/download/TICKET``, and the name of the file. */
export interface ImportTicket {
  readonly ticket: string;
  readonly file: string;
}

/** All imports since the start. */
export interface Imports {
  readonly imports: readonly ImportJob[];
}

/**
 * One field of the form.
 *
 * Attributes:
 *     value: The saved value, else the default; always null for a secret and a file.
 *     visible_if: Names of fields, and the values (as texts: ``true``, ``basic``) that show this one; all must hold.
 *     always: It is shown whatever `visible_if` says.
 *     required: It must not be empty while it is visible.
 *     saved: For a secret or a file with a saved reference: what dragoman does with it, in words. Empty otherwise.
 *     references: References that saved connections hold already, which this field may use; secrets and files only.
 */
export interface InputField {
  readonly name: string;
  readonly label: string;
  readonly kind: "choice" | "file" | "integer" | "secret" | "switch" | "text";
  readonly value: boolean | string | null;
  readonly choices: readonly FieldChoice[];
  readonly visible_if: Readonly<Record<string, readonly string[]>>;
  readonly always: boolean;
  readonly advanced: boolean;
  readonly required: boolean;
  readonly help: string;
  readonly saved: string;
  readonly references: readonly KnownReference[];
}

/** What is active after an installation, an update or a roll-back. */
export interface Installed {
  readonly id: string;
  readonly version: string;
}

/** A reference that a saved connection holds: the page sends `id` and shows `act`. */
export interface KnownReference {
  readonly id: string;
  readonly act: string;
}

/** A connection by name. */
export interface Named {
  readonly name: string;
}

/** A one-time token, with which the page opens a further tab: ``/#token=…``; it holds a minute. */
export interface NewToken {
  readonly token: string;
}

/**
 * A remark about a result that a caller must know: dropped, cut, partial, approximate.
 *
 * Attributes:
 *     code: Stable kebab-case identifier, for example ``sort-dropped``.
 *     reason: One sentence.
 *     column: The column concerned, None for the whole result.
 *     hint: What to do, in words; empty if nothing can be done, or the remedies say it.
 *     hint_from: ``driver`` if hint and remedies are a driver's; the host fills it in.
 *     remedies: What to do, as data that each surface shows in its own way.
 */
export interface Note {
  readonly code: string;
  readonly reason: string;
  readonly column?: string | null;
  readonly hint?: string;
  readonly hint_from?: string;
  readonly remedies?: readonly Remedy[];
}

/**
 * One browsable object: an index, a collection.
 *
 * Attributes:
 *     name: The name that requests use.
 *     rows: Number of rows, None when unknown.
 *     size: Bytes on the server's disk, None when unknown.
 *     kind: The server's word for it, for listings of several kinds.
 *     parent: The name of the object that contains it; None at the top.
 *     branch: It contains further objects; a request with it as `parent` lists them.
 *     state: Its condition, if a listing tells it without a further request; None when unknown.
 */
export interface Object {
  readonly name: string;
  readonly rows: number | null;
  readonly size: number | null;
  readonly kind: string;
  readonly parent: string | null;
  readonly branch: boolean;
  readonly state: Condition | null;
}

/**
 * The objects of one level, or a part of them; iterating over it yields them.
 *
 * Attributes:
 *     objects: In the order a sidebar shows them.
 *     notes: What could not be listed or counted, and why.
 *     next: The cursor of the next part; None at the end.
 *     total: The number of objects of this level, in all parts, that match the request; None if unknown, as for a
 *         driver that ignores `ObjectsRequest.contains`.
 */
export interface ObjectList {
  readonly objects: readonly Object[];
  readonly notes: readonly Note[];
  readonly next: string | null;
  readonly total: number | null;
}

/**
 * One level of the objects of a connection, in parts.
 *
 * Attributes:
 *     cursor: `ObjectList.next` of an earlier part.
 */
export interface ObjectsAsked {
  readonly connection: string;
  readonly parent?: string | null;
  readonly contains?: string;
  readonly cursor?: string | null;
  readonly limit?: number;
}

/** A reading that fits values of a column: what it makes of a field, and how many values it does not fit. */
export interface OfferedReading {
  readonly reading: string;
  readonly type: ColumnKind;
  readonly field: string;
  readonly value: string;
  readonly misfits: number;
}

/** An open connection by name. */
export interface OnConnection {
  readonly connection: string;
}

/**
 * An open connection: what the header shows.
 *
 * Attributes:
 *     server_notes: Remarks of the driver on the server.
 *     sandbox: Level and what it lacks.
 *     guards: In words: ``read-only``, ``asks before writes``, ``at most 1,000 rows``.
 *     hooks: The hooks that the driver implements: a view is offered only if its hook is there.
 *     capabilities: Those of the manifest: ``tenants``, ``raw-filter``, ``revisions``, ``time-range``, …
 *     console_example: The request of the manifest with which a console begins; empty for none.
 *     unlocked_until: Seconds since the epoch until which writes are allowed on it; None while it is locked.
 *     failing: Why the server did not answer the last check of its health; empty if it did.
 */
export interface OpenConnection {
  readonly connection: string;
  readonly type: string;
  readonly product: string;
  readonly server_version: string;
  readonly server_notes: readonly string[];
  readonly plugin: string;
  readonly plugin_version: string;
  readonly sandbox: string;
  readonly warnings: readonly string[];
  readonly guards: readonly string[];
  readonly hooks: readonly string[];
  readonly capabilities: readonly string[];
  readonly console_example: string;
  readonly production: boolean;
  readonly unlocked_until: number | null;
  readonly opened_at: number;
  readonly failing: string;
}

/**
 * Something that needs a person's consent; every tab shows it until one answers.
 *
 * Attributes:
 *     subject: ``permissions``, ``publisher``, ``sandbox``, ``change``, ``reference`` or ``address``.
 *     details: What a person should see first; lines.
 */
export interface OpenQuestion {
  readonly id: string;
  readonly subject: string;
  readonly text: string;
  readonly details: readonly string[];
}

export type Operator = "!=" | "<" | "<=" | "=" | ">" | ">=" | "between" | "contains" | "empty" | "ends" | "in" | "in-box" | "near" | "not-contains" | "not-empty" | "not-in" | "not-null" | "null" | "regex" | "starts";

/**
 * What became of one change.
 *
 * Attributes:
 *     change: Its number in the list, from 0.
 *     status: ``unknown`` if the server may have carried it out without saying so.
 *     reason: One sentence; empty when applied as asked.
 *     key: The row's new key, for a further change.
 */
export interface OutcomeAnswer {
  readonly change: number;
  readonly status: "applied" | "conflict" | "failed" | "refused" | "skipped" | "unknown";
  readonly id: string;
  readonly reason: string;
  readonly key: string | null;
}

/**
 * One page of rows.
 *
 * Attributes:
 *     notes: What was dropped, cut, partial or approximate; always in sight.
 *     total: All matching rows; null if not requested or unknown.
 *     total_exact: False when there are at least `total` rows.
 *     next: The cursor of the next page; null at the end, or if paging is by offset only.
 *     revision: The state of the data; empty if unknown.
 *     time: The range of time that was read, with absolute instants: further pages, counts and exports of the same
 *         rows have it as their span; null for all rows.
 *     now: The instant that relative times of the filter count from; further pages, counts and exports of the same
 *         rows have it, too. Null if it has none.
 *     near: The id, for people, of the row that these rows are similar to, in the order of their distances, which are
 *         the first column; empty for rows that are similar to none.
 */
export interface PageAnswer {
  readonly columns: readonly Column[];
  readonly rows: readonly GridRow[];
  readonly notes: readonly Note[];
  readonly total: number | null;
  readonly total_exact: boolean;
  readonly offset: number;
  readonly next: string | null;
  readonly revision: string;
  readonly seconds: number;
  readonly time: TimeRange | null;
  readonly now: string | null;
  readonly near: string;
}

/** One page of rows: by `cursor`, else by `offset`. */
export interface PageAsked {
  readonly connection: string;
  readonly rows: RowSelection;
  readonly offset?: number;
  readonly limit?: number;
  readonly total?: boolean;
  readonly cursor?: string | null;
}

/** The requests in a console text; nothing is sent. `variables` fill ``${name}``. */
export interface ParseAsked {
  readonly connection: string;
  readonly text: string;
  readonly variables?: Readonly<Record<string, string>>;
}

/** The requests of a console text, in order. */
export interface Parsed {
  readonly requests: readonly ParsedRequest[];
}

/**
 * One request of a console text.
 *
 * Attributes:
 *     writes: It may write.
 *     line: Where it begins, from 1.
 *     docs: The page on it that the driver's manifest names, an https address; empty for none.
 */
export interface ParsedRequest {
  readonly request: HttpRequest;
  readonly writes: boolean;
  readonly line: number;
  readonly curl: string;
  readonly docs: string;
}

/** The exact requests of some changes; nothing is written. A drop stands alone, with the object's name typed. */
export interface PlanAsked {
  readonly connection: string;
  readonly changes: readonly ChangeEntry[];
  readonly undo?: boolean;
  readonly typed?: string;
}

/**
 * A plan: the server keeps it for ten minutes under `plan`, and ``apply`` sends exactly this.
 *
 * Attributes:
 *     refusals: Changes that are not sent, and why.
 *     notes: Remarks to read before sending.
 */
export interface Planned {
  readonly plan: string;
  readonly steps: readonly PlannedRequest[];
  readonly refusals: readonly OutcomeAnswer[];
  readonly notes: readonly Note[];
  readonly undoable: boolean;
}

/**
 * One request of a plan and the changes it carries out.
 *
 * Attributes:
 *     request: The request exactly as sent.
 *     changes: The numbers of its changes.
 *     rows: The same numbers by row, in the order of the request, if it carries several rows; all changes of one
 *         row have the same outcome.
 *     statement: What the request does, in the server's language, if its path or body is hard to read:
 *         ``DELETE FROM "cpu" WHERE …``. Shown beside the request, never sent; empty if the request is readable.
 *     guard: The state of its row when it was planned, for a driver that compares it just before it sends: the server
 *         compares nothing, and the change has no guard.
 */
export interface PlannedRequest {
  readonly request: HttpRequest;
  readonly changes: readonly number[];
  readonly rows: ReadonlyArray<readonly number[]>;
  readonly statement: string;
  readonly guard: Readonly<Record<string, number | string>>;
}

/** What the page remembers on this machine: drafts, columns of a grid; JSON texts by key, never secrets. */
export interface Preferences {
  readonly values: Readonly<Record<string, string>>;
}

/** What the page remembers, by keys that begin with this text (``grid/shop/orders``). */
export interface PreferencesAsked {
  readonly prefix?: string;
}

/** One of the first rows; long texts are cut. */
export interface PreviewedRow {
  readonly number: number;
  readonly fields: ReadonlyArray<string | null>;
  readonly text: string;
  readonly fault: string;
}

/** Types for a new object, and readings of fields, after a look at some rows. */
export interface Proposal {
  readonly rows: number;
  readonly whole: boolean;
  readonly columns: readonly ProposedColumn[];
}

/** The type of a column and how its fields are read, with the evidence; see `dragoman.TypeProposal`. */
export interface ProposedColumn {
  readonly column: string;
  readonly name: string;
  readonly type: ColumnKind;
  readonly repeated: boolean;
  readonly source: "caller" | "file" | "object" | "rows";
  readonly values: number;
  readonly examples: readonly string[];
  readonly nearly: ColumnKind | null;
  readonly nearly_reading: string;
  readonly misfits: readonly string[];
  readonly reading: string;
  readonly consent: boolean;
  readonly readings: readonly OfferedReading[];
  readonly doubt: string;
}

/** The saved queries of a connection, and those that cannot be used, by name with the reason. */
export interface QueryList {
  readonly queries: readonly SavedQuery[];
  readonly unusable: Readonly<Record<string, string>>;
}

/** Remove a query of the connection itself. */
export interface QueryNamed {
  readonly connection: string;
  readonly name: string;
}

/** The Raw row, which the rules call "Raw SQL": its text goes to the server in the server's own syntax (E36). */
export interface RawQuery {
  readonly type: "raw";
  readonly text: string;
}

/** A row that was not written, with the reason; `row` is its number in the file. */
export interface RejectedRow {
  readonly row: number;
  readonly code: string;
  readonly reason: string;
  readonly text: string;
}

/** The first rows that were not written; `whole` says whether these are all. */
export interface RejectedRows {
  readonly rows: readonly RejectedRow[];
  readonly whole: boolean;
}

/**
 * One thing that a person can do about an error or a note.
 *
 * Attributes:
 *     kind: A `RemedyKind`; the host drops others.
 *     arguments: As `ARGUMENTS` says, in plain values and never quoted or escaped. ``field`` is a field of the
 *         connection's form, by name; without ``value``, a person has to enter one. ``operator`` is an operator of a
 *         filter row, ``query`` one in the server's syntax, ``request`` one of the console.
 */
export interface Remedy {
  readonly kind: string;
  readonly arguments: Readonly<Record<string, string | number | boolean>>;
}

/** The conformance report, as its author published it. */
export interface Report {
  readonly summary: string;
  readonly sandbox: string;
  readonly engines: Readonly<Record<string, Readonly<Record<string, number>>>>;
  readonly deviations: readonly string[];
  readonly failures: readonly string[];
}

/**
 * Why a request failed; a person can act on it.
 *
 * Attributes:
 *     code: Stable identifier, as of `dragoman_api.errors`, or ``bad-request``, ``not-found``, ``too-large``,
 *         ``too-many``, ``no-secret``, ``foreign``.
 *     hint: What to do; empty if nothing can be done.
 *     hint_from: ``driver`` if a driver wrote the hint, which is then shown as its words; else empty.
 *     field: The field of the form that can mend it; empty if there is none.
 *     row: The filter row or change that it is about, from 0; None for none.
 *     remedy: A button; None for none.
 */
export interface RequestFailure {
  readonly code: string;
  readonly message: string;
  readonly hint: string;
  readonly hint_from: string;
  readonly details: Readonly<Record<string, string>>;
  readonly field: string;
  readonly row: number | null;
  readonly remedy: Action | null;
  readonly remedies: readonly Remedy[];
}

export type Role = "" | "expiry" | "key" | "server" | "time" | "version";

/** The row, or null if it is gone. */
export interface RowAnswer {
  readonly columns: readonly Column[];
  readonly row: GridRow | null;
}

/** One row as it is now, to show beside a conflicting change. */
export interface RowAsked {
  readonly connection: string;
  readonly key: string;
}

/**
 * The choice of rows that a read is about, as a plain value; `Session.select` reads them.
 *
 * ``msgspec.json`` writes it and reads it: messages and links of the workbench hold that JSON.
 *
 * Attributes:
 *     object: The object's name.
 *     filters: The filter rows.
 *     match: Whether ``all`` filter rows must match, or ``any``.
 *     sort: The sort keys of a page, the most significant first.
 *     columns: The columns, in order; None for all.
 *     tenant: The tenant whose rows are read, if the object has tenants.
 *     revision: The revision to read at; empty for the current one.
 *     span: The span of time that the rows must lie in.
 *     now: The instant that relative times count from, in whole milliseconds; None for the beginning of each read.
 *     residual: The maximum number of rows, 1 to 10,000, that the driver may filter and sort itself; None for none.
 */
export interface RowSelection {
  readonly object: string;
  readonly filters?: ReadonlyArray<Filter | RawQuery>;
  readonly match?: "all" | "any";
  readonly sort?: readonly Sort[];
  readonly columns?: readonly string[] | null;
  readonly tenant?: string | null;
  readonly revision?: string;
  readonly span?: Span;
  readonly now?: string | null;
  readonly residual?: number | null;
}

/** The rows that a grid shows; values of filter rows are texts, which the driver reads according to the column. */
export interface RowsAsked {
  readonly connection: string;
  readonly rows: RowSelection;
}

/**
 * Save a connection; `replace` is the name of the one that is edited, empty for a new one.
 *
 * Attributes:
 *     fields: Entries of the visible fields by name.
 *     accept_address: The person changed or confirmed the host: the address it has now is accepted.
 *     revision: Of the form that was filled in; a connection that was changed since then is not replaced.
 */
export interface SaveConnection {
  readonly name: string;
  readonly type: string;
  readonly fields: Readonly<Record<string, FieldEntry>>;
  readonly replace?: string;
  readonly accept_address?: boolean;
  readonly revision?: string;
}

/** Save rows under a name; `replace` puts them in place of a query of that name. */
export interface SaveQuery {
  readonly connection: string;
  readonly rows: RowSelection;
  readonly name: string;
  readonly replace?: boolean;
}

/**
 * Rows that are kept under a name, beside their connection or in a folder that a team shares.
 *
 * Attributes:
 *     name: ``@NAME`` on the command line.
 *     shared: It is of a team's folder, which the page does not write.
 */
export interface SavedQuery {
  readonly name: string;
  readonly shared: boolean;
  readonly rows: RowSelection;
}

/**
 * One message of the event stream; only the member of its kind is set.
 *
 * Attributes:
 *     kind: ``event`` (of dragoman: `event` has ``name``, ``at`` and the fields of docs/reference/events.md, such as
 *         ``plugin.install_progressed`` with ``phase``, ``done``, ``total``); ``question`` and ``answered``;
 *         ``export`` and ``import``; ``opened`` (also after unlocking) and ``closed``; ``files`` (connections.toml or
 *         config.toml changed: load the lists again); ``lost`` (this tab was too slow: load the state again); ``bye``
 *         (the server ends); ``hello`` first, and ``beat`` every 15 seconds.
 */
export interface ServerEvent {
  readonly kind: "answered" | "beat" | "bye" | "closed" | "event" | "export" | "files" | "hello" | "import" | "lost" | "opened" | "question";
  readonly event: Readonly<Record<string, unknown>> | null;
  readonly question: OpenQuestion | null;
  readonly answered: string | null;
  readonly export: ExportJob | null;
  readonly import_job: ImportJob | null;
  readonly opened: OpenConnection | null;
  readonly closed: string | null;
}

/**
 * One node of a server, as the server knows it.
 *
 * Attributes:
 *     name: Its name.
 *     state: Its condition; None when unknown.
 *     roles: What it does, in the server's words; empty when unknown.
 *     version: The version that it runs; empty when unknown.
 *     rows: Number of rows on it, None when unknown.
 *     memory: Bytes of memory in use, None when unknown.
 *     memory_limit: Bytes of memory that it may use, None when unknown.
 *     disk: Bytes of disk in use, by whatever is on that disk; None when unknown.
 *     disk_limit: Bytes that the disk holds, None when unknown.
 */
export interface ServerNode {
  readonly name: string;
  readonly state: Condition | null;
  readonly roles: string;
  readonly version: string;
  readonly rows: number | null;
  readonly memory: number | null;
  readonly memory_limit: number | null;
  readonly disk: number | null;
  readonly disk_limit: number | null;
}

/**
 * How a server is: more than `Health`, which says only whether it answers.
 *
 * Attributes:
 *     state: The condition of the whole; None when unknown.
 *     nodes: Its nodes, in an order that stays; empty when unknown.
 *     objects: Conditions of objects by name, those that `Object.state` does not tell.
 *     notes: Why the whole is not well, and what could not be read.
 */
export interface ServerStatus {
  readonly state: Condition | null;
  readonly nodes: readonly ServerNode[];
  readonly objects: Readonly<Record<string, Condition>>;
  readonly notes: readonly Note[];
}

/** Remember a JSON text under a key; null forgets it. */
export interface SetPreference {
  readonly key: string;
  readonly value: string | null;
}

/**
 * The rows nearest to a row, by a column of vectors; null for the only one. The answer is a whole page.
 *
 * Attributes:
 *     key: `GridRow.key` of that row, which is not among them.
 */
export interface SimilarAsked {
  readonly connection: string;
  readonly rows: RowSelection;
  readonly key: string;
  readonly column?: string | null;
  readonly limit?: number;
}

/** One key of a sort. */
export interface Sort {
  readonly column: string;
  readonly descending: boolean;
}

/**
 * A span of time, as a caller gives it.
 *
 * Attributes:
 *     since: The first instant, ISO 8601 or relative to now (``-1h``, ``now-7d``); None for no lower bound.
 *     until: The instant after the last one, in the same form.
 *     all_time: Take all rows, even if the object has a default time window.
 */
export interface Span {
  readonly since?: string | null;
  readonly until?: string | null;
  readonly all_time?: boolean;
}

/**
 * What a tab shows first.
 *
 * Attributes:
 *     sandbox: The level that drivers reach here: ``full``, ``partial: no Landlock …``, ``off``.
 *     export_folder: Where exports may be written, as given at the start; empty if only downloads are possible.
 *     upload_bytes: The maximum size of a file to import.
 */
export interface State {
  readonly version: string;
  readonly sandbox: string;
  readonly connection: string;
  readonly open: readonly OpenConnection[];
  readonly questions: readonly OpenQuestion[];
  readonly exports: readonly ExportJob[];
  readonly imports: readonly ImportJob[];
  readonly export_folder: string;
  readonly upload_bytes: number;
  readonly warnings: readonly string[];
}

/**
 * One way to continue: `text` replaces the characters from `start` to `end`.
 *
 * Attributes:
 *     text: Without line breaks and control characters.
 *     kind: What it is.
 *     start: Number of characters before the replaced ones.
 *     end: Number of characters before the first one after them; at least `start`.
 *     detail: A few words beside it, such as a field's type; may be empty.
 */
export interface Suggestion {
  readonly text: string;
  readonly kind: SuggestionKind;
  readonly start: number;
  readonly end: number;
  readonly detail: string;
}

export type SuggestionKind = "field" | "keyword" | "method" | "object" | "path";

/**
 * One column at a glance; a figure that `approximate` does not name is exact.
 *
 * Attributes:
 *     rows: Rows that the filter selects.
 *     missing: How many of them have no value; null if unknown.
 *     values: The most frequent first.
 *     distinct: Number of different values; null if unknown.
 *     bars: In order, empty ones included; none for columns that are neither numbers nor dates.
 *     approximate: Why a figure is not exact, by the names of `dragoman_api.summaries.Figure`.
 *     absent: Why a figure is not given although the column has values, by the same names.
 */
export interface Summarized {
  readonly column: Column;
  readonly rows: number;
  readonly missing: number | null;
  readonly values: readonly FrequentValue[];
  readonly distinct: number | null;
  readonly minimum: Cell;
  readonly maximum: Cell;
  readonly bars: readonly Bar[];
  readonly approximate: Readonly<Record<string, string>>;
  readonly absent: Readonly<Record<string, string>>;
  readonly notes: readonly Note[];
  readonly seconds: number;
}

/** One column at a glance, over the rows that a grid shows. */
export interface SummaryAsked {
  readonly connection: string;
  readonly rows: RowSelection;
  readonly column: string;
  readonly values?: number;
  readonly buckets?: number;
}

/** A column of the object that receives the rows; `writable` says whether an insert may name it. */
export interface TargetColumn {
  readonly name: string;
  readonly type: string;
  readonly key: boolean;
  readonly writable: boolean;
}

/** Connect with these entries, without saving them. */
export interface TestConnection {
  readonly name: string;
  readonly type: string;
  readonly fields: Readonly<Record<string, FieldEntry>>;
  readonly replace?: string;
  readonly accept_address?: boolean;
  readonly revision?: string;
}

/** The connection works. */
export interface Tested {
  readonly product: string;
  readonly version: string;
  readonly sandbox: string;
  readonly warnings: readonly string[];
}

/**
 * The column that orders the rows of an object in time.
 *
 * Attributes:
 *     column: Its name; requests may carry a `TimeRange` of it.
 *     window: Seconds before now that the host reads if a caller names no range; None for all rows. The driver never
 *         applies it: the host puts the range into `time` of each request, where the driver finds either absolute
 *         instants or None.
 */
export interface TimeColumn {
  readonly column: string;
  readonly window: number | null;
}

/**
 * The rows of a span of time, beside the filter: a row must satisfy both. A row without a time is not in any range.
 *
 * Attributes:
 *     column: The time column, as `Description.time` names it.
 *     since: The first instant, RFC 3339 in UTC with at most nine digits of a fraction (``2026-11-23T12:00:00Z``);
 *         None for no lower bound.
 *     until: The instant after the last one; None for no upper bound.
 */
export interface TimeRange {
  readonly column: string;
  readonly since: string | null;
  readonly until: string | null;
}

/** The types of all registries. */
export interface TypeList {
  readonly types: readonly TypeOffer[];
}

/** A database type of a registry, or of an installed driver. */
export interface TypeOffer {
  readonly type: string;
  readonly driver: DriverSummary;
}

/** Allow writes on a production connection for a few minutes; the person typed its name. 0 locks it again. */
export interface Unlock {
  readonly connection: string;
  readonly typed: string;
  readonly minutes?: number;
}

/** A request that was not sent, because one before it ended the run; `line` is where it begins. */
export interface UnsentRequest {
  readonly line: number;
  readonly method: string;
  readonly path: string;
}

/**
 * What an update changes; `permissions` and `publisher` are what it asks for beyond the installed version.
 *
 * Attributes:
 *     unavailable_here: As of `DriverSummary`.
 */
export interface UpdateOffer {
  readonly id: string;
  readonly before: string;
  readonly version: string;
  readonly permissions: readonly string[];
  readonly publisher: string;
  readonly state: string;
  readonly reason: string;
  readonly unavailable_here: string;
}

/** Available, or carried out, updates. */
export interface Updates {
  readonly updates: readonly UpdateOffer[];
}

/** A file that was received. */
export interface UploadNamed {
  readonly upload: string;
}

/** A file that was received; `id` stands for it until it is discarded, or imported. */
export interface Uploaded {
  readonly id: string;
  readonly name: string;
  readonly bytes: number;
}

/** The files of an installed driver that differ from what was installed; none if it is intact. */
export interface Verification {
  readonly faults: readonly string[];
}

/** One version of a driver: `state` is ``offered``, ``yanked``, ``deprecated``, ``quarantined`` or empty. */
export interface VersionSummary {
  readonly version: string;
  readonly state: string;
  readonly reason: string;
  readonly uploaded: string;
  readonly size: number;
  readonly host_api: string;
  readonly installed: boolean;
}

export type Written = "always" | "insert" | "never";

/** What each POST /api/NAME takes and answers. */
export interface Routes {
  "enter": [Enter, Entered];
  "leave": [Empty, Done];
  "token": [Empty, NewToken];
  "state": [Empty, State];
  "connections": [Empty, ConnectionList];
  "connections/types": [Empty, TypeList];
  "connections/form": [FormAsked, Form];
  "connections/save": [SaveConnection, Done];
  "connections/test": [TestConnection, Tested];
  "connections/remove": [Named, Done];
  "connections/add_samples": [Empty, Done];
  "connections/remove_samples": [Empty, Done];
  "open": [OnConnection, OpenConnection];
  "close": [OnConnection, Done];
  "unlock": [Unlock, OpenConnection];
  "objects": [ObjectsAsked, ObjectList];
  "status": [OnConnection, ServerStatus];
  "describe": [DescriptionAsked, Description];
  "page": [PageAsked, PageAnswer];
  "similar": [SimilarAsked, PageAnswer];
  "count": [RowsAsked, Counted];
  "cell": [CellAsked, CellAnswer];
  "summarize": [SummaryAsked, Summarized];
  "explain": [RowsAsked, Explained];
  "queries": [OnConnection, QueryList];
  "queries/save": [SaveQuery, Done];
  "queries/remove": [QueryNamed, Done];
  "changes/plan": [PlanAsked, Planned];
  "changes/apply": [ApplyAsked, Applied];
  "changes/row": [RowAsked, RowAnswer];
  "console/parse": [ParseAsked, Parsed];
  "console/execute": [ExecuteAsked, Executed];
  "console/complete": [CompleteAsked, Completed];
  "console/history": [OnConnection, History];
  "exports": [Empty, Exports];
  "exports/start": [ExportAsked, ExportJob];
  "exports/cancel": [ExportNamed, Done];
  "exports/resume": [ExportNamed, ExportJob];
  "imports": [Empty, Imports];
  "imports/preview": [ImportPreviewAsked, ImportPreviewed];
  "imports/start": [ImportAsked, ImportJob];
  "imports/cancel": [ImportNamed, Done];
  "imports/resume": [ImportNamed, ImportJob];
  "imports/plan_copy": [CopyPlanAsked, CopyPlanned];
  "imports/copy": [CopyAsked, ImportJob];
  "imports/undo": [ImportNamed, ImportJob];
  "imports/rejected": [ImportNamed, RejectedRows];
  "imports/download": [ImportFileAsked, ImportTicket];
  "imports/discard": [UploadNamed, Done];
  "plugins/browse": [BrowseAsked, Browsed];
  "plugins/show": [DriverNamed, DriverPage];
  "plugins/install": [DriverNamed, Installed];
  "plugins/updates": [Empty, Updates];
  "plugins/update": [DriverNamed, Updates];
  "plugins/rollback": [DriverNamed, Installed];
  "plugins/pin": [DriverNamed, Done];
  "plugins/enable": [DriverNamed, Done];
  "plugins/disable": [DriverNamed, Done];
  "plugins/remove": [DriverNamed, Done];
  "plugins/verify": [DriverNamed, Verification];
  "plugins/repair": [DriverNamed, Installed];
  "questions/answer": [AnswerQuestion, Done];
  "preferences": [PreferencesAsked, Preferences];
  "preferences/set": [SetPreference, Done];
}
