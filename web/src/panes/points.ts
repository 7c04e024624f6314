/** Runs, entries and checkpoints as points on one line of time, the newest first. */

import type { Checkpoint, Entry, RunRow } from "../types";

export type Point = { key: string; time: string } & (
  | { kind: "run"; run: RunRow }
  | { kind: "entry"; entry: Entry }
  | { kind: "checkpoint"; checkpoint: Checkpoint }
);

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
