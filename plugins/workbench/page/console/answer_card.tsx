/** The answer to one request: as a grid, a JSON tree or text. */

import { useEffect, useId, useRef, useState } from "preact/hooks";
import { show, textOf } from "../wire/cells.ts";
import { asCsv, asJson, asText } from "../grid/copy_formats.ts";
import { UNTOUCHED, usualOrder, visible } from "../grid/column_layout.ts";
import { fitted, fittedWhole, measured } from "../grid/column_widths.ts";
import type { GridData } from "../grid/row_pool.ts";
import { GridView } from "../grid/view.ts";
import type { ConsoleAnswer, PageAnswer } from "../messages.ts";
import { figuresOf, isFlat, readable } from "../chart/series.ts";
import { Badge, Button, Notes, Tabs, lazily } from "../ui/controls.tsx";
import { duration } from "../ui/figures.ts";
import { pretty } from "../ui/json_text.ts";
import { JsonTree } from "../ui/json_tree.tsx";
import { openMenu } from "../ui/menu.tsx";
import { copyText } from "../ui/toasts.tsx";

const AnswerChart = lazily(async () => (await import("../chart/answer_chart.tsx")).AnswerChart);

/** An answer; `edited` if its request was changed since. */
export function AnswerCard({ answer, edited }: { answer: ConsoleAnswer; edited: boolean }) {
  const { request, status, seconds, failed, page, text, title, notes } = answer;
  const json = answer.kind === "json" || (!!page && /^\s*[[{]/.test(text));
  const drawable = !!page && page.rows.length > 1 && figuresOf(page).length > 0;
  const pages = drawable && isFlat(page) ? ["Chart", "Grid"] : ["Grid", drawable ? "Chart" : ""];
  const forms = [...(page ? pages : []), json ? "Tree" : "", text ? "Text" : ""].filter(Boolean);
  const [chosen, setForm] = useState<string>();
  const form = chosen && forms.includes(chosen) ? chosen : forms[0];
  const panel = useId();
  return (
    <article class={edited ? "answer edited" : "answer"}>
      <header class="answer-head">
        <Badge tone={failed || status >= 400 ? "bad" : "good"}>{status || "–"}</Badge>
        <code class="grow">{request.method} {request.path}</code>
        <span class="muted">{duration(seconds)}</span>
        {forms.length > 1 && (
          <Tabs label="Shown as" names={forms} chosen={form} choose={setForm} panel={panel} />
        )}
        <Button icon="copy" label="Copy the answer" bare tone="quiet" onClick={(event) => copy(event, answer)} />
      </header>
      {edited && <p class="banner warn answer-edited">The request was edited after it was sent. This is the answer to what it was before.</p>}
      {title && <h2>{title}</h2>}
      {failed && <p class="banner bad" role="alert">{failed}</p>}
      <Notes notes={notes} />
      <div id={panel} role={forms.length > 1 ? "tabpanel" : undefined} aria-label={forms.length > 1 ? form : undefined}>
        {form === "Grid" && page && <AnswerGrid page={page} label={`Rows of ${request.path}`} />}
        {form === "Chart" && page && <AnswerChart page={page} label={`Chart of ${title || request.path}`} />}
        {form === "Tree" && <JsonTree text={text} label={`Answer of ${request.path}`} />}
        {form === "Text" && <pre class="value-text" tabIndex={0} aria-label="Answer as text">{json ? pretty(text) : text}</pre>}
      </div>
    </article>
  );
}

function copy(event: MouseEvent, { page, text }: ConsoleAnswer): void {
  const table = page && { columns: page.columns.map(({ name }) => name), rows: page.rows.map((row) => row.cells) };
  openMenu(
    "Copy",
    [
      ...(text ? [{ label: "As text", run: () => void copyText(text) }] : []),
      ...(table
        ? [
            { label: "Rows as JSON", run: () => void copyText(asJson(table)) },
            { label: "Rows as CSV", run: () => void copyText(asCsv(table)) },
          ]
        : []),
    ],
    (event.currentTarget as Element).getBoundingClientRect(),
  );
}

/** Heights in pixels: a row, and what is above and below the rows. */
const ROW = 28;
const HEAD_AND_BAR = 48;
const MOST_ROWS = 12;

/** Rows that are all here: the same grid, without fetching or editing. */
function AnswerGrid({ page, label }: { page: PageAnswer; label: string }) {
  const host = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const described = readable(page);
    const at = new Map(page.columns.map(({ name }, index) => [name, index]));
    const data: GridData = {
      count: page.rows.length,
      shown: (row, column) => {
        const index = at.get(column) ?? 0;
        return show(page.rows[row].cells[index], described[index]);
      },
      state: () => "",
      wanted: () => {},
    };
    const columns = visible(usualOrder(described), UNTOUCHED, fitted(described, page.rows, measured)).map((one) => ({ ...one, sortable: false, pinned: false }));
    const nothing = () => {};
    const resize = (name: string, width: number) => {
      const found = columns.findIndex((one) => one.name === name);
      columns[found] = { ...columns[found], width };
      view.columns(columns, []);
    };
    const view: GridView = new GridView(label, data, {
      sort: nothing,
      resize,
      fit: (name) => resize(name, fittedWhole(name, described, page.rows, measured)),
      move: nothing,
      menu: nothing,
      cellMenu: nothing,
      exact: ({ row, column }) => textOf(page.rows[row]?.cells[at.get(view.names[column]) ?? 0] ?? null),
      selected: nothing,
      open: nothing,
      edit: () => false,
      erase: nothing,
      copy: (area) => {
        const names = view.names.slice(area.left, area.right + 1);
        const rows = page.rows.slice(area.top, area.bottom + 1);
        void copyText(asText({ columns: names, rows: rows.map((row) => names.map((name) => row.cells[at.get(name) ?? 0])) }));
      },
    });
    view.columns(columns, []);
    host.current?.append(view.element);
    return () => view.close();
  }, [page]);
  const height = HEAD_AND_BAR + ROW * Math.min(MOST_ROWS, Math.max(1, page.rows.length));
  return <div class="answer-grid" ref={host} style={{ height: `${height}px` }} />;
}
