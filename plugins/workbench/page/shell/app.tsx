/** The page as a whole. */

import { useEffect } from "preact/hooks";
import { ChangeBar } from "../changes/change_bar.tsx";
import { NewRow } from "../changes/new_row.tsx";
import { ConnectionView } from "../connections/connection_view.tsx";
import { ExportDialog } from "../export/export_dialog.tsx";
import { Home } from "../connections/home.tsx";
import { copying } from "../state/object_menu.ts";
import { FilterBar } from "../filter/filter_bar.tsx";
import { GlancePanel } from "../glance/glance_panel.tsx";
import { GlanceStrip } from "../glance/glance_strip.tsx";
import { GridPanel, type Panels } from "../grid/grid_panel.tsx";
import { CopyCommand, Blank, Waiting, lazily } from "../ui/controls.tsx";
import { isFocusFree } from "../ui/focus.ts";
import { MenuHost } from "../ui/menu.tsx";
import { Toasts } from "../ui/toasts.tsx";
import { Header } from "./header.tsx";
import { LeaveQuestion } from "../state/leaving.tsx";
import { Questions } from "./questions.tsx";
import { objectOf, route } from "../state/route.ts";
import { WhenOpen } from "./when_open.tsx";
import { Shortcuts } from "./shortcuts.tsx";
import { Sidebar } from "./sidebar.tsx";
import { entry, failure, sidebarOpen } from "../state/store.ts";

export function App() {
  if (entry.value === "entering") return <main class="center"><Waiting what="Opening the workbench …" /></main>;
  if (entry.value === "closed") return <Closed />;
  return (
    <div class="shell">
      <a class="skip" href="#main" onClick={toMain}>Skip to the content</a>
      <Sidebar />
      {sidebarOpen.value && <div class="shade" onClick={() => (sidebarOpen.value = false)} />}
      <div class="stage">
        <Header />
        <main id="main" tabIndex={-1}>
          <View />
        </main>
      </div>
      {copying.value && <CopyDialog {...copying.value} close={() => (copying.value = null)} />}
      <LeaveQuestion />
      <Questions />
      <MenuHost />
      <Shortcuts />
      <Toasts />
      <FocusInView />
    </div>
  );
}

/** Keys go on in the view that a key led to, rather than at the top of the page. */
function FocusInView() {
  const here = route.value;
  const connection = "connection" in here ? here.connection : "";
  useEffect(() => {
    if (isFocusFree()) document.getElementById("main")?.focus({ preventScroll: true });
  }, [here.view, connection, objectOf(here), here.view === "new" ? here.type : "", here.view === "drivers" ? here.driver : ""]);
  return null;
}

function toMain(event: Event): void {
  event.preventDefault();
  document.getElementById("main")?.focus();
}

const loadChart = () => import("../chart/time_chart.tsx");

const PANELS: Panels = {
  Filter: FilterBar,
  Strip: GlanceStrip,
  Glance: GlancePanel,
  Chart: lazily(async () => (await loadChart()).TimeChart),
  Changes: ChangeBar,
  RowEditor: lazily(async () => (await import("../changes/row_editor.tsx")).RowEditor),
  Refused: lazily(async () => (await import("../changes/refused_cells.tsx")).RefusedCells),
  NewRow,
  Export: ExportDialog,
};

const CopyDialog = lazily(async () => (await import("../import/copy_dialog.tsx")).CopyDialog);
const EditConnection = lazily(async () => (await import("../connections/editor.tsx")).EditConnection);
const NewConnection = lazily(async () => (await import("../connections/editor.tsx")).NewConnection);
const ConsoleView = lazily(async () => (await import("../console/console_view.tsx")).ConsoleView);
const DriverView = lazily(async () => (await import("../marketplace/driver_view.tsx")).DriverView);
const ExportsView = lazily(async () => (await import("../export/exports_view.tsx")).ExportsView);
const ImportView = lazily(async () => (await import("../import/import_view.tsx")).ImportView);
const Marketplace = lazily(async () => (await import("../marketplace/marketplace.tsx")).Marketplace);
const Structure = lazily(async () => (await import("../connections/structure.tsx")).Structure);

function View() {
  const here = route.value;
  switch (here.view) {
    case "home":
      return <Home />;
    case "new":
      return <NewConnection key={here.type} type={here.type} />;
    case "edit":
      return <EditConnection key={here.connection} name={here.connection} />;
    case "exports":
      return <ExportsView />;
    case "drivers":
      return here.driver ? <DriverView key={here.driver} id={here.driver} /> : <Marketplace />;
    case "connection":
      return <WhenOpen key={here.connection} name={here.connection} show={(open) => <ConnectionView open={open} />} />;
    case "console":
      return <WhenOpen key={here.connection} name={here.connection} show={(open) => <ConsoleView open={open} />} />;
    case "rows":
      loadChart().catch(() => {}); // while the server works on the rows; a chart that is shown says why it cannot be
      return (
        <WhenOpen
          key={here.connection}
          name={here.connection}
          show={(open) => <GridPanel key={here.rows.object} open={open} rows={here.rows} near={here.near ?? null} panels={PANELS} />}
        />
      );
    case "import":
      return (
        <WhenOpen
          key={here.connection}
          name={here.connection}
          show={(open) => <ImportView key={here.object} open={open} object={here.object} />}
        />
      );
    case "structure":
      return (
        <WhenOpen
          key={here.connection}
          name={here.connection}
          show={(open) => <Structure key={here.object} open={open} object={here.object} />}
        />
      );
  }
}

function Closed() {
  const failed = failure.value instanceof Error ? failure.value.message : "";
  return (
    <main class="center">
      <h1 class="unseen">dragoman workbench</h1>
      <Blank icon="lock" title="This tab is not signed in">
        <p>{failed || "It was signed out, was idle for too long, or was opened without a token."}</p>
        <p>Open the workbench again from a terminal:</p>
        <CopyCommand command="dragoman workbench" />
      </Blank>
      <Toasts />
    </main>
  );
}
