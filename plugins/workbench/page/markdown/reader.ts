/** The worker that reads Markdown: it can be ended, whatever a text makes the parser do. */

import { readMarkdown } from "./tree.ts";

addEventListener("message", ({ data }: MessageEvent<string>) => postMessage(readMarkdown(data)));
