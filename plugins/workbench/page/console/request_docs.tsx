/** The link to the page that explains the request under the cursor, which a driver names in its manifest. */

import { useEffect, useRef, useState } from "preact/hooks";
import type { ParsedRequest } from "../messages.ts";
import { call } from "../wire/client.ts";

/** Milliseconds without a key or a click before the request is looked at. */
const PAUSE = 300;
const LONGEST = 200_000;

interface Where {
  readonly text: string;
  readonly line: number;
}

/** The last request that begins at or before a line. */
export function under(requests: readonly ParsedRequest[], line: number): ParsedRequest | undefined {
  return requests.filter((one) => one.line <= line).at(-1) ?? requests[0];
}

/** The address of the page on the request under the cursor, and what to call when that may have changed. */
export function useRequestDocs(connection: string, variables: Readonly<Record<string, string>>, where: () => Where) {
  const [docs, setDocs] = useState("");
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  const stop = useRef<AbortController | null>(null);
  const look = async () => {
    stop.current?.abort();
    stop.current = new AbortController();
    const { text, line } = where();
    if (!text.trim() || text.length > LONGEST) return setDocs("");
    try {
      const { requests } = await call("console/parse", { connection, text, variables }, stop.current.signal);
      setDocs(safe(under(requests, line)?.docs ?? ""));
    } catch {
      // a text that is being written is often none yet: the link stays until it is
    }
  };
  const again = useRef(look);
  again.current = look;
  const moved = () => {
    clearTimeout(timer.current);
    timer.current = setTimeout(() => void again.current(), PAUSE);
  };
  useEffect(() => () => {
    clearTimeout(timer.current);
    stop.current?.abort();
  }, []);
  return { docs, moved };
}

/** An https address as it is, and nothing for any other text. */
function safe(address: string): string {
  return URL.canParse(address) && new URL(address).protocol === "https:" ? address : "";
}

export function RequestDocs({ address }: { address: string }) {
  if (!address) return null;
  const { host } = new URL(address);
  return (
    <a class="button quiet request-docs" href={address} target="_blank" rel="noopener noreferrer" title={`${address} (opens in a new tab)`}>
      <span>Documentation</span>
      <span class="muted">{host}</span>
    </a>
  );
}
