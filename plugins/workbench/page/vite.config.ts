import { defineConfig } from "vite";

// The page runs under `script-src 'self'; style-src 'self'`: no inlined assets, no inline scripts.
export default defineConfig({
  base: "./",
  build: {
    outDir: process.env.PAGE_OUT ?? "../dragoman_workbench/page",
    emptyOutDir: true,
    target: "es2022",
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: true,
  },
});
