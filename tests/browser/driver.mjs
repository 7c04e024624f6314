// Chromium for the tests: each line on standard input names a tab and the calls that are made on it one after the
// other, as [name, arguments]; the value of the last one is answered as a line of JSON. What a page reports by itself
// (requests to elsewhere, dialogs, errors) is kept and asked for with ["told"].
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

const [web, profile, program, shots] = process.argv.slice(2);
const require = createRequire(pathToFileURL(join(web, "package.json")));
const { chromium } = require("playwright-core");
const axe = () => readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");
const FLAGS = "disable-gpu disable-quic no-first-run disable-background-networking disable-component-update disable-sync";
const browser = await chromium.launchPersistentContext(profile, {
  executablePath: program,
  headless: true,
  chromiumSandbox: false,
  args: FLAGS.split(" ").map((flag) => `--${flag}`),
});
browser.setDefaultTimeout(120_000);
const tabs = new Map();

function opened(page) {
  let declines = false;
  const told = { foreign: [], dialogs: [], errors: [] };
  const own = () => new URL(page.mainFrame().url()).origin;
  page.on("request", (request) => {
    const { origin } = new URL(request.url());
    if (request.frame().parentFrame() === null && !request.isNavigationRequest() && origin !== own())
      told.foreign.push(request.url().slice(0, 200));
  });
  page.on("dialog", (dialog) => {
    told.dialogs.push(`${dialog.type()}: ${dialog.message()}`);
    void (declines ? dialog.dismiss() : dialog.accept());
  });
  page.on("pageerror", (error) => told.errors.push(error.message));
  page.on("console", (line) => {
    // A server that is gone, or says no, is no defect of the page.
    if (line.type() === "error" && !/Failed to load resource/.test(line.text())) told.errors.push(line.text());
  });
  page.on("popup", (other) => told.foreign.push(`window: ${other.url()}`));
  const extras = {
    told: (taken) => {
      if (!taken) return told;
      const found = told[taken];
      told[taken] = [];
      return found;
    },
    decline: (yes) => {
      declines = yes;
    },
    locator: (...given) => page.locator(...given),
    audit: async () => {
      // The policy of the page forbids scripts that are not its own, so that axe is evaluated through the debugger.
      await page.evaluate(axe());
      const { violations } = await page.evaluate(() => globalThis.axe.run({ resultTypes: ["violations"] }));
      return violations.map((one) => `${one.impact} ${one.id}: ${one.nodes.map((node) => node.html.slice(0, 160))}`);
    },
    mark: (given) => browser.newCDPSession(page).then((session) => session.send(...given)),
  };
  return { page, extras };
}

async function carried({ tab, calls }) {
  if (!tabs.has(tab)) tabs.set(tab, opened(tabs.size ? await browser.newPage() : (browser.pages()[0] ?? (await browser.newPage()))));
  const { page, extras } = tabs.get(tab);
  let on = page;
  for (const [name, given] of calls) {
    if (name in extras && on === page) on = await extras[name](...given);
    else {
      const part = on[name];
      on = await (typeof part === "function" ? part.apply(on, given) : part);
    }
  }
  return on === undefined || on?.constructor?.name?.match(/Locator|Page|Frame|Response/) ? null : on;
}

for await (const line of createInterface({ input: process.stdin })) {
  let said;
  try {
    said = { value: (await carried(JSON.parse(line))) ?? null };
  } catch (error) {
    await tabs.get(JSON.parse(line).tab)?.page.screenshot({ path: join(shots, "failed.png") }).catch(() => {});
    said = { error: error.message };
  }
  process.stdout.write(`${JSON.stringify(said)}\n`);
}
await browser.close();
