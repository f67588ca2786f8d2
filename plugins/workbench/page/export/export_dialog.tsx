/** Exporting the rows of a grid, with its filter. */

import { useState } from "preact/hooks";
import type { Query } from "../grid/query.ts";
import type { Column, Export, ExportAsked, Opened } from "../messages.ts";
import { go } from "../shell/route.ts";
import { heardOfExport, remedy, state } from "../shell/store.ts";
import { Button, ErrorBox } from "../ui/controls.tsx";
import { Dialog } from "../ui/dialog.tsx";
import { call } from "../wire/client.ts";

type Format = NonNullable<ExportAsked["format"]>;

const FORMATS: readonly (readonly [Format, string, string])[] = [
  ["documents", "NDJSON, the documents", "ndjson"],
  ["rows", "NDJSON, with keys and metadata", "ndjson"],
  ["json", "JSON, one array of the documents", "json"],
  ["csv", "CSV", "csv"],
  ["tsv", "TSV", "tsv"],
  ["bulk", "Bulk lines of the server", "ndjson"],
  ["parquet", "Parquet", "parquet"],
];

const COMPRESSED = { gzip: ".gz", bzip2: ".bz2", zstd: ".zst" } as const;

export function ExportDialog({ open, object, query, columns, close }: {
  open: Opened;
  object: string;
  query: Query;
  columns: readonly Column[];
  close: () => void;
}) {
  const [format, setFormat] = useState<Format>("documents");
  const separated = format === "csv" || format === "tsv";
  const [compress, setCompress] = useState<"" | keyof typeof COMPRESSED>("");
  const [file, setFile] = useState("");
  const folder = state.value?.export_folder ?? "";
  const [to, setTo] = useState<"download" | "folder">(folder ? "folder" : "download");
  const [escape, setEscape] = useState(true);
  const [failed, setFailed] = useState<unknown>(null);
  const ending = FORMATS.find(([id]) => id === format)?.[2] ?? "ndjson";
  const usual = `${object.replace(/[^\w.-]+/g, "_")}.${ending}${compress && COMPRESSED[compress]}`;
  const start = async () => {
    setFailed(null);
    const { sort: _, ...rows } = query;
    const asked: ExportAsked = {
      ...rows,
      connection: open.connection,
      object,
      to,
      file: file.trim() || usual,
      format,
      compress: compress || null,
      columns: separated || format === "parquet" ? columns.map(({ name }) => name) : null,
      escape_formulas: escape,
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
          <Button icon="export" label="Export" tone="primary" onClick={() => void start()} />
        </>
      }
    >
      <p>
        {filters
          ? `The rows that match the filter (${filters} filter ${filters === 1 ? "row" : "rows"}).`
          : "All rows."}
      </p>
      <label class="field">
        <span>Format</span>
        <select value={format} onChange={(event) => setFormat(event.currentTarget.value as Format)}>
          {FORMATS.map(([id, label]) => <option key={id} value={id}>{label}</option>)}
        </select>
      </label>
      {format !== "parquet" && (
        <label class="field">
          <span>Compression</span>
          <select value={compress} onChange={(event) => setCompress(event.currentTarget.value as typeof compress)}>
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
        <input value={file} placeholder={usual} autocomplete="off" onInput={(event) => setFile(event.currentTarget.value)} />
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

/** Show an export in the list; a download begins when the browser goes to its ticket. */
function begin(started: Export): void {
  heardOfExport(started);
  if (started.ticket) {
    const link = document.createElement("a");
    link.href = `download/${encodeURIComponent(started.ticket)}`;
    link.download = started.file;
    link.click();
  }
  go({ view: "exports" });
}
