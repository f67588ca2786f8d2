// The conformance suite can send no token: add it to each request, which keeps its own Host and Origin.
import { Agent, setGlobalDispatcher } from "undici";

const authorization = `Bearer ${process.env.AGENT_TOKEN}`;

function withToken(headers) {
  if (Array.isArray(headers)) return [...headers, "authorization", authorization];
  const pairs = headers?.[Symbol.iterator] ? [...headers] : Object.entries(headers ?? {});
  return { ...Object.fromEntries(pairs), authorization };
}

setGlobalDispatcher(
  new Agent().compose((dispatch) => (options, handler) =>
    dispatch({ ...options, headers: withToken(options.headers) }, handler),
  ),
);
