/** The server's event stream: read with fetch, because an EventSource cannot send the secret. */

import type { ServerEvent } from "../messages.ts";
import { openStream } from "./client.ts";

export type Link = "connecting" | "connected" | "lost" | "ended";

/** Without a beat for so long the stream counts as lost; the server sends one every 15 seconds. */
const SILENCE = 40_000;
const WAITS = [500, 1_000, 2_000, 5_000];

/** Cut text into the `data` of its messages; what is not yet complete is kept for the next call. */
export class MessageReader {
  #rest = "";

  read(text: string): string[] {
    const parts = (this.#rest + text).replaceAll("\r\n", "\n").split("\n\n");
    this.#rest = parts.pop() ?? "";
    return parts.map(data).filter((found) => found !== "");
  }
}

function data(message: string): string {
  const lines = message.split("\n").filter((line) => line.startsWith("data:"));
  return lines.map((line) => line.slice(5).replace(/^ /, "")).join("\n");
}

/** Listen until `signal` ends it; a lost stream is opened again, and `again` tells so. */
export async function listen(
  signal: AbortSignal,
  heard: (event: ServerEvent) => void,
  link: (state: Link) => void,
): Promise<void> {
  let failures = 0;
  while (!signal.aborted) {
    try {
      const ended = await once(signal, (event) => {
        if (event.kind === "hello") {
          failures = 0;
          link("connected");
        }
        heard(event);
      });
      if (ended) return link("ended");
    } catch (error) {
      if (signal.aborted || (error as { code?: string }).code === "no-secret") return;
    }
    link("lost");
    await pause(WAITS[Math.min(failures, WAITS.length - 1)], signal);
    failures += 1;
  }
}

/** Read one stream to its end; true if the server said that it ends. */
async function once(signal: AbortSignal, heard: (event: ServerEvent) => void): Promise<boolean> {
  const silence = new AbortController();
  let timer = 0;
  const alive = () => {
    clearTimeout(timer);
    timer = window.setTimeout(() => silence.abort(), SILENCE);
  };
  alive();
  try {
    const stream = await openStream(AbortSignal.any([signal, silence.signal]));
    const reader = stream.pipeThrough(new TextDecoderStream() as ReadableWritablePair<string, Uint8Array>).getReader();
    const messages = new MessageReader();
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return false;
      alive();
      for (const text of messages.read(value)) {
        const event = JSON.parse(text) as ServerEvent;
        heard(event);
        if (event.kind === "bye") return true;
      }
    }
  } finally {
    clearTimeout(timer);
  }
}

function pause(milliseconds: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, milliseconds);
    signal.addEventListener("abort", () => (clearTimeout(timer), resolve()), { once: true });
  });
}
