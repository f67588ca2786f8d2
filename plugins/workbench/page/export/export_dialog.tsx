/** Exporting the rows of a grid, with its filter. */

import { useState } from "preact/hooks";
import type { Query } from "../state/query.ts";
import type { Column, ExportJob, ExportAsked, ExportedFile, OpenConnection, Sort } from "../messages.ts";
import { go } from "../state/route.ts";
import { heardOfExport, remedy, state } from "../state/store.ts";
import { Button, ErrorBox } from "../ui/controls.tsx";
import { Dialog } from "../ui/dialog.tsx";
import { call } from "../wire/client.ts";

type Format = NonNullable<ExportedFile["format"]>;

const FORMATS: readonly (readonly [Format, string, string])[] = [
  ["documents", "NDJSON, the documents", "ndjson"],
  ["rows", "NDJSON, with keys and metadata", "ndjson"],
  ["json", "JSON, one array of the documents", "json"],
  ["csv", "CSV", "csv"],
  ["tsv", "TSV", "tsv"],
  ["bulk", "Bulk lines of the server", "ndjson"],
  ["parquet", "Parquet", "parquet"],
];

/** Files with a column for each value; the others hold whole documents. */
const TABLES: ReadonlySet<Format> = new Set(["csv", "tsv", "parquet"]);

type Choice = "all" | "shown" | "chosen";

const COMPRESSED = { gzip: ".gz", bzip2: ".bz2", zstd: ".zst" } as const;
type Compression = "" | keyof typeof COMPRESSED;

/** What a file's name says of its content, in groups: the ending of its format, and that of its compression. */
const ENDINGS = /\.(ndjson|jsonl|json|csv|tsv|parquet)(\.gz|\.bz2|\.zst)?$/i;

export function ExportDialog({ open, query, columns, shown, close }: {
  open: OpenConnection;
  query: Query;
  columns: readonly Column[];
  /** The columns that the grid shows, in its order. */
  shown: readonly string[];
  close: () => void;
}) {
  const { object } = query;
  const [format, setFormat] = useState<Format>("documents");
  const separated = format === "csv" || format === "tsv";
  const tabular = TABLES.has(format);
  const stored = new Set(columns.flatMap(({ name, path }) => (path?.length ? [name] : [])));
  const inOrder = [...new Set([...shown, ...columns.map(({ name }) => name)])];
  const visible = shown.filter((name) => stored.has(name));
  const [choice, setChoice] = useState<Choice>("all");
  const [picked, setPicked] = useState<ReadonlySet<string>>(() => new Set(visible));
  /** Null for all, in the server's order. */
  const names: Record<Choice, readonly string[] | null> = {
    all: null,
    shown: visible,
    chosen: inOrder.filter((name) => picked.has(name)),
  };
  const none = tabular && names[choice]?.length === 0;
  const [compress, setCompress] = useState<Compression>("");
  const [file, setFile] = useState("");
  const folder = state.value?.export_folder ?? "";
  const [to, setTo] = useState<"download" | "folder">(folder ? "folder" : "download");
  const [escape, setEscape] = useState(true);
  const [failed, setFailed] = useState<unknown>(null);
  const usual = `${object.replace(/[^\w.-]+/g, "_")}${endingOf(format, compress)}`;
  /** Choose the content; a name that ends as another one is changed with it. */
  const choose = (as: Format, packed: Compression) => {
    setFormat(as);
    setCompress(packed);
    setFile((name) => name.replace(ENDINGS, endingOf(as, packed)));
  };
  const write = (name: string) => {
    setFile(name);
    const [, ending, packed = ""] = ENDINGS.exec(name.toLowerCase().trim()) ?? [];
    if (!ending) return;
    const same = ending === "jsonl" ? "ndjson" : ending;
    if (FORMATS.find(([id]) => id === format)?.[2] !== same) setFormat(FORMATS.find((one) => one[2] === same)?.[0] ?? format);
    setCompress((Object.keys(COMPRESSED) as (keyof typeof COMPRESSED)[]).find((one) => COMPRESSED[one] === packed) ?? "");
  };
  const start = async () => {
    setFailed(null);
    const content: ExportedFile = { format, compression: compress || null, escape };
    const asked: ExportAsked = {
      connection: open.connection,
      rows: { ...query, columns: tabular ? names[choice] : null },
      to,
      file: file.trim() || usual,
      format: content,
    };
    try {
      begin(await call("exports/start", asked));
      close();
    } catch (error) {
      setFailed(error);
    }
  };
  const filters = query.filters.length;
  return (
    <Dialog
      title={`Export ${object}`}
      onClose={close}
      footer={
        <>
          <Button label="Cancel" onClick={close} />
          <Button icon="export" label="Export" tone="primary" disabled={none} onClick={() => void start()} />
        </>
      }
    >
      <p>
        {filters
          ? `The rows that match the filter (${filters} filter ${filters === 1 ? "row" : "rows"}).`
          : "All rows."}
      </p>
      {query.sort.length > 0 && (
        <p class="muted">
          In the order of the server, not sorted by {query.sort.map(inWords).join(", then ")}: a sort orders the rows of
          pages only.
        </p>
      )}
      <label class="field">
        <span>Format</span>
        <select value={format} onChange={(event) => choose(event.currentTarget.value as Format, compress)}>
          {FORMATS.map(([id, label]) => <option key={id} value={id}>{label}</option>)}
        </select>
      </label>
      {tabular ? (
        <>
          <label class="field">
            <span>Columns</span>
            <select value={choice} onChange={(event) => setChoice(event.currentTarget.value as Choice)}>
              <option value="all">all that are stored ({stored.size})</option>
              <option value="shown">those that the grid shows ({visible.length})</option>
              <option value="chosen">chosen here ({names.chosen?.length})</option>
            </select>
          </label>
          {choice === "chosen" && <Columns names={inOrder} stored={stored} picked={picked} pick={setPicked} />}
          <LeftOut columns={columns.filter(({ name }) => (choice === "all" ? inOrder : shown).includes(name))} />
          {none && <p class="field-error" role="alert">A file needs a column.</p>}
        </>
      ) : (
        <p class="muted">Documents are exported whole. CSV, TSV and Parquet files take columns of your choice.</p>
      )}
      {format !== "parquet" && (
        <label class="field">
          <span>Compression</span>
          <select value={compress} onChange={(event) => choose(format, event.currentTarget.value as Compression)}>
            <option value="">none</option>
            <option value="gzip">gzip</option>
            <option value="bzip2">bzip2</option>
            <option value="zstd">zstd</option>
          </select>
        </label>
      )}
      {separated && (
        <label class="inline">
          <input type="checkbox" checked={escape} onChange={(event) => setEscape(event.currentTarget.checked)} />
          <span>keep spreadsheets from running texts as formulas</span>
        </label>
      )}
      <label class="field">
        <span>File name</span>
        <input value={file} placeholder={usual} autocomplete="off" onInput={(event) => write(event.currentTarget.value)} />
      </label>
      {folder && (
        <label class="field">
          <span>To</span>
          <select value={to} onChange={(event) => setTo(event.currentTarget.value as typeof to)}>
            <option value="folder">the folder {folder}</option>
            <option value="download">a download in the browser</option>
          </select>
        </label>
      )}
      {failed !== null && <ErrorBox error={failed} act={(wanted) => void remedy(wanted, () => void start())} />}
    </Dialog>
  );
}

function endingOf(format: Format, compression: Compression): string {
  const ending = FORMATS.find(([id]) => id === format)?.[2] ?? "ndjson";
  return `.${ending}${compression && format !== "parquet" ? COMPRESSED[compression] : ""}`;
}

function inWords({ column, descending }: Sort): string {
  return descending ? `${column}, descending` : column;
}

const COMPUTED = "computed for a page and not stored";

/** What a file cannot hold, or only in part, is said before it is written; each reason once. */
function LeftOut({ columns }: { columns: readonly Column[] }) {
  const byReason = new Map<string, string[]>();
  for (const { name, path, reasons } of columns) {
    const reason = reasons?.export ?? (path?.length ? "" : COMPUTED);
    if (reason) byReason.set(reason, [...(byReason.get(reason) ?? []), name]);
  }
  return (
    <>
      {[...byReason].map(([reason, names]) => (
        <p class="muted" key={reason}>Left out: {names.join(", ")} ({reason}).</p>
      ))}
    </>
  );
}

/** A list of columns to choose from, those of the grid first. */
function Columns({ names, stored, picked, pick }: {
  names: readonly string[];
  stored: ReadonlySet<string>;
  picked: ReadonlySet<string>;
  pick: (names: ReadonlySet<string>) => void;
}) {
  const [words, setWords] = useState("");
  const fitting = names.filter((name) => stored.has(name) && name.toLowerCase().includes(words.toLowerCase()));
  const flip = (name: string) => {
    const next = new Set(picked);
    if (!next.delete(name)) next.add(name);
    pick(next);
  };
  return (
    <fieldset class="column-choice">
      <legend class="unseen">Columns of the file</legend>
      <div class="column-choice-head">
        <input
          type="search"
          placeholder="Search columns"
          aria-label="Search columns"
          value={words}
          onInput={(event) => setWords(event.currentTarget.value)}
        />
        <Button label="All" tone="quiet" onClick={() => pick(new Set([...picked, ...fitting]))} />
        <Button label="None" tone="quiet" onClick={() => pick(new Set([...picked].filter((name) => !fitting.includes(name))))} />
      </div>
      <div class="column-choice-list">
        {fitting.map((name) => (
          <label class="inline" key={name}>
            <input type="checkbox" checked={picked.has(name)} onChange={() => flip(name)} />
            <span>{name}</span>
          </label>
        ))}
        {!fitting.length && <p class="muted">No column has such a name.</p>}
      </div>
    </fieldset>
  );
}

/** Show an export in the list; a download begins when the browser goes to its ticket. */
function begin(started: ExportJob): void {
  heardOfExport(started);
  if (started.ticket) {
    const link = document.createElement("a");
    link.href = `download/${encodeURIComponent(started.ticket)}`;
    link.download = started.file;
    link.click();
  }
  go({ view: "exports" });
}
