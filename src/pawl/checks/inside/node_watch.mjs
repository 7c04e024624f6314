// A reporter for Node's own test runner, given beside that for people: the last line begins with SIGN and tells which
// tests ran. An event of a suite comes after those of what it holds; a file that shows no test is one by itself.
import { relative, resolve } from "node:path";
import { deflateSync } from "node:zlib";

const outcome = (type, data) =>
  data.skip !== undefined || data.todo !== undefined ? "skipped" : type === "test:pass" ? "passed" : "failed";

export default async function* (source) {
  const ran = [];
  const open = new Map();
  for await (const { type, data } of source) {
    if (type !== "test:pass" && type !== "test:fail") continue;
    const file = data.file ? relative(process.cwd(), data.file) : "";
    const level = data.nesting;
    const waiting = open.get(file) ?? [];
    for (const one of waiting.filter((one) => one.level > level)) {
      one.titles.unshift(data.name);
      one.level = level;
    }
    const test = { level, titles: resolve(data.name) === data.file ? [] : [data.name], file, outcome: outcome(type, data), ms: data.details?.duration_ms ?? 0 };
    if (data.details?.type !== "suite") ran.push(test);
    open.set(file, level === 0 ? [] : [...waiting, test]);
  }
  const rows = ran.map((one) => [[one.file, ...one.titles].filter(Boolean).join(" > "), one.outcome, one.ms / 1000, null]);
  yield `\nSIGN ${deflateSync(JSON.stringify({ ran: rows })).toString("base64")}\n`;
}
