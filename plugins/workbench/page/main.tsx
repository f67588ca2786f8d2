/** Where the page starts. */

import { render } from "preact";
import { App } from "./shell/app.tsx";
import { follow } from "./shell/route.ts";
import { begin } from "./shell/store.ts";
import { recallTheme } from "./shell/theme.ts";
import "./style/index.css";

const root = document.getElementById("page");
if (root) {
  render(<App />, root);
  follow();
  void begin().then(recallTheme);
}
