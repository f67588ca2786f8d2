/** Requests exactly as they will be sent. */

import type { PlannedRequest } from "../messages.ts";
import { pretty } from "../ui/json_text.ts";

export function Steps({ steps }: { steps: readonly PlannedRequest[] }) {
  return (
    <section aria-label="Exact requests">
      {steps.map(({ request, statement }, at) => (
        <div class="step" key={at}>
          {statement && <p>{statement}</p>}
          <pre class="request" tabIndex={0} aria-label={`Request ${at + 1}`}>
            <b>{request.method}</b> {request.path}
            {request.body ? `\n${bodyOf(request.body)}` : ""}
          </pre>
        </div>
      ))}
    </section>
  );
}

/** A body of one JSON text is laid out; lines of several stay as they are sent. */
function bodyOf(body: string): string {
  return body.trimEnd().includes("\n") ? body : pretty(body);
}
