import react from "@vitejs/plugin-react";
import { defineConfig } from "vitest/config";

/** The page is carried by the Python package; `base` is relative so that it works under any address. */
export default defineConfig({
  base: "./",
  plugins: [react()],
  build: {
    outDir: "../src/pawl/ui/web/page",
    emptyOutDir: true,
    target: "es2022",
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
  },
  server: { host: "127.0.0.1", proxy: { "/api": process.env.PAWL_WEB ?? "http://127.0.0.1:8765" } },
  test: { environment: "node", include: ["src/**/*.test.{ts,tsx}"] },
});
