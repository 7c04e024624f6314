// Measures the page in Chromium: `node dev/measure.mjs ADDRESS FILE`. First paint, interactive, and of each thing
// that is done the longest task of the main thread: its processor time, which other programs do not lengthen, and how
// long it took by the clock. Prints one JSON object.
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { chromium } from "playwright-core";

const [address, file] = process.argv.slice(2);
const FLAGS = ["--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-component-update"];
const browser = await chromium.launchPersistentContext(mkdtempSync(join(tmpdir(), "measure-")), {
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  headless: true,
  chromiumSandbox: false,
  viewport: { width: 1400, height: 900 },
  args: [...FLAGS, "--disable-sync"],
});
const page = browser.pages()[0];
const session = await browser.newCDPSession(page);
const figures = {};

/** Does something under a trace, and keeps its longest task in milliseconds. */
async function traced(name, work) {
  const events = [];
  const take = ({ value }) => events.push(...value);
  session.on("Tracing.dataCollected", take);
  const categories = "disabled-by-default-devtools.timeline,devtools.timeline,toplevel,__metadata";
  await session.send("Tracing.start", {
    transferMode: "ReportEvents",
    traceConfig: { includedCategories: categories.split(",") },
  });
  await work();
  const ended = new Promise((resolve) => session.once("Tracing.tracingComplete", resolve));
  await session.send("Tracing.end");
  await ended;
  session.off("Tracing.dataCollected", take);
  const main = new Set(
    events
      .filter((one) => one.name === "thread_name" && one.args.name === "CrRendererMain")
      .map((one) => `${one.pid} ${one.tid}`),
  );
  const tasks = events.filter((one) => one.ph === "X" && /RunTask/.test(one.name) && main.has(`${one.pid} ${one.tid}`));
  const most = (key) => Math.round(Math.max(0, ...tasks.map((one) => one[key] ?? 0)) / 1000);
  const sum = Math.round(tasks.reduce((all, one) => all + (one.tdur ?? 0), 0) / 1000);
  figures[name] = { longest_cpu_ms: most("tdur"), longest_clock_ms: most("dur"), cpu_ms: sum };
}

/** Waits until the page has nothing to do. */
const idle = () => page.evaluate(() => new Promise((done) => requestIdleCallback(() => requestIdleCallback(done))));

const ready = ".connection .badge:not(:text-is('connecting'))";
// Interactive: a request can be written, and the page knows the state of the session.
await page.addInitScript(() => {
  const look = () => {
    const badge = document.querySelector(".connection .badge");
    if (badge && badge.textContent !== "connecting" && document.querySelector("#request"))
      window.ready = performance.now();
    else requestAnimationFrame(look);
  };
  requestAnimationFrame(look);
});
/** When something was first painted, and when a request could be written. */
const opened = () =>
  page.evaluate(() => ({
    first_paint_ms: Math.round(performance.getEntriesByName("first-contentful-paint")[0].startTime),
    interactive_ms: Math.round(window.ready),
  }));
await page.goto(address);
await page.waitForSelector(ready);
await page.waitForFunction(() => performance.getEntriesByName("first-contentful-paint").length > 0);
figures.cold = await opened();
const origin = new URL(address).origin;
await traced("load", async () => {
  await page.goto(`${origin}/?again#/work`);
  await page.waitForSelector(ready);
  await page.waitForSelector(".run");
  await idle();
});
figures.warm = await opened();
figures.scripts = await page.evaluate(() =>
  performance
    .getEntriesByType("resource")
    .filter((one) => one.name.endsWith(".js"))
    .map((one) => one.name.split("/").at(-1)),
);
await traced("scroll 2,000 events", async () => {
  for (const more of await page.locator(".earlier").all()) await more.click();
  await page.locator(".conversation").hover();
  for (let at = 0; at < 20; at += 1) await page.mouse.wheel(0, -800);
  await idle();
});
// As many events again, as they come, while somebody types and scrolls.
await traced("2,000 events as they come", async () => {
  const ended = await page.locator(".delivery").count();
  await page.locator("#request").fill("look at everything once more");
  await page.keyboard.press("Enter");
  for (let at = 0; (await page.locator(".delivery").count()) === ended; at += 1) {
    await page.locator("#request").focus();
    await page.keyboard.type("typed meanwhile ");
    await page.locator(".conversation").hover();
    await page.mouse.wheel(0, at % 2 ? 600 : -600);
  }
  await idle();
});
await page.locator("#request").fill("");
await traced("open 50,000 lines", async () => {
  await page.evaluate((path) => {
    location.hash = `#/code/${path}`;
  }, file);
  await page.waitForSelector(".editor .cm-line");
  await idle();
});
await traced("type and scroll in 50,000 lines", async () => {
  await page.locator(".editor .cm-content").click();
  await page.keyboard.press("Control+End");
  await page.keyboard.type("a few words at the end of the file\n");
  await page.locator(".editor .cm-scroller").hover();
  for (let at = 0; at < 20; at += 1) await page.mouse.wheel(0, -3000);
  await idle();
});
const SHOWN = {
  proof: "#pane .empty, .proof-step",
  time: ".timeline",
  money: ".plot",
  settings: "[aria-label=probes]",
};
for (const [pane, shown] of Object.entries(SHOWN))
  await traced(`open ${pane}`, async () => {
    await page.evaluate((name) => {
      location.hash = `#/${name}`;
    }, pane);
    await page.waitForSelector(shown);
    await idle();
  });
console.log(JSON.stringify(figures));
await browser.close();
