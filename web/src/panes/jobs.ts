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
