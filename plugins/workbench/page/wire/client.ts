/** Requests to the server: JSON by POST, with the secret in a header. */

import type { Action, Failed, RequestFailure, Routes, Uploaded } from "../messages.ts";

const STORED = "dragoman-secret";
let secret = stored();

/** Why a request failed, as the server says it. */
export class Failure extends Error {
  readonly code: string;
  readonly hint: string;
  readonly hintFrom: string;
  readonly field: string;
  readonly row: number | null;
  readonly remedy: Action | null;

  constructor(from: Partial<RequestFailure> & { code: string; message: string }) {
    super(from.message);
    this.code = from.code;
    this.hint = from.hint ?? "";
    this.hintFrom = from.hint_from ?? "";
    this.field = from.field ?? "";
    this.row = from.row ?? null;
    this.remedy = from.remedy ?? null;
  }
}

/** Called when the server no longer accepts the secret. */
let expired: () => void = () => {};

export function onExpired(action: () => void): void {
  expired = action;
}

/** Requests that write what the workbench's files hold. */
const WRITES = /^(connections\/(save|remove|add_samples|remove_samples)|plugins\/(install|update|rollback|pin|enable|disable|remove|repair))$/;
/** Milliseconds within which the workbench notices that its files have changed. */
const NOTICED = 3_000;
let written = -Infinity;
let writing = 0;

/** Whether what this tab wrote may just have been noticed. */
export function wroteLately(): boolean {
  return writing > 0 || performance.now() - written < NOTICED;
}

/** Send one request; raises Failure, or an AbortError if `signal` ends it. */
export async function call<R extends keyof Routes>(
  route: R,
  body: Routes[R][0],
  signal?: AbortSignal,
): Promise<Routes[R][1]> {
  const writes = WRITES.test(route) ? 1 : 0;
  writing += writes;
  try {
    const answer = await send(`api/${route}`, { method: "POST", body: JSON.stringify(body), signal });
    if (writes) written = performance.now();
    return (await answer.json()) as Routes[R][1];
  } finally {
    writing -= writes;
  }
}

/** Send a file that is to be imported; only its ending decides anything. `progressed` hears how many bytes were sent. */
export async function upload(file: File, signal: AbortSignal, progressed: (bytes: number) => void): Promise<Uploaded> {
  const headers = { "Content-Type": "application/octet-stream" };
  const path = `upload?name=${encodeURIComponent(file.name.slice(-200))}`;
  const answer = await send(path, { method: "POST", body: file, headers, signal }, sender(file, progressed));
  return (await answer.json()) as Uploaded;
}

/** Send like `fetch`, which cannot tell how much of a body was sent. */
function sender(file: File, progressed: (bytes: number) => void): typeof fetch {
  return (path, init) => new Promise((answered, failed) => {
    const request = new XMLHttpRequest();
    request.open("POST", String(path));
    for (const [name, value] of Object.entries(init?.headers as Record<string, string>)) request.setRequestHeader(name, value);
    request.upload.onprogress = ({ loaded }) => progressed(Math.min(loaded, file.size));
    request.onload = () => answered(new Response(request.response as string, { status: request.status }));
    request.onerror = () => failed(new TypeError("The request failed."));
    request.onabort = () => failed(new DOMException("The request was ended.", "AbortError"));
    const { signal } = init!;
    signal!.addEventListener("abort", () => request.abort(), { once: true });
    signal!.aborted ? request.onabort(new ProgressEvent("abort")) : request.send(file);
  });
}

/** Open the event stream. */
export async function openStream(signal: AbortSignal): Promise<ReadableStream<Uint8Array>> {
  const answer = await send("api/events", { signal });
  if (!answer.body) throw new Failure({ code: "no-stream", message: "The server sent no stream." });
  return answer.body;
}

async function send(path: string, init: RequestInit, by: typeof fetch = fetch): Promise<Response> {
  const headers: Record<string, string> = { "Content-Type": "application/json", ...(init.headers as Record<string, string>) };
  if (secret) headers["Dragoman-Secret"] = secret;
  let answer: Response;
  try {
    answer = await by(path, { ...init, keepalive: lasting(path, init), headers, cache: "no-store", credentials: "omit", redirect: "error" });
  } catch (error) {
    if ((error as Error).name === "AbortError") throw error;
    throw new Failure({ code: "unreachable", message: "The workbench's server does not answer.", hint: GONE });
  }
  if (answer.ok) return answer;
  const failure = await told(answer);
  if (answer.status === 401 && path !== "api/enter") {
    forget();
    expired();
  }
  throw failure;
}

/** What is remembered is sent even while the page is closed; browsers do so with small requests only. */
function lasting(path: string, { body }: RequestInit): boolean {
  return path === "api/preferences/set" && typeof body === "string" && body.length < 20_000;
}

const GONE = "The program that serves this page may have ended: start it again where it ran.";

async function told(answer: Response): Promise<Failure> {
  try {
    return new Failure(((await answer.json()) as Failed).error);
  } catch {
    return new Failure({ code: "no-answer", message: `The server answered with status ${answer.status}.` });
  }
}

export function hasSecret(): boolean {
  return !!secret;
}

/** Exchange the one-time token for the secret of this tab. */
export async function enter(token: string): Promise<void> {
  const entered = await call("enter", { token });
  secret = entered.secret;
  try {
    sessionStorage.setItem(STORED, secret);
  } catch {
    // without storage, the tab must be opened again after a reload
  }
}

/** End the secret, here and on the server. */
export async function leave(): Promise<void> {
  await call("leave", {});
  forget();
}

function forget(): void {
  secret = "";
  try {
    sessionStorage.removeItem(STORED);
  } catch {
    // nothing is stored
  }
}

function stored(): string {
  try {
    return globalThis.sessionStorage?.getItem(STORED) ?? "";
  } catch {
    return "";
  }
}
