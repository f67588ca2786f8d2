/** The first rows of a file, under heads that say where each column goes and of what type it is. */

import type { ImportPreviewed, ProposedColumn } from "../messages.ts";
import { Badge } from "../ui/controls.tsx";
import { whole } from "../ui/figures.ts";
import { line } from "../wire/cells.ts";
import { type Mapping, PLAIN, chosenReading, chosenType, placeOf, renamedTo, undecided, unplaced } from "./mapping.ts";

const TYPES = ["text", "integer", "float", "boolean", "timestamp", "date", "binary"] as const;

export function FilePreview({ preview, mapping, map, rowId }: {
  preview: ImportPreviewed;
  mapping: Mapping;
  map: (mapping: Mapping) => void;
  rowId: string | null;
}) {
  const { names, rows, proposal, exists } = preview;
  if (!rows.length) return <p class="muted">The file holds no rows.</p>;
  if (!names.length) {
    return (
      <section aria-label="First rows of the file">
        <p class="muted">{amount(preview)} {exists ? "" : "The server decides on the types when it has the documents."}</p>
        <ol class="import-documents" tabIndex={0}>
          {rows.map((row) => (
            <li key={row.number} value={row.number} class={row.fault ? "faulty" : ""}>
              <code><bdi>{row.text}</bdi></code>
              {row.fault && <Badge tone="bad" title={row.fault}>cannot be read</Badge>}
            </li>
          ))}
        </ol>
      </section>
    );
  }
  const lost = new Set(unplaced(preview, mapping, rowId));
  const proposed = new Map(proposal?.columns.map((one) => [one.column, one]));
  const known = new Set(preview.columns.map((column) => column.name));
  const choices = preview.columns.filter(({ name, writable, key }) => writable || key || names.includes(name));
  return (
    <section aria-label="First rows of the file">
      <p class="muted">{amount(preview)}</p>
      <div class="import-table" tabIndex={0} role="group" aria-label="Rows, which scroll">
        <table>
          <thead>
            <tr>
              <th scope="col" class="import-number">row</th>
              {names.map((name) => {
                const place = placeOf(name, mapping);
                return (
                  <th scope="col" key={name} class={place ? "" : "out"}>
                    <div class="import-head">
                      <bdi class="import-name" title={name}>{name}</bdi>
                      {exists ? (
                        <select
                          aria-label={`Column of the object for ${name}`} aria-invalid={lost.has(name)} value={place}
                          onChange={(event) => map(renamedTo(mapping, name, event.currentTarget.value))}
                        >
                          <option value="">leave it out</option>
                          {!known.has(name) && <option value={name} disabled={!lost.has(name)}>{name === rowId ? "the id" : "choose a column …"}</option>}
                          {place && place !== name && !known.has(place) && <option value={place}>{place}</option>}
                          {choices.map((one) => <option key={one.name} value={one.name}>{one.name} · {one.type}</option>)}
                        </select>
                      ) : (
                        <>
                          <span class="import-pair">
                            <input
                              aria-label={`Name of ${name} in the object; empty leaves it out`} value={place} placeholder="left out"
                              spellcheck={false} onInput={(event) => map(renamedTo(mapping, name, event.currentTarget.value.trim()))}
                            />
                            {place && (
                              <select
                                aria-label={`Type of ${name}`} value={chosenType(place, mapping) ?? proposed.get(name)?.type ?? "text"}
                                onChange={(event) => map({ ...mapping, types: { ...mapping.types, [place]: event.currentTarget.value } })}
                              >
                                {TYPES.map((type) => <option key={type} value={type}>{type}{proposed.get(name)?.repeated ? "[]" : ""}</option>)}
                              </select>
                            )}
                          </span>
                        </>
                      )}
                      {place && <Reading column={proposed.get(name)} chosen={chosenReading(name, mapping)} choose={(reading) => map({ ...mapping, readings: { ...mapping.readings, [name]: reading } })} />}
                      {place && <Evidence column={proposed.get(name)} />}
                    </div>
                  </th>
                );
              })}
            </tr>
          </thead>
          <tbody>
            {rows.map((row) => (
              <tr key={row.number} class={row.fault ? "faulty" : ""}>
                <th scope="row" class="import-number">{whole(row.number)}</th>
                {row.fault ? (
                  <td colSpan={names.length}><Badge tone="bad">cannot be read</Badge> {row.fault}: <bdi>{row.text || row.fields.map((field) => field ?? "").join(preview.delimiter || " ")}</bdi></td>
                ) : (
                  row.fields.map((field, at) => (
                    <td key={names[at]} class={placeOf(names[at], mapping) ? "" : "out"}>
                      {field === null ? <span class="muted">–</span> : field === "" ? <em class="muted">empty</em> : <bdi title={field}>{line(field)}</bdi>}
                    </td>
                  ))
                )}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}

function amount({ rows, whole: all }: ImportPreviewed): string {
  return all ? `All ${whole(rows.length)} ${rows.length === 1 ? "row" : "rows"} of the file.` : `The first ${whole(rows.length)} rows of the file.`;
}

const ZONE = Intl.DateTimeFormat().resolvedOptions().timeZone;

/** How the fields of a column are read, each choice with an example; nothing where they only stand for themselves. */
function Reading({ column, chosen, choose }: { column: ProposedColumn | undefined; chosen: string | undefined; choose: (reading: string) => void }) {
  if (!column || (!column.readings.length && !column.reading)) return null;
  const offered = column.readings.map(({ reading, field, value }) => [reading, `${field} → ${value} (${spoken(reading)})`] as const);
  const local = column.readings // clocks of this place, where fields name a time of day and no zone
    .filter(({ reading, field, value }) => value.endsWith("Z") && !field.endsWith("Z") && !reading.includes("@") && ZONE && ZONE !== "UTC")
    .map(({ reading, field }) => [`${reading}@${ZONE}`, `${field} in ${ZONE} (${spoken(reading)})`] as const);
  const value = chosen ?? (column.reading || (undecided(column) ? "" : PLAIN));
  const choices = [...offered, ...local.filter(([reading]) => offered.every(([other]) => other !== reading))];
  return (
    <select aria-label={`Reading of ${column.column}`} aria-invalid={!value} value={value} onChange={(event) => choose(event.currentTarget.value)}>
      {undecided(column) && !chosen && <option value="" disabled>choose a reading …</option>}
      <option value={PLAIN}>{column.examples[0] ?? ""} as it stands</option>
      {choices.map(([reading, label]) => <option key={reading} value={reading}>{label}</option>)}
      {value && value !== PLAIN && choices.every(([reading]) => reading !== value) && <option value={value}>{spoken(value)}</option>}
    </select>
  );
}

function spoken(reading: string): string {
  return reading.includes("/") && !reading.includes("@") ? reading.replace(/\/$/, "/nothing") : reading.replace("-", " ").replace("@", ", ");
}

/** Why a column gets its type, and what does not fit it. */
function Evidence({ column }: { column: ProposedColumn | undefined }) {
  if (!column) return null;
  const misfits = column.misfits.join(", ");
  if (column.doubt) return <span class="import-why warn" title={column.doubt}><bdi>{column.doubt}</bdi></span>;
  if (column.source === "object" && !column.reading && !misfits) return null;
  if (column.source === "file") return <span class="import-why">as the file says</span>;
  if (column.nearly) return <span class="import-why warn">{column.nearly}{column.nearly_reading && `, ${spoken(column.nearly_reading)},`} but for <bdi>{misfits}</bdi></span>;
  if (misfits) return <span class="import-why bad">rejects <bdi>{misfits}</bdi></span>;
  return <span class="import-why">{column.values ? `fits ${whole(column.values)} values` : "no value"}</span>;
}
