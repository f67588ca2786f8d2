import { fileURLToPath } from "node:url";
import { defineConfig } from "vite";

const here = (path: string) => fileURLToPath(new URL(path, import.meta.url));

// The page runs under `script-src 'self'; style-src 'self'`: no inlined assets, no inline scripts.
export default defineConfig({
  base: "./",
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
