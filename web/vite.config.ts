import react from "@vitejs/plugin-react";
import { defineConfig } from "vitest/config";

/** `base` is relative so that the page works under any address. `scripts/web` builds it into the Python package. */
export default defineConfig({
  base: "./",
  plugins: [react()],
  build: {
    target: "es2022",
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
  },
  server: { host: "127.0.0.1", proxy: { "/api": process.env.PAWL_WEB ?? "http://127.0.0.1:8765" } },
  test: { environment: "node", include: ["src/**/*.test.{ts,tsx}"] },
});
