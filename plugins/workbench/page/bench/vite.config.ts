import { defineConfig } from "vite";

// Pages of the benchmark, outside the wheel.
export default defineConfig({
  root: import.meta.dirname,
  base: "./",
  build: {
    outDir: process.env.PAGE_OUT,
    emptyOutDir: true,
    target: "es2022",
    rolldownOptions: { input: ["ours.html", "revogrid.html"].map((name) => `${import.meta.dirname}/${name}`) },
  },
});
