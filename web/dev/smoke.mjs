// Opens what was built in a real browser, with an empty workspace behind it: `node dev/smoke.mjs BROWSER`. The page
// must come up without an error.
import { mkdtempSync, readFileSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { extname, join, normalize } from "node:path";
import { chromium } from "playwright-core";
import { build } from "vite";

const KINDS = { ".html": "text/html", ".js": "text/javascript", ".css": "text/css" };
const STATE = {
  ...{ version: "", workspace: "/w", name: "w", model: "", models: [], conversation: "", working: false, run: null },
  ...{ elsewhere: [], waiting: null, queued: [], last_event: 0, page: { build: "", note: "" } },
  choices: { mode: "agent", approval: "final", model: "", reasoning: "", budget: { money: null, seconds: null } },
};
const ANSWERS = { "/api/state": STATE, "/api/files": { path: "", entries: [] }, "/api/files/all": { paths: [] } };

const folder = mkdtempSync(join(tmpdir(), "smoke-"));
await build({ logLevel: "error", build: { outDir: join(folder, "page") } });
const server = createServer((request, response) => {
  const path = normalize(new URL(request.url, "http://page").pathname);
  if (path === "/api/events") return response.writeHead(200, { "Content-Type": "text/event-stream" }).write(":\n\n");
  if (path.startsWith("/api/")) {
    const body = path === "/api/command" ? { exit_code: 0, body: {} } : (ANSWERS[path] ?? []);
    return response.writeHead(200, { "Content-Type": "application/json" }).end(JSON.stringify(body));
  }
  try {
    const body = readFileSync(join(folder, "page", path === "/" ? "index.html" : path));
    return response.writeHead(200, { "Content-Type": KINDS[extname(path)] ?? "text/html" }).end(body);
  } catch {
    return response.writeHead(404).end();
  }
});
await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));

const FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--no-zygote"];
const errors = [];
const options = { executablePath: process.argv[2], headless: true, args: FLAGS };
const browser = await chromium.launchPersistentContext(join(folder, "profile"), options).catch(() => {
  console.log("error: the browser does not start");
  process.exit(1);
});
try {
  const page = await browser.newPage();
  page.on("pageerror", (error) => errors.push(error.message.split("\n")[0]));
  await page.goto(`http://127.0.0.1:${server.address().port}/#token=smoke`);
  await page.waitForSelector("#root > *", { timeout: 15000 });
  await page.waitForSelector("textarea, input", { timeout: 5000 });
} catch (error) {
  errors.push(`the page does not come up (${error.message.split("\n")[0]})`);
} finally {
  await browser.close();
  server.close();
}
for (const one of new Set(errors)) console.log(`error: ${one}`);
process.exit(errors.length > 0 ? 1 : 0);
