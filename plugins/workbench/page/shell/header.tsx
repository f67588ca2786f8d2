/** The header: which server, how well its driver is confined, what is guarded, and what to beware of. */

import { signal } from "@preact/signals";
import { useEffect, useState } from "preact/hooks";
import { forgetChanges, unsent } from "../state/change_list.ts";
import { forgetConsoles } from "../console/left.ts";
import type { OpenConnection } from "../messages.ts";
import { Badge, Button, asFailure } from "../ui/controls.tsx";
import { Dialog } from "../ui/dialog.tsx";
import { Icon } from "../ui/icons.tsx";
import { openMenu } from "../ui/menu.tsx";
import { toast } from "../ui/toasts.tsx";
import { call, leave } from "../wire/client.ts";
import { askToLeave } from "../state/leaving.tsx";
import { go, goUnasked, mayLeave, route } from "../state/route.ts";
import { broken, close, entry, link, opened, sidebarOpen, state, unlocking } from "../state/store.ts";
import { PALETTE_KEY, openKeys, openPalette } from "./shortcuts.tsx";
import { flipTheme, theme } from "./theme.ts";

const warningsOpen = signal(false);

export function Header() {
  const here = route.value;
  const name = "connection" in here ? here.connection : "";
  const open = opened.value.get(name);
  const warnings = [...(state.value?.warnings ?? []), ...(open?.warnings ?? []), ...(open?.server_notes ?? [])];
  const level = open?.sandbox ?? state.value?.sandbox ?? "";
  return (
    <header class="header">
      <span class="narrow-only">
        <Button
          icon="menu"
          label="Connections"
          bare
          tone="quiet"
          expanded={sidebarOpen.value}
          onClick={() => (sidebarOpen.value = !sidebarOpen.value)}
        />
      </span>
      <div class="header-server">
        {open ? (
          <>
            <strong>{open.connection}</strong>
            <span class="muted">
              {open.product} {open.server_version}
            </span>
          </>
        ) : (
          <strong>{name || "Workbench"}</strong>
        )}
      </div>
      <div class="header-badges">
        {level && <Sandbox level={level} />}
        {open?.guards.map((guard) => (
          <Badge key={guard} tone="accent" title={`Guard: ${guard}`}>{guard}</Badge>
        ))}
        {open?.production && <Lock open={open} />}
        {broken.value.has(name) && <Badge tone="bad" title={broken.value.get(name)}>no answer</Badge>}
        {warnings.length > 0 && (
          <button type="button" class="badge warn" onClick={() => (warningsOpen.value = true)}>
            <Icon name="warning" /> {warnings.length} {warnings.length > 1 ? "warnings" : "warning"}
          </button>
        )}
        <LinkState />
      </div>
      <div class="header-actions">
        <Button icon="search" label="Go to" title={`Go to … (${PALETTE_KEY})`} bare tone="quiet" onClick={openPalette} />
        <Button
          icon={theme.value === "dark" ? "sun" : "moon"}
          label={theme.value === "dark" ? "Light colours" : "Dark colours"}
          bare
          tone="quiet"
          onClick={flipTheme}
        />
        <Button icon="menu" label="More" bare tone="quiet" onClick={(event) => more(event, open)} />
      </div>
      {warningsOpen.value && (
        <Dialog title="Warnings" onClose={() => (warningsOpen.value = false)}>
          <ul class="plain-list">
            {warnings.map((text) => (
              <li key={text}>{text}</li>
            ))}
          </ul>
        </Dialog>
      )}
      {unlocking.value && <Unlock connection={unlocking.value} />}
    </header>
  );
}

function Sandbox({ level }: { level: string }) {
  const tone = level.startsWith("full") ? "good" : level.startsWith("off") ? "bad" : "warn";
  return (
    <Badge tone={tone} title={`The driver's sandbox: ${level}`}>
      <Icon name="shield" /> sandbox {level}
    </Badge>
  );
}

function LinkState() {
  if (link.value === "connected" || link.value === "connecting") return null;
  const text = link.value === "ended" ? "the workbench has ended" : "connection to the workbench lost";
  return <Badge tone="bad">{text}</Badge>;
}

function Lock({ open }: { open: OpenConnection }) {
  const [, tick] = useState(0);
  const left = open.unlocked_until ? open.unlocked_until - Date.now() / 1_000 : 0;
  useEffect(() => {
    if (left <= 0) return;
    const timer = setInterval(() => tick((count) => count + 1), 10_000);
    return () => clearInterval(timer);
  }, [open.unlocked_until]);
  const unlocked = left > 0;
  const lock = async () => {
    try {
      await call("unlock", { connection: open.connection, typed: open.connection, minutes: 0 });
    } catch (error) {
      toast(asFailure(error).message, "bad");
    }
  };
  return (
    <button
      type="button"
      class={unlocked ? "badge bad" : "badge accent"}
      title={unlocked ? "Production: writes are allowed. Lock now" : "Production: read-only. Unlock for a time"}
      onClick={() => (unlocked ? void lock() : (unlocking.value = open.connection))}
    >
      <Icon name={unlocked ? "unlock" : "lock"} />
      {unlocked ? `production, unlocked ${Math.ceil(left / 60)} min` : "production, read-only"}
    </button>
  );
}

function Unlock({ connection }: { connection: string }) {
  const [typed, setTyped] = useState("");
  const [failed, setFailed] = useState("");
  const done = () => (unlocking.value = "");
  const unlock = async () => {
    try {
      const now = await call("unlock", { connection, typed, minutes: 15 });
      opened.value = new Map(opened.value).set(connection, now);
      done();
    } catch (error) {
      setFailed(asFailure(error).message);
    }
  };
  return (
    <Dialog
      title={`Allow writes on ${connection}?`}
      onClose={done}
      footer={
        <>
          <Button label="Cancel" onClick={done} />
          <Button label="Unlock for 15 minutes" tone="danger" disabled={typed !== connection} onClick={() => void unlock()} />
        </>
      }
    >
      <p>This connection is marked as production. Type its name to allow writes for 15 minutes.</p>
      <label class="field">
        <span>Name of the connection</span>
        <input
          value={typed}
          autocomplete="off"
          onInput={(event) => setTyped(event.currentTarget.value)}
          onKeyDown={(event) => event.key === "Enter" && typed === connection && void unlock()}
        />
      </label>
      {failed && <p class="field-error" role="alert">{failed}</p>}
    </Dialog>
  );
}

function more(event: MouseEvent, open: OpenConnection | undefined): void {
  const anchor = (event.currentTarget as Element).getBoundingClientRect();
  const name = open?.connection ?? "";
  openMenu(
    "More",
    [
      {
        label: open ? `Close ${name}` : "No connection is open",
        icon: "close",
        disabled: !open,
        run: () => void closeAndGo(name),
      },
      { label: "Edit this connection", icon: "edit", disabled: !open, run: () => go({ view: "edit", connection: name }) },
      "line",
      { label: "Keys (?)", icon: "key", run: openKeys },
      { label: "Open another tab", icon: "add", run: () => void another() },
      { label: "Sign out", icon: "lock", run: () => void signOut() },
    ],
    anchor,
  );
}

async function closeAndGo(name: string): Promise<void> {
  if (!(await mayLeave())) return;
  try {
    await close(name);
    goUnasked({ view: "home" });
  } catch (error) {
    failed(error);
  }
}

async function signOut(): Promise<void> {
  const count = unsent();
  const what = count === 1 ? "A change is not sent" : `${count} changes are not sent`;
  const out = [{ label: "Sign out", tone: "danger" as const }];
  if (count && !(await askToLeave(what, <p>Signing out of this tab loses what is not sent.</p>, out))) return;
  try {
    await leave();
    forgetChanges();
    forgetConsoles();
    entry.value = "closed";
  } catch (error) {
    failed(error);
  }
}

function failed(error: unknown): void {
  toast(asFailure(error).message, "bad");
}

/** A further tab enters with a token of its own. */
async function another(): Promise<void> {
  try {
    const { token } = await call("token", {});
    window.open(`${location.pathname}#token=${encodeURIComponent(token)}`, "_blank", "noopener");
  } catch (error) {
    failed(error);
  }
}
