/** What an author wrote about a driver: formatted as soon as it is read, as plain text until then. */

import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";

/** The maximum number of characters that are formatted. */
const MOST = 100_000;

export function Prose({ text, empty }: { text: string; empty: string }) {
  const [shown, setShown] = useState<{ text: string; nodes: ComponentChildren } | null>(null);
  const [why, setWhy] = useState("");
  useEffect(() => {
    const stop = new AbortController();
    setWhy(text.length > MOST ? "it is too long" : "");
    if (text && text.length <= MOST) {
      import("./formatted.tsx")
        .then(({ format }) => format(text, stop.signal))
        .then((nodes) => setShown({ text, nodes }))
        .catch((error: unknown) => stop.signal.aborted || setWhy(error instanceof Error ? error.message : String(error)));
    }
    return () => stop.abort();
  }, [text]);
  if (!text) return <p class="muted">{empty}</p>;
  if (shown?.text === text) return <div class="markdown">{shown.nodes}</div>;
  return (
    <>
      {why && <p class="muted">Shown as it is written: {why}.</p>}
      <pre class="prose">{text}</pre>
    </>
  );
}
