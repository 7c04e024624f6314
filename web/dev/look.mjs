// Drives the page in Chromium: `node dev/look.mjs ADDRESS FOLDER` walks through the panes, takes screenshots in both
// themes and three widths, and lists what axe finds and what the page reported as errors.
import { mkdtempSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { chromium } from "playwright-core";

const [address, folder] = process.argv.slice(2);
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"];
const browser = await chromium.launchPersistentContext(mkdtempSync(join(tmpdir(), "look-")), {
  executablePath: "/usr/bin/chromium",
  headless: true,
  bypassCSP: false,
  args: [...FLAGS, "--disable-component-update", "--disable-sync"],
});
const page = await browser.newPage();
page.on("pageerror", (error) => console.log("page error:", error.message));
page.on("console", (line) => line.type() === "error" && console.log("console:", line.text()));
page.on("request", (request) => {
  if (!request.url().startsWith(new URL(address).origin)) console.log("foreign request:", request.url());
});
await page.goto(address);
await page.waitForSelector(".app");
const panes = (process.env.PANES ?? "work,code,proof,time,money,settings,components").split(",");
for (const [width, height] of [
  [1400, 900],
  [800, 900],
  [360, 740],
]) {
  await page.setViewportSize({ width, height });
  for (const theme of ["light", "dark"]) {
    await page.emulateMedia({ colorScheme: theme });
    for (const pane of panes) {
      await page.evaluate(
        (hash) => {
          location.hash = hash;
        },
        pane === "code" ? `#/code/${process.env.FILE ?? ""}` : `#/${pane}`,
      );
      await page.waitForTimeout(700);
      await page.screenshot({ path: `${folder}/${pane}-${width}-${theme}.png` });
      // The policy of the page forbids scripts that are not its own, so that axe is evaluated through the debugger.
      await page.evaluate(axe);
      const { violations } = await page.evaluate(() => globalThis.axe.run({ resultTypes: ["violations"] }));
      for (const one of violations)
        console.log(
          `axe ${pane} ${width} ${theme} [${one.impact}] ${one.id}: ${one.nodes.length}, ${one.nodes[0].html.slice(0, 120)}`,
        );
    }
  }
}
await browser.close();
