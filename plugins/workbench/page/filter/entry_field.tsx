/** The field in which a filter is typed, with what fits: columns, then operators, then values. */

import { useId, useLayoutEffect, useRef, useState } from "preact/hooks";
import {
  type Entry,
  backFrom,
  columnsFor,
  lineOf,
  operatorsFor,
  rowOf,
  signOf,
  stageOf,
  typedInto,
  withColumn,
  withValue,
  wordsOf,
} from "../grid/filter_entry.ts";
import type { GridController } from "../grid/controller.ts";
import { inputs } from "../grid/filter_rows.ts";
import type { Column } from "../messages.ts";
import type { FilterRow } from "../state/query.ts";
import { type Explanation, Meaning, Refused, refusalOf } from "./meaning.tsx";
import { useSuggestedValues } from "./suggested_values.ts";
import type { Failure } from "../wire/client.ts";

const MOST = 60;

interface Suggestion {
  readonly label: string;
  readonly side: string;
  readonly next: Entry;
  /** The text in the field, as it stands. */
  readonly typed?: boolean;
  /** Taking it makes the pill. */
  readonly whole?: boolean;
}

export function EntryField({ grid, entry, rows, columns, raw, summarizes, explanation, put, commit, last, leave, fix }: {
  grid: GridController;
  entry: Entry;
  rows: readonly FilterRow[];
  columns: readonly Column[];
  raw: boolean;
  summarizes: boolean;
  explanation: Explanation;
  put: (entry: Entry) => void;
  commit: (entry: Entry) => void;
  /** Go back into the pill before: to edit it, or to stand on it. */
  last: (edit: boolean) => void;
  leave: () => void;
  fix: (failure: Failure) => void;
}) {
  const id = useId();
  const box = useRef<HTMLDivElement>(null);
  const floating = useRef<HTMLDivElement>(null);
  const input = useRef<HTMLInputElement>(null);
  const done = useRef(false); // a pill was made: the rows stay in sight until the next key
  const [active, setActive] = useState(-1);
  const [open, setOpen] = useState(false);
  const stage = stageOf(entry);
  const column = columns.find(({ name }) => name === entry.column);
  const values = useSuggestedValues(grid, entry, column, summarizes && open);
  const suggestions = suggested();
  const picks = stage === "column" || stage === "operator"; // Enter takes the first
  const chosen = active >= 0 ? Math.min(active, suggestions.length - 1) : picks && (entry.text || stage === "operator") ? 0 : suggestions.findIndex(({ typed }) => typed);
  const mates = groups();
  const number = entry.at ?? rows.length;
  const refused = rowOf(entry) && refusalOf(explanation, number);
  const shown = open && (suggestions.length > 0 || mates.length > 0 || rowOf(entry) !== null || stage === "low");

  function suggested(): Suggestion[] {
    if (stage === "column") {
      const own: Suggestion[] = columnsFor(entry.text, columns).map(({ name, type }) => ({ label: name, side: type, next: withColumn(entry, name) }));
      const text = entry.text.trim();
      const named = "raw text".includes(text.toLowerCase());
      if (raw) own.push({ label: "Raw text", side: "in the server's own syntax", next: { ...entry, raw: true, text: own.length || named ? "" : text } });
      return own;
    }
    if (stage === "operator") {
      return operatorsFor(entry.text, column).map((op) => {
        const next: Entry = { ...entry, op, text: "" };
        return { label: wordsOf(op, column), side: signOf(op) === wordsOf(op, column) ? "" : signOf(op), next, whole: stageOf(next) === "done" };
      });
    }
    const list = entry.op !== "" && inputs(entry.op) === "list";
    const known: Suggestion[] = values.map(({ value, label, rows }) => ({
      label,
      side: rows,
      next: withValue(entry, value),
      whole: !list,
      typed: !list && value === entry.text && !!entry.text,
    }));
    if (!known.length || !rowOf(entry) || known.some(({ typed }) => typed)) return known;
    return [{ label: entry.text || "“”", side: "as it is typed", next: entry, whole: true, typed: true }, ...known];
  }

  /** Rows on the same array that the entry can be tied to, so that both hold for one element. */
  function groups(): { readonly label: string; readonly group: string; readonly partner: number }[] {
    const [array] = column?.arrays ?? [];
    if (!array || stage === "column" || stage === "operator") return [];
    const near = rows.flatMap((row, partner) => {
      const other = row.type === "filter" && partner !== entry.at && columns.find(({ name }) => name === row.column);
      return other && other.arrays.includes(array) && row.type === "filter" ? [{ row, partner }] : [];
    });
    const names = new Set(rows.flatMap((row) => (row.type === "filter" && row.group ? [row.group] : [])));
    const free = Array.from({ length: rows.length + 1 }, (_, at) => String(at + 1)).find((name) => !names.has(name)) ?? "1";
    return near.map(({ row, partner }) => ({ label: `In the same element of ${array} as ${lineOf(row)}`, group: row.group || free, partner }));
  }

  useLayoutEffect(() => {
    const at = box.current?.getBoundingClientRect();
    const list = floating.current;
    if (!at || !list) return;
    const width = list.offsetWidth;
    list.style.left = `${Math.max(8, Math.min(at.left, innerWidth - width - 8))}px`;
    list.style.top = `${at.bottom + 4}px`;
    list.style.maxHeight = `${Math.max(120, innerHeight - at.bottom - 16)}px`;
    list.querySelector("[aria-selected=true]")?.scrollIntoView({ block: "nearest" });
  });
  useLayoutEffect(() => setActive(-1), [stage, entry.text, entry.at]);
  useLayoutEffect(() => { // before the next key, which would be lost
    if (!grid.called.value) return;
    grid.called.value = false;
    input.current?.focus();
    setOpen(!done.current);
    done.current = false;
  }, [grid.called.value]);

  const finish = (whole: Entry) => {
    done.current = true;
    commit(whole);
  };
  const take = ({ next, whole }: Suggestion) => {
    if (whole) finish(next);
    else put(next);
    input.current?.focus();
  };
  const enter = () => {
    if (chosen >= 0) return take(suggestions[chosen]);
    if (stage === "low" && entry.text) return put({ ...entry, low: entry.text, text: "" });
    if (rowOf(entry)) finish(entry);
    else if (stage === "column" && !entry.text) grid.view.focus();
  };
  const key = (event: KeyboardEvent) => {
    const start = input.current?.selectionStart === 0 && input.current.selectionEnd === 0;
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (event.isComposing) return;
    if (step && suggestions.length) {
      setOpen(true);
      setActive(chosen < 0 ? (step > 0 ? 0 : suggestions.length - 1) : (chosen + step + suggestions.length) % suggestions.length);
    } else if (event.key === "Enter") enter();
    else if (event.key === "Escape" && shown && suggestions.length) setOpen(false);
    else if (event.key === "Escape") leave();
    else if (event.key === "Backspace" && start) {
      const before = backFrom(entry);
      if (before) put(before);
      else if (entry.at === null) last(true);
      else return;
    } else if (event.key === "ArrowLeft" && start) last(false);
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  return (
    <div
      class={`entry${refused ? " refused" : ""}${stage === "column" ? "" : " begun"}`}
      ref={box}
      onClick={() => input.current?.focus()}
      onFocusOut={(event) => {
        if (!box.current?.contains(event.relatedTarget as Node | null)) setOpen(false);
      }}
    >
      {entry.raw && <span class="entry-part">raw text</span>}
      {entry.column && <span class="entry-part">{entry.column}</span>}
      {entry.op && <span class="entry-part sign">{signOf(entry.op)}</span>}
      {entry.low !== null && <span class="entry-part">{entry.low}</span>}
      {entry.low !== null && <span class="muted">to</span>}
      <input
        ref={input}
        role="combobox"
        aria-label={entry.at === null ? "Add a filter" : `Edit filter ${entry.at + 1}`}
        aria-description={[entry.raw ? "raw text" : entry.column, entry.op && wordsOf(entry.op, column), entry.low].filter(Boolean).join(" ")}
        aria-autocomplete="list"
        aria-expanded={shown && suggestions.length > 0}
        aria-controls={`${id}list`}
        aria-activedescendant={shown && chosen >= 0 ? `${id}${chosen}` : undefined}
        aria-invalid={!!refused}
        autocomplete="off"
        autocapitalize="off"
        spellcheck={false}
        placeholder={placeholder()}
        value={entry.text}
        onFocus={() => setOpen(true)}
        onPointerDown={() => setOpen(true)}
        onInput={(event) => {
          setOpen(true);
          put(typedInto(entry, event.currentTarget.value, columns));
        }}
        onKeyDown={key}
      />
      {shown && (
        <div class="menu suggestions" ref={floating}>
          <div role="listbox" id={`${id}list`} aria-label={stage === "column" ? "Columns" : stage === "operator" ? "Operators" : "Values"}>
            {suggestions.slice(0, MOST).map((suggestion, at) => (
              <div
                role="option"
                id={`${id}${at}`}
                key={`${at} ${suggestion.label}`}
                class="suggestion"
                aria-selected={at === chosen}
                onPointerDown={(event) => event.preventDefault()}
                onClick={(event) => (event.stopPropagation(), take(suggestion))}
              >
                <span class="suggestion-label">{suggestion.label}</span>
                <span class="muted">{suggestion.side}</span>
              </div>
            ))}
          </div>
          {suggestions.length > MOST && <p class="muted suggestion-note">{suggestions.length - MOST} more; type to find them.</p>}
          {mates.map(({ label, group, partner }) => (
            <label class="suggestion-note inline" key={partner}>
              <input
                type="checkbox"
                checked={entry.group === group && (entry.partner === null || entry.partner === partner)}
                onChange={(event) => {
                  const tied = event.currentTarget.checked;
                  put({ ...entry, group: tied ? group : null, partner: tied ? partner : null });
                }}
              />
              <span>{label}</span>
            </label>
          ))}
          {refused ? <Refused failure={refused} name="" fix={fix} /> : rowOf(entry) && <Meaning explanation={explanation} number={number} />}
          <p class="muted suggestion-note">{help()}</p>
        </div>
      )}
    </div>
  );

  function placeholder(): string {
    if (stage === "column") return rows.length ? "Add a filter" : "Filter: type a column";
    if (stage === "operator") return "how";
    if (stage === "low") return "from";
    if (entry.empty) return "the empty text";
    return entry.low !== null ? "to" : entry.op && inputs(entry.op) === "list" ? "values, with commas between" : entry.raw ? "text" : "value";
  }

  function help(): string {
    if (stage === "column") return rows.length ? "Backspace edits the last one" : "A column, how, and a value: total >= 100";
    if (stage === "operator") return "Backspace goes back to the column";
    return stage === "low" || !rowOf(entry) ? "Enter takes the value" : "Enter shows the rows";
  }
}
