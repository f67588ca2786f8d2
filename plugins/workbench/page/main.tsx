/** Where the page starts. */

import { render } from "preact";
import { App } from "./shell/app.tsx";
import { follow } from "./state/route.ts";
import { begin, entry } from "./state/store.ts";
import { recallTheme } from "./shell/theme.ts";
import "./style/index.css";

const root = document.getElementById("page");
if (root) {
  render(<App />, root);
  follow();
  void begin().then(recallTheme);
  // a new address in a tab whose secret has expired: no reload, and what was not sent is still there
  addEventListener("hashchange", () => {
    if (entry.value === "closed" && location.hash.startsWith("#token=")) void begin();
  });
}
