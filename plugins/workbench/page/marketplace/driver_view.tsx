/** One driver: what it may do, who vouches, its versions, and what can be done with it here. */

import { useEffect, useState } from "preact/hooks";
import type { DriverPage, Report, VersionSummary } from "../messages.ts";
import { Prose } from "../markdown/prose.tsx";
import { sectionOf } from "../markdown/sections.ts";
import { recall } from "../state/preferences.ts";
import { changes, remedy } from "../state/store.ts";
import { Badge, Button, ErrorBox, Tabs, Waiting } from "../ui/controls.tsx";
import { Dialog } from "../ui/dialog.tsx";
import { fileSize } from "../ui/figures.ts";
import { openMenu } from "../ui/menu.tsx";
import { toast } from "../ui/toasts.tsx";
import { call } from "../wire/client.ts";
import { InstallProgress } from "./install_progress.tsx";
import { stateTone } from "./marketplace.tsx";

const TABS = ["Readme", "Versions", "Permissions", "Report", "Changelog"] as const;

export function DriverView({ id }: { id: string }) {
  const [page, setPage] = useState<DriverPage | null>(null);
  const [failed, setFailed] = useState<unknown>(null);
  const [busy, setBusy] = useState(false);
  const [tab, setTab] = useState<(typeof TABS)[number]>("Readme");
  const [removing, setRemoving] = useState(false);
  const [pinning, setPinning] = useState("");
  const [kept, setKept] = useState<Pinned | null>(null);
  const load = () => {
    call("plugins/show", { id }).then((now) => (setPage(now), setFailed(null)), setFailed);
    void recall<Pinned>(`pin/${id}`).then(setKept);
  };
  useEffect(load, [id, changes.value]);
  const run = async (work: () => Promise<unknown>, done?: string) => {
    setBusy(true);
    setFailed(null);
    try {
      await work();
      if (done) toast(done, "good");
      load();
    } catch (error) {
      setFailed(error);
    }
    setBusy(false);
  };
  if (!page) {
    return (
      <div class="page">
        <h1>{id}</h1>
        {failed === null ? <Waiting what="Reading the driver's page …" /> : <ErrorBox error={failed} retry={load} />}
      </div>
    );
  }
  const { driver } = page;
  const installed = page.rollback_versions.length > 0 || page.versions.some((one) => one.installed);
  const quarantined = page.versions.find((one) => one.installed && one.state === "quarantined");
  return (
    <div class="page">
      <a class="back" href="#/drivers">All drivers</a>
      <div class="toolbar">
        <h1 class="grow">{driver.label}</h1>
        {!installed && (
          <Button
            icon="export"
            label={`Install ${driver.version}`}
            tone="primary"
            busy={busy}
            why={driver.unavailable_here}
            onClick={() => void run(() => call("plugins/install", { id }))}
          />
        )}
        {driver.state === "update" && (
          <Button
            label={`Update to ${driver.version}`}
            tone="primary"
            busy={busy}
            why={driver.unavailable_here}
            onClick={() => void run(() => call("plugins/update", { id }))}
          />
        )}
        {installed && (
          <Button
            icon="menu"
            label="Manage"
            busy={busy}
            onClick={(event) => manage(event, page, run, () => setRemoving(true), setPinning)}
          />
        )}
      </div>
      <p class="card-badges">
        <Badge tone={stateTone(driver.state)}>{driver.state}</Badge>
        <Badge>{id} {driver.version}</Badge>
        <Badge>{driver.registry}</Badge>
        {page.pin && <Badge tone="accent">pinned to {page.pin}</Badge>}
        {page.licence && <Badge>{page.licence}</Badge>}
      </p>
      <p>{driver.summary}</p>
      {quarantined && <p class="banner bad" role="alert"><strong>Quarantined:</strong> {quarantined.reason}</p>}
      {page.pin && (
        <div class="banner pinned">
          <p>
            Pinned to {page.pin}: updates leave it there until it is unpinned.{" "}
            {kept?.version === page.pin && kept.why ? <>The reason given: <bdi>{kept.why}</bdi></> : "No reason was given; installing a chosen version pins it, too."}
          </p>
          <Button label="Unpin" busy={busy} onClick={() => void run(() => call("plugins/pin", { id, version: null }), "Unpinned")} />
        </div>
      )}
      {driver.unavailable_here && <p class="banner warn">{driver.unavailable_here}. Use a browser on a computer.</p>}
      {failed !== null && <ErrorBox error={failed} act={(wanted) => void remedy(wanted, load)} />}
      <InstallProgress />
      <dl class="facts">
        <div><dt>Reaches</dt><dd>{driver.reaches}</dd></div>
        <div><dt>Vouched for by</dt><dd>{page.publisher || "no publisher named"}</dd></div>
        {page.server_versions.length > 0 && <div><dt>Servers</dt><dd>{page.server_versions.join(", ")}</dd></div>}
        {driver.size > 0 && <div><dt>Size</dt><dd>{fileSize(driver.size)}</dd></div>}
        {page.used_by.length > 0 && <div><dt>Used by</dt><dd>{page.used_by.join(", ")}</dd></div>}
      </dl>
      <Tabs label="About this driver" names={TABS} chosen={tab} choose={setTab} panel="driver-tab" />
      <div role="tabpanel" id="driver-tab" aria-label={tab} class="tab-panel" tabIndex={0}>
        {tab === "Readme" && <Prose text={page.readme} empty="This driver has no readme." />}
        {tab === "Changelog" && <Prose text={page.changelog} empty="This driver has no changelog." />}
        {tab === "Versions" && <Versions page={page} install={(version) => void run(() => call("plugins/install", { id, version }))} />}
        {tab === "Permissions" && (
          <ul class="plain-list">{page.permissions.map((text) => <li key={text}>{text}</li>)}</ul>
        )}
        {tab === "Report" && <Conformance report={page.report} />}
      </div>
      {pinning && (
        <PinDialog
          label={driver.label} version={pinning} close={() => setPinning("")}
          pin={(why) => {
            setPinning("");
            const value = JSON.stringify({ version: pinning, why } satisfies Pinned);
            void run(async () => {
              await call("preferences/set", { key: `pin/${id}`, value });
              await call("plugins/pin", { id, version: pinning });
            }, `Pinned to ${pinning}`);
          }}
        />
      )}
      {removing && (
        <Dialog
          title={`Remove ${driver.label}?`}
          onClose={() => setRemoving(false)}
          footer={
            <>
              <Button label="Keep it" onClick={() => setRemoving(false)} />
              <Button
                label="Remove"
                tone="danger"
                onClick={() => (setRemoving(false), void run(() => call("plugins/remove", { id }), `${id} is removed`))}
              />
            </>
          }
        >
          <p>
            {page.used_by.length
              ? `These connections need it, and install it again when they open: ${page.used_by.join(", ")}.`
              : "No saved connection uses it."}
          </p>
        </Dialog>
      )}
    </div>
  );
}

/** Why somebody pinned a version, as this workbench remembers it. */
interface Pinned {
  readonly version: string;
  readonly why: string;
}

function PinDialog({ label, version, pin, close }: { label: string; version: string; pin: (why: string) => void; close: () => void }) {
  const [why, setWhy] = useState("");
  return (
    <Dialog
      title={`Pin ${label} to ${version}?`}
      onClose={close}
      footer={
        <>
          <Button label="Cancel" onClick={close} />
          <Button label="Pin it" tone="primary" onClick={() => pin(why.trim())} />
        </>
      }
    >
      <p>Updates leave the driver at this version until it is unpinned.</p>
      <label class="field">
        <span>Why, for whoever reads this page later</span>
        <input
          value={why} maxLength={300} autocomplete="off" onInput={(event) => setWhy(event.currentTarget.value)}
          onKeyDown={(event) => event.key === "Enter" && pin(why.trim())}
        />
      </label>
    </Dialog>
  );
}

type Run = (work: () => Promise<unknown>, done?: string) => Promise<void>;

function manage(event: MouseEvent, page: DriverPage, run: Run, remove: () => void, pin: (version: string) => void): void {
  const { id, state } = page.driver;
  const [active = "", ...earlier] = page.rollback_versions;
  const verify = async () => {
    const { faults } = await call("plugins/verify", { id });
    toast(faults.length ? `${faults.length} files differ: ${faults.slice(0, 3).join(", ")}` : "The installed files are intact.", faults.length ? "bad" : "good");
  };
  const disabled = state === "disabled";
  const elsewhere = { disabled: !!page.driver.unavailable_here, hint: page.driver.unavailable_here };
  openMenu(
    "Manage",
    [
      ...earlier.map((version) => ({
        label: `Roll back to ${version}`,
        icon: "back" as const,
        run: () => void run(() => call("plugins/rollback", { id, version }), `${version} is active`),
        ...elsewhere,
      })),
      page.pin
        ? { label: "Unpin", run: () => void run(() => call("plugins/pin", { id, version: null }), "Unpinned") }
        : { label: `Pin to ${active} …`, run: () => pin(active) },
      { label: "Verify the files", icon: "check", run: () => void run(verify) },
      { label: "Repair", icon: "refresh", run: () => void run(() => call("plugins/repair", { id }), "Repaired"), ...elsewhere },
      {
        label: disabled ? "Enable" : "Disable",
        run: () => void run(() => call(disabled ? "plugins/enable" : "plugins/disable", { id })),
      },
      "line",
      { label: "Remove", icon: "remove", danger: true, run: remove },
    ],
    (event.currentTarget as Element).getBoundingClientRect(),
  );
}

function Versions({ page, install }: { page: DriverPage; install: (version: string) => void }) {
  const here = page.versions.find((one) => one.installed);
  return (
    <>
      {page.skipped.map((text) => <p class="banner warn" key={text}>{text}</p>)}
      <div class="table-scroll">
        <table class="table">
          <thead>
            <tr><th scope="col">Version</th><th scope="col">State</th><th scope="col">Published</th><th scope="col">Size</th><th scope="col">Needs</th><th scope="col"><span class="unseen">Install</span></th></tr>
          </thead>
          <tbody>
            {page.versions.map((one) => (
              <VersionRow
                key={one.version} one={one} here={here} news={page.changelog && sectionOf(page.changelog, one.version)} silent={!page.changelog}
                why={page.driver.unavailable_here ?? ""} install={install}
              />
            ))}
          </tbody>
        </table>
      </div>
    </>
  );
}

function VersionRow({ one, here, news, silent, why, install }: {
  one: VersionSummary;
  here: VersionSummary | undefined;
  news: string;
  /** There is no changelog at all. */
  silent: boolean;
  why: string;
  install: (version: string) => void;
}) {
  const [open, setOpen] = useState(false);
  const differs = one.installed ? "" : differences(one, here);
  return (
    <>
      <tr>
        <th scope="row">{one.version}</th>
        <td>
          {one.installed && <Badge tone="good">installed</Badge>} {one.state && <Badge tone={one.state === "offered" ? "plain" : "warn"}>{one.state}</Badge>}
          {one.reason && <span class="muted"> {one.reason}</span>}
        </td>
        <td>{one.uploaded.slice(0, 10)}</td>
        <td>{one.size ? fileSize(one.size) : ""}</td>
        <td><code>{one.host_api}</code></td>
        <td>{!one.installed && one.state === "offered" && <Button label="Install" why={why} onClick={() => install(one.version)} title={`Install ${one.version}`} />}</td>
      </tr>
      <tr class="version-news">
        <td colSpan={6}>
          {differs && <p class="muted">Beside {here!.version}: {differs}.</p>}
          {news ? (
            <details onToggle={(event) => setOpen(event.currentTarget.open)}>
              <summary>What changed in {one.version}</summary>
              {open && <Prose text={news} empty="" />}
            </details>
          ) : !silent && (
            <p class="muted">The changelog says nothing of {one.version}.</p>
          )}
        </td>
      </tr>
    </>
  );
}

/** How a version differs from the installed one, as far as the registry says. */
function differences(one: VersionSummary, here: VersionSummary | undefined): string {
  if (!here) return "";
  const more = one.size - here.size;
  const size = one.size && here.size ? (more ? `${fileSize(Math.abs(more))} ${more > 0 ? "larger" : "smaller"}` : "as large") : "";
  const needs = one.host_api === here.host_api ? "the same needs" : `needs ${one.host_api} and not ${here.host_api}`;
  return [size, needs].filter(Boolean).join(", ");
}

function Conformance({ report }: { report: Report | null }) {
  if (!report) return <p class="muted">Its author published no report.</p>;
  return (
    <>
      <p>{report.summary}</p>
      <p class="muted">Sandbox: {report.sandbox}</p>
      <dl class="facts">
        {Object.entries(report.engines).map(([engine, counts]) => (
          <div key={engine}>
            <dt>{engine}</dt>
            <dd>{Object.entries(counts).map(([what, count]) => `${count} ${what}`).join(", ")}</dd>
          </div>
        ))}
      </dl>
      <ul class="plain-list">
        {report.failures.map((text) => <li key={text}><Badge tone="bad">failed</Badge> {text}</li>)}
        {report.deviations.map((text) => <li key={text}><Badge tone="warn">deviates</Badge> {text}</li>)}
      </ul>
    </>
  );
}
