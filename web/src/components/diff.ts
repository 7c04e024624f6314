/** Hunks as rows, and which of them are chosen. */

import type { ChangedFile, Hunk } from "../types";

export interface Row {
  sign: " " | "+" | "-" | "\\";
  text: string;
  old: number | null;
  now: number | null;
  /** What differs from the line whose place it took: from the first letter to before the second number. */
  mark?: [number, number];
}

/** The lines of a hunk with their numbers in both texts. */
export const rows = (hunk: Hunk): Row[] => marked(numbered(hunk));

function numbered(hunk: Hunk): Row[] {
  const found = /^@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@/.exec(hunk.header);
  if (!found)
    return hunk.lines.map((line) => ({ sign: line[0] as Row["sign"], text: line.slice(1), old: null, now: null }));
  let old = Number(found[1]);
  let now = Number(found[2]);
  return hunk.lines.map((line) => {
    const sign = (line[0] ?? " ") as Row["sign"];
    const text = line.slice(1);
    if (sign === "+") return { sign, text, old: null, now: now++ };
    if (sign === "-") return { sign, text, old: old++, now: null };
    if (sign === "\\") return { sign, text, old: null, now: null };
    return { sign: " ", text, old: old++, now: now++ };
  });
}

/** Lines that took the place of others show what changed within them, if enough of them stayed. */
function marked(all: Row[]): Row[] {
  for (const [old, now] of pairs(all)) {
    if (!old || !now || old === now) continue;
    const least = Math.min(old.text.length, now.text.length);
    let from = 0;
    while (from < least && old.text[from] === now.text[from]) from += 1;
    let end = 0;
    while (end < least - from && old.text.at(-1 - end) === now.text.at(-1 - end)) end += 1;
    const indent = Math.min(from, now.text.search(/\S|$/));
    if ((from + end - indent) * 3 <= least - indent) continue;
    // A letter of two units is not cut.
    if (/[\ud800-\udbff]$/.test(old.text.slice(0, from))) from -= 1;
    if (/^[\udc00-\udfff]/.test(old.text.slice(old.text.length - end))) end -= 1;
    for (const row of [old, now]) row.mark = [from, row.text.length - end];
  }
  return all;
}

/** The rows side by side: removed lines stand beside the added ones that took their place. */
export function pairs(all: Row[]): [Row | null, Row | null][] {
  const result: [Row | null, Row | null][] = [];
  let removed: Row[] = [];
  let added: Row[] = [];
  const flush = () => {
    for (let at = 0; at < Math.max(removed.length, added.length); at += 1)
      result.push([removed[at] ?? null, added[at] ?? null]);
    removed = [];
    added = [];
  };
  for (const row of all) {
    if (row.sign === "-") {
      if (added.length) flush();
      removed.push(row);
    } else if (row.sign === "+") added.push(row);
    else if (row.sign === " ") {
      flush();
      result.push([row, row]);
    }
  }
  flush();
  return result;
}

export const numbers = (files: readonly ChangedFile[]): number[] =>
  files.flatMap((file) => file.hunks.map((hunk) => hunk.number));

/** The choice with these hunks turned on or off. */
export function choose(chosen: ReadonlySet<number>, hunks: readonly number[], on: boolean): Set<number> {
  const next = new Set(chosen);
  for (const number of hunks) {
    if (on) next.add(number);
    else next.delete(number);
  }
  return next;
}

/** Whether all, none or some of a file's hunks are chosen. */
export function standing(chosen: ReadonlySet<number>, file: ChangedFile): "all" | "none" | "some" {
  const taken = file.hunks.filter((hunk) => chosen.has(hunk.number)).length;
  if (taken === file.hunks.length) return "all";
  return taken ? "some" : "none";
}

/** The `hunks` of an answer: empty when the change is taken as a whole, null when nothing of it is. */
export function answerHunks(chosen: ReadonlySet<number>, files: readonly ChangedFile[]): number[] | null {
  const all = numbers(files);
  const taken = all.filter((number) => chosen.has(number));
  if (taken.length === all.length) return [];
  return taken.length ? taken : null;
}

/** A patch text as files with hunks, for a patch that stands in a call. */
export function parsePatch(patch: string): ChangedFile[] {
  const files: ChangedFile[] = [];
  let number = 0;
  const lines = patch.split("\n");
  if (lines.at(-1) === "") lines.pop();
  for (let at = 0; at < lines.length; at += 1) {
    const line = lines[at]!;
    const next = lines[at + 1] ?? "";
    const hunk = files.at(-1)?.hunks.at(-1);
    if (line.startsWith("--- ") && next.startsWith("+++ ")) {
      const name = (next.slice(4) === "/dev/null" ? line : next)
        .slice(4)
        .replace(/^[ab]\//, "")
        .split("\t")[0]!;
      const what = line.slice(4) === "/dev/null" ? "added" : next.slice(4) === "/dev/null" ? "deleted" : "changed";
      files.push({ path: name, what, added: 0, removed: 0, binary: false, before: null, after: null, hunks: [] });
      at += 1;
    } else if (line.startsWith("@@") && files.length) {
      number += 1;
      files.at(-1)!.hunks.push({ number, header: line, lines: [] });
    } else if (hunk && /^[ +\-\\]/.test(line)) {
      hunk.lines.push(line);
      if (line[0] === "+") files.at(-1)!.added += 1;
      if (line[0] === "-") files.at(-1)!.removed += 1;
    } else if (hunk && line === "") hunk.lines.push(" ");
  }
  return files.filter((file) => file.hunks.length);
}

/** The change that the arguments of an edit ask for: a patch, or texts that take the place of others. */
export function editOf(given: Record<string, unknown>): ChangedFile[] {
  if (typeof given.patch === "string") return parsePatch(given.patch);
  const edits = (Array.isArray(given.edits) ? given.edits : [given]) as Record<string, unknown>[];
  const hunks = edits.flatMap((edit, at): Hunk[] => {
    if (typeof edit.new !== "string" && typeof edit.old !== "string") return [];
    const line = typeof edit.line === "number" ? edit.line : 0;
    const lines = [...signed("-", edit.old), ...signed("+", edit.new)];
    return [{ number: at + 1, header: line ? `@@ -${line} +${line} @@` : "", lines }];
  });
  if (!hunks.length || typeof given.path !== "string") return [];
  const number = (sign: string) => hunks.flatMap((hunk) => hunk.lines).filter((line) => line[0] === sign).length;
  const [added, removed] = [number("+"), number("-")];
  return [{ path: given.path, what: "changed", added, removed, binary: false, before: null, after: null, hunks }];
}

const signed = (sign: string, text: unknown): string[] =>
  typeof text === "string" && text !== ""
    ? text
        .replace(/\n$/, "")
        .split("\n")
        .map((line) => sign + line)
    : [];
