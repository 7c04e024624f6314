/** The jobs of the queue as the page shows them. */

import type { Job } from "../types";

const ORDER = ["running", "waiting", "queued", "paused", "blocked"];

/** Those that are left, as they will come; then the newest that ended. */
export function arranged(jobs: Job[], most = 20): Job[] {
  const open = jobs.filter((one) => ORDER.includes(one.standing));
  open.sort((one, other) => ORDER.indexOf(one.standing) - ORDER.indexOf(other.standing) || one.id - other.id);
  const ended = jobs.filter((one) => !ORDER.includes(one.standing)).reverse();
  return [...open, ...ended].slice(0, most);
}

/** What can be done about a job: the words of the button, and of the command. */
export function actions(job: Job): [string, string][] {
  if (job.standing === "paused")
    return [
      ["Go on", "resume"],
      ["Cancel", "cancel"],
    ];
  if (ORDER.includes(job.standing))
    return [
      ["Pause", "pause"],
      ["Cancel", "cancel"],
    ];
  return job.standing === "done" ? [] : [["Again", "retry"]];
}

/** How many of each, in words. */
export function counted(jobs: Job[]): string {
  const counts = new Map<string, number>();
  for (const { standing } of jobs) counts.set(standing, (counts.get(standing) ?? 0) + 1);
  return [...counts].map(([standing, many]) => `${many} ${standing}`).join(", ");
}

export interface Pace {
  labels: string[];
  ended: number[];
  /** Seconds from added to taken, half of the jobs that were taken then; null where none was. */
  waited: (number | null)[];
}

/** How many jobs ended and how long they waited, in equal spans from the first that was taken to the last that ended. */
export function pace(jobs: Job[], spans = 12): Pace | null {
  const time = (moment: string | null) => (moment ? Date.parse(moment) : Number.NaN);
  const taken = jobs.filter((one) => one.started);
  const ends = jobs.filter((one) => one.started && one.ended).map((one) => time(one.ended));
  if (ends.length < 2) return null;
  const first = Math.min(...taken.map((one) => time(one.started)));
  const last = Math.max(...ends, ...taken.map((one) => time(one.started)));
  const at = (moment: number) =>
    Math.min(spans - 1, Math.floor(((moment - first) / Math.max(1, last - first)) * spans));
  const ended = new Array<number>(spans).fill(0);
  for (const end of ends) ended[at(end)]!++;
  const waits: number[][] = ended.map(() => []);
  for (const one of taken) waits[at(time(one.started))]!.push((time(one.started) - time(one.created)) / 1000);
  const half = (some: number[]) => some.sort((a, b) => a - b)[Math.floor((some.length - 1) / 2)] ?? null;
  const label = (span: number) => new Date(first + ((last - first) * span) / spans).toTimeString().slice(0, 5);
  return { labels: ended.map((_, span) => label(span)), ended, waited: waits.map(half) };
}
