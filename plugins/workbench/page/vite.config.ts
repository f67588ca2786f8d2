import { writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { defineConfig, type Plugin } from "vite";

const here = (path: string) => fileURLToPath(new URL(path, import.meta.url));

const modules = new Set<string>();

// What the page and its workers are really built of, so that the licence of each package comes along.
const recordModules = (): Plugin => ({
  name: "record-modules",
  generateBundle(_options, bundle) {
    for (const output of Object.values(bundle))
      if (output.type === "chunk") for (const id of output.moduleIds) modules.add(id.replace("\0", "virtual:"));
    if (process.env.PAGE_MODULES) writeFileSync(process.env.PAGE_MODULES, JSON.stringify([...modules].sort()));
  },
});

// The page runs under `script-src 'self'; style-src 'self'`: no inlined assets, no inline scripts.
export default defineConfig({
  base: "./",
  plugins: [recordModules()],
  worker: { plugins: () => [recordModules()] },
  resolve: {
    alias: {
      // its version for browsers decodes `&amp;` with innerHTML, which the page's policy forbids
      "decode-named-character-reference": here("node_modules/decode-named-character-reference/index.js"),
    },
  },
  build: {
    outDir: process.env.PAGE_OUT ?? "../dragoman_workbench/page",
    emptyOutDir: true,
    target: "es2022",
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: true,
  },
});
