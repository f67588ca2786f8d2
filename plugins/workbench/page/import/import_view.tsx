/** Importing: a file is chosen or dropped, looked at, mapped to an object, and loaded; what became of each row. */

import { useEffect, useRef, useState } from "preact/hooks";
import type { ImportPreviewAsked, ImportPreviewed, OpenConnection, Uploaded } from "../messages.ts";
import { heardOfImport, imports, remedy, state } from "../state/store.ts";
import { Button, ErrorBox, Waiting, asFailure } from "../ui/controls.tsx";
import { fileSize, whole } from "../ui/figures.ts";
import { isFocusFree } from "../ui/focus.ts";
import { Icon } from "../ui/icons.tsx";
import { Failure, call, upload } from "../wire/client.ts";
import { type Conflict, ConflictChoice } from "./conflict_choice.tsx";
import { FilePreview } from "./file_preview.tsx";
import { ImportCard } from "./import_card.tsx";
import { UNMAPPED, chosenReading, readingsOf, undecided, unplaced } from "./mapping.ts";

type Reading = Pick<ImportPreviewAsked, "format" | "delimiter" | "encoding" | "id">;

const FORMATS = [
  ["documents", "NDJSON, documents"],
  ["json", "JSON, an array or one document"],
  ["rows", "NDJSON, with keys and metadata"],
  ["csv", "CSV"],
  ["tsv", "TSV"],
  ["bulk", "Bulk lines of the server"],
  ["parquet", "Parquet"],
] as const;
const SEPARATORS = [[",", "comma"], [";", "semicolon"], ["\t", "tab"], ["|", "bar"]] as const;
const ENCODINGS = [
  "utf-8", "utf-16", "utf-16-le", "utf-16-be", "windows-1250", "windows-1251", "windows-1252", "iso-8859-1",
  "iso-8859-15", "mac-roman",
];
const PAUSE = 250; // ms without a key before the file is looked at again

export function ImportView({ open, object }: { open: OpenConnection; object: string }) {
  const { connection } = open;
  const [target, setTarget] = useState(object);
  const [file, setFile] = useState<Uploaded | null>(null);
  const [sending, setSending] = useState<{ name: string; size: number; stop: AbortController } | null>(null);
  const [sentBytes, setSentBytes] = useState(0); // of the file that is being sent
  const [reading, setReading] = useState<Reading>({});
  const [mapping, setMapping] = useState(UNMAPPED);
  const [preview, setPreview] = useState<ImportPreviewed | null>(null);
  const [seen, setSeen] = useState(""); // what the preview answers
  const [failed, setFailed] = useState<unknown>(null);
  const [conflict, setConflict] = useState<Conflict>("fail");
  const [undo, setUndo] = useState(true);
  const [tenant, setTenant] = useState("");
  const [own, setOwn] = useState<readonly string[]>([]); // imports of the file that is looked at
  const [over, setOver] = useState(false);
  const [fresh, setFresh] = useState(0);
  const chooser = useRef<HTMLInputElement>(null);
  const here = useRef<HTMLDivElement>(null);
  const acted = useRef(false); // a person chose a file in this view
  const kept = useRef(""); // the file that leaving the view discards
  const limit = state.value?.upload_bytes ?? 0;
  const name = target.trim();

  const discard = () => {
    if (kept.current) void call("imports/discard", { upload: kept.current }).catch(() => {});
    kept.current = "";
  };
  useEffect(() => discard, []);

  const take = async (files: FileList | null | undefined) => {
    const chosen = files?.[0];
    if (!chosen) return;
    acted.current = true;
    setOver(false);
    setFailed(null);
    if (files.length > 1) return setFailed(new Failure({ code: "too-many", message: "One file at a time: choose one of them." }));
    if (chosen.size > limit) {
      const message = `${chosen.name} has ${fileSize(chosen.size)}, and the page takes files of ${fileSize(limit)} at most.`;
      return setFailed(new Failure({ code: "upload-too-large", message, hint: "The command line has no such limit." }));
    }
    discard();
    if (!name) setTarget(chosen.name.replace(/(\.[a-z0-9]{1,10}){1,2}$/i, ""));
    const stop = new AbortController();
    setFile(null);
    setOwn([]);
    setPreview(null);
    setReading({});
    setMapping(UNMAPPED);
    setSentBytes(0);
    setSending({ name: chosen.name, size: chosen.size, stop });
    try {
      const sent = await upload(chosen, stop.signal, setSentBytes);
      kept.current = sent.id;
      setFile(sent);
    } catch (error) {
      if ((error as Error).name !== "AbortError") setFailed(error);
    } finally {
      setSending(null);
    }
  };

  useEffect(() => { // the button that was pressed is gone: keys go on at what came of it
    if (!acted.current || !isFocusFree()) return;
    here.current?.querySelector<HTMLElement>(file || sending ? ".import-file button" : ".card")?.focus({ preventScroll: true });
  }, [file, sending, preview, failed, own]);

  const asked = file && name ? { connection, object: name, upload: file.id, ...reading, ...mapping } : null;
  const key = JSON.stringify(asked);
  useEffect(() => {
    if (!asked) return;
    const stop = new AbortController();
    const timer = setTimeout(async () => {
      try {
        const now = await call("imports/preview", asked, stop.signal);
        const keyColumn = now.columns.find((column) => column.key)?.name ?? "";
        if (reading.id === undefined && !now.names.length && now.ids.includes(keyColumn)) return setReading({ ...reading, id: keyColumn });
        if (now.likely && !reading.delimiter) return setReading({ ...reading, delimiter: now.likely });
        setPreview(now);
        setSeen(key);
        setFailed(null);
      } catch (error) {
        if ((error as Error).name !== "AbortError") setFailed(error);
      }
    }, preview ? PAUSE : 0);
    return () => {
      clearTimeout(timer);
      stop.abort();
    };
  }, [key, fresh]);

  const start = async (dryRun: boolean) => {
    if (!asked || !preview) return;
    setFailed(null);
    const types = { ...Object.fromEntries((preview.proposal?.columns ?? []).filter((one) => one.source === "rows").map((one) => [one.name, one.type])), ...mapping.types };
    try {
      const begun = await call("imports/start", {
        ...asked, types: preview.exists ? {} : types, readings: readingsOf(preview, mapping), create: !preview.exists, on_conflict: conflict, undo, dry_run: dryRun, tenant: (preview.tenants && tenant.trim()) || null,
      });
      heardOfImport(begun);
      setOwn([...own, begun.id]);
      if (dryRun) return;
      kept.current = "";
      setFile(null);
      setPreview(null);
    } catch (error) {
      setFailed(error);
    }
  };

  const separated = preview?.format === "csv" || preview?.format === "tsv";
  const missing = preview ? unplaced(preview, mapping, reading.id ?? null) : [];
  const doubtful = preview?.proposal?.columns.find((one) => undecided(one) && !chosenReading(one.column, mapping));
  const why = !name ? "Name the object that gets the rows."
    : missing.length ? `${missing.length === 1 ? `The column ${missing[0]} has` : `${missing.length} columns have`} no place: choose one, or leave ${missing.length === 1 ? "it" : "them"} out.`
    : doubtful ? `Choose how ${doubtful.column} is read: ${doubtful.doubt}.`
    : "";
  const ready = failed === null && !why && seen === key;
  const encoding = /^--encoding (\S+)$/.exec(asFailure(failed).hint)?.[1];
  const jobs = imports.value.filter((one) => one.connection === connection && (!file || one.state === "running" || own.includes(one.id) || own.includes(one.undoes ?? ""))).reverse();
  return (
    <div
      class={`page import${over ? " over" : ""}`}
      ref={here}
      onDragOver={(event) => {
        event.preventDefault();
        setOver(true);
      }}
      onDragLeave={(event) => event.currentTarget.contains(event.relatedTarget as Node | null) || setOver(false)}
      onDrop={(event) => {
        event.preventDefault();
        void take(event.dataTransfer?.files);
      }}
    >
      <h1>Import rows</h1>
      <input
        ref={chooser} type="file" class="unseen" tabIndex={-1} aria-hidden="true"
        onChange={(event) => {
          void take(event.currentTarget.files);
          event.currentTarget.value = ""; // the same file can be chosen again
        }}
      />
      <div class="import-line">
        <label class="field">
          <span>Into the object</span>
          <input value={target} placeholder="a name, of an object or a new one" autocomplete="off" spellcheck={false} onInput={(event) => setTarget(event.currentTarget.value)} />
        </label>
        {file && name && preview && (
          <span class="import-fate">{preview.exists ? "exists; the rows are added" : "does not exist, and is made"}</span>
        )}
      </div>
      {sending ? (
        <div class="import-file">
          <span class="spinner" aria-hidden="true" />
          <span role="status">Receiving <bdi>{sending.name}</bdi>, {fileSize(sending.size)} …</span>
          <Button label="Cancel" onClick={() => sending.stop.abort()} />
          <progress max={sending.size || 1} value={sentBytes} aria-label={`Receiving ${sending.name}`} />
          <span class="muted">{fileSize(sentBytes)}</span>
        </div>
      ) : file ? (
        <div class="import-file">
          <Icon name="table" />
          <strong><bdi>{file.name}</bdi></strong>
          <span class="muted">{fileSize(file.bytes)}{preview?.compression ? `, ${preview.compression}` : ""}</span>
          <Button label="Choose another file" tone="quiet" onClick={() => chooser.current?.click()} />
        </div>
      ) : (
        <div class="import-drop">
          <Icon name="import" />
          <p>Drop a file here, or <Button label="Choose a file" tone={jobs.some(({ state }) => state === "running") ? "plain" : "primary"} onClick={() => chooser.current?.click()} /></p>
          <p class="muted">CSV, TSV, NDJSON, JSON or Parquet, also packed with gzip, bzip2 or zstd; {fileSize(limit)} at most</p>
        </div>
      )}
      {failed !== null && (
        <ErrorBox error={spoken(failed)} act={(wanted) => void remedy(wanted, () => setFresh(fresh + 1))}>
          {encoding && <Button label={`Read it as ${encoding}`} tone="primary" onClick={() => setReading({ ...reading, encoding })} />}
        </ErrorBox>
      )}
      {file && (
        <>
          <div class="import-line">
            <label class="field">
              <span>Format</span>
              <select value={reading.format ?? preview?.format ?? ""} onChange={(event) => setReading({ ...reading, format: event.currentTarget.value as Reading["format"], id: undefined })}>
                {!preview && !reading.format && <option value="">not known</option>}
                {FORMATS.map(([id, label]) => <option key={id} value={id}>{label}</option>)}
              </select>
            </label>
            {separated && (
              <label class="field">
                <span>Separator</span>
                <select value={preview.delimiter} onChange={(event) => setReading({ ...reading, delimiter: event.currentTarget.value })}>
                  {SEPARATORS.map(([sign, label]) => <option key={sign} value={sign}>{label}</option>)}
                </select>
              </label>
            )}
            {preview?.format !== "parquet" && (
              <label class="field">
                <span>Encoding</span>
                <select value={reading.encoding ?? "utf-8"} onChange={(event) => setReading({ ...reading, encoding: event.currentTarget.value })}>
                  {ENCODINGS.map((one) => <option key={one} value={one}>{one}</option>)}
                </select>
              </label>
            )}
            {!!preview?.ids.length && (
              <label class="field">
                <span>Id of a row</span>
                <select value={reading.id ?? ""} onChange={(event) => setReading({ ...reading, id: event.currentTarget.value || null })}>
                  <option value="">{preview.names.length ? "the file’s, or the server’s" : "the server makes one"}</option>
                  {preview.ids.map((one) => <option key={one} value={one}>{one}</option>)}
                </select>
              </label>
            )}
            <ConflictChoice value={conflict} choose={setConflict} />
            {preview?.tenants && open.capabilities.includes("tenants") && (
              <label class="field">
                <span>Tenant</span>
                <input value={tenant} placeholder="none" autocomplete="off" onInput={(event) => setTenant(event.currentTarget.value)} />
              </label>
            )}
          </div>
          {preview && (
            <div class="import-acts">
              <Button icon="import" label={preview.exists ? "Import" : preview.proposal ? "Make it with these types, and import" : "Make it, and import"} tone="primary" disabled={!ready} onClick={() => void start(false)} />
              <Button label="Dry run" title="Plan the rows, and send nothing" disabled={!ready} onClick={() => void start(true)} />
              <label class="inline">
                <input type="checkbox" checked={undo} onChange={(event) => setUndo(event.currentTarget.checked)} />
                <span>keep an undo file</span>
              </label>
              {why && <span class="field-error" role="status">{why}</span>}
            </div>
          )}
        </>
      )}
      {jobs.length > 0 && (
        <ul class="cards single" aria-label="Imports">
          {jobs.map((job) => <ImportCard key={job.id} job={job} />)}
        </ul>
      )}
      {file && name && !preview && failed === null && <Waiting what={`Reading ${file.name} …`} />}
      {file && preview && (
        <>
          {preview.proposal && (!preview.exists || preview.proposal.columns.some(({ reading, doubt }) => reading || doubt)) && (
            <p class="muted">
              {preview.exists ? "Readings" : "Types"} after a look at {preview.proposal.whole ? "all" : "the first"} {whole(preview.proposal.rows)} rows. A value that does not fit its column makes a rejected row.
            </p>
          )}
          {preview.likely_encoding && (
            <div class="banner warn samples" role="status">
              <span class="grow">Some of the first rows are not {reading.encoding ?? "utf-8"}, and would be rejected.</span>
              <Button label={`Read it as ${preview.likely_encoding}`} onClick={() => setReading({ ...reading, encoding: preview.likely_encoding })} />
            </div>
          )}
          <FilePreview preview={preview} mapping={mapping} map={setMapping} rowId={reading.id ?? null} />
        </>
      )}
    </div>
  );
}

/** A failure without a hint that is an option of the command line. */
function spoken(error: unknown): Failure {
  const { code, message, hint, hintFrom, remedy: wanted } = asFailure(error);
  return new Failure({ code, message, hint: hint.startsWith("--") ? "" : hint, hint_from: hintFrom, remedy: wanted });
}
