/** An open connection before an object is chosen. */

import type { OpenConnection } from "../messages.ts";
import { write } from "../state/route.ts";
import { sidebarOpen } from "../state/store.ts";
import { Badge, Button, Blank } from "../ui/controls.tsx";

export function ConnectionView({ open }: { open: OpenConnection }) {
  const facts: [string, string][] = [
    ["Server", `${open.product} ${open.server_version}`],
    ["Type", open.type],
    ["Driver", `${open.plugin} ${open.plugin_version}`],
    ["Sandbox", open.sandbox],
    ["Guards", open.guards.join(", ") || "none"],
  ];
  return (
    <div class="page">
      <h1>{open.connection}</h1>
      <dl class="facts">
        {facts.map(([name, value]) => (
          <div key={name}><dt>{name}</dt><dd>{value}</dd></div>
        ))}
      </dl>
      {[...open.warnings, ...open.server_notes].map((text) => (
        <p class="banner warn" key={text}>{text}</p>
      ))}
      <Blank icon="table" title="Choose an object">
        <p>The objects of this server are listed on the left.</p>
        <p class="actions center">
          <span class="narrow-only"><Button label="Show objects" onClick={() => (sidebarOpen.value = true)} /></span>
          {open.hooks.includes("parse_console") && (
            <a class="button plain" href={write({ view: "console", connection: open.connection })}>Open the console</a>
          )}
        </p>
      </Blank>
      <p class="capabilities">
        {open.capabilities.map((name) => <Badge key={name}>{name}</Badge>)}
      </p>
    </div>
  );
}
