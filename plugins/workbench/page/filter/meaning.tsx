/** What is sent for each row of a filter, or why it cannot run. */

import { useEffect, useState } from "preact/hooks";
import { complete } from "../grid/filter_rows.ts";
import type { GridController } from "../grid/controller.ts";
import type { Explained } from "../messages.ts";
import type { FilterRow } from "../state/query.ts";
import { Badge, Button, CopyCommand, asFailure } from "../ui/controls.tsx";
import { type Failure, call } from "../wire/client.ts";

export interface Explanation {
  readonly explained: Explained | null;
  readonly failure: Failure | null;
  /** Numbers of the rows that were explained. */
  readonly numbers: readonly number[];
}

/** Ask what would be sent, a moment after the last change. */
export function useExplanation(grid: GridController, rows: readonly FilterRow[], match: "all" | "any"): Explanation {
  const query = grid.query.value;
  const waits = grid.waiting.value !== null; // a driver may send a row to the server in order to explain it
  const [found, setFound] = useState<Explanation>({ explained: null, failure: null, numbers: [] });
  useEffect(() => {
    if (waits) return;
    const numbers = rows.flatMap((row, at) => (complete(row) ? [at] : []));
    const stop = new AbortController();
    const filters = numbers.map((at) => rows[at]);
    const timer = setTimeout(async () => {
      try {
        const asked = { connection: grid.connection, rows: { ...query, filters, match } };
        setFound({ explained: await call("explain", asked, stop.signal), failure: null, numbers });
      } catch (error) {
        if (!stop.signal.aborted) setFound({ explained: null, failure: asFailure(error), numbers });
      }
    }, 250);
    return () => {
      clearTimeout(timer);
      stop.abort();
    };
  }, [JSON.stringify([rows, query]), match, waits]);
  return found;
}

/** Why a row cannot run; null if it can, as far as is known. */
export function refusalOf({ failure, numbers }: Explanation, number: number): Failure | null {
  return failure && failure.row !== null && failure.row === numbers.indexOf(number) ? failure : null;
}

/** What is sent for a row, as far as it is known. */
export function clauseOf({ explained, numbers }: Explanation, number: number) {
  const at = numbers.indexOf(number);
  return at < 0 ? undefined : explained?.rows.find((one) => one.row === at);
}

export function Meaning({ explanation, number }: { explanation: Explanation; number: number }) {
  const row = clauseOf(explanation, number);
  if (!row) return null;
  const exact = row.exact ?? true;
  return (
    <div class="meaning">
      <Badge tone={exact ? "good" : "warn"}>{exact ? "exact" : "approximate"}</Badge>
      <code>{row.clause}</code>
      {row.approximations?.map((text) => (
        <span class="muted" key={text}>{text}</span>
      ))}
    </div>
  );
}

export function Refused({ failure, name, fix }: { failure: Failure; name: string; fix: (failure: Failure) => void }) {
  return (
    <div class="meaning refused" role="alert">
      {name && <code>{name}</code>}
      <span>{failure.message}</span>
      {failure.hint && <span class="muted">{failure.hint}</span>}
      {failure.remedy &&
        (failure.remedy.action === "command" ? (
          <CopyCommand command={failure.remedy.target} label={failure.remedy.label} />
        ) : (
          <Button label={failure.remedy.label} onClick={() => fix(failure)} />
        ))}
    </div>
  );
}
