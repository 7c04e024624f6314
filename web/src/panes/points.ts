/** Runs, entries and checkpoints as points on one line of time, the newest first. */

import { count, DELIVERY, money, seconds } from "../format";
import type { Checkpoint, Entry, Report, RunRow } from "../types";
import { tests } from "../work/tests";

export type Point = { key: string; time: string } & (
  | { kind: "run"; run: RunRow }
  | { kind: "entry"; entry: Entry }
  | { kind: "checkpoint"; checkpoint: Checkpoint }
);

/** Two runs as rows of a table; what is the same in both is left in, so that nothing has to be guessed. */
export function compared(one: Report, other: Report): string[][] {
  const of: [string, (report: Report) => string][] = [
    ["delivery", (report) => (report.delivery ? DELIVERY[report.delivery][0] : report.state)],
    ["verdict", (report) => report.verdict ?? "none"],
    ["tests", (report) => (report.after ? tests(report.after) : "not run")],
    ["files", (report) => report.changes.map((change) => change.path).join(", ") || "none"],
    ["model", (report) => report.model],
    ["requests", (report) => String(report.requests)],
    ["tokens", (report) => `${count(report.usage.input_tokens)} in, ${count(report.usage.output_tokens)} out`],
    ["cost", (report) => money(report.cost_usd)],
    ["time", (report) => seconds(report.seconds)],
  ];
  return of.map(([name, read]) => [name, read(one), read(other)]);
}

export function points(runs: RunRow[], entries: Entry[], checkpoints: Checkpoint[]): Point[] {
  const all: Point[] = [
    ...runs.map((run) => ({ key: `r${run.id}`, kind: "run" as const, time: run.created, run })),
    ...entries.map((entry) => ({ key: `e${entry.id}`, kind: "entry" as const, time: entry.created, entry })),
    ...checkpoints.map((one) => ({
      key: `c${one.id}`,
      kind: "checkpoint" as const,
      time: one.created,
      checkpoint: one,
    })),
  ];
  return all.sort((one, other) => Date.parse(other.time) - Date.parse(one.time));
}

/** A point of the history that others are compared with: it stands after an entry. */
export interface Mark {
  after: number;
  label: string;
}

/** The entries that were promoted and the checkpoints, each place once. */
export function marks(all: Point[]): Mark[] {
  const found = all.flatMap((point): Mark[] => {
    if (point.kind === "entry" && point.entry.state === "done")
      return [{ after: point.entry.id, label: `entry ${point.entry.id}: ${point.entry.title.slice(0, 60)}` }];
    if (point.kind === "checkpoint")
      return [{ after: point.checkpoint.after_entry ?? 0, label: `checkpoint ${point.checkpoint.name}` }];
    return [];
  });
  return [...new Map(found.toReversed().map((one) => [one.after, one])).values()].toReversed();
}
