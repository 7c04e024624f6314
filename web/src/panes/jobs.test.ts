import { expect, test } from "vitest";
import type { Job } from "../types";
import { actions, arranged, counted, pace } from "./jobs";

const job = (id: number, standing: string) => ({ id, standing }) as Job;
const jobs = [job(1, "done"), job(2, "queued"), job(3, "failed"), job(4, "running"), job(5, "queued")];

test("what runs and what is left comes first, then the newest that ended", () => {
  expect(arranged(jobs).map((one) => one.id)).toEqual([4, 2, 5, 3, 1]);
  expect(arranged(jobs, 2).map((one) => one.id)).toEqual([4, 2]);
});

test("a job is offered what the command line would do with it", () => {
  expect(actions(job(1, "done"))).toEqual([]);
  expect(actions(job(1, "failed"))).toEqual([["Again", "retry"]]);
  expect(actions(job(1, "paused"))[0]).toEqual(["Go on", "resume"]);
  expect(actions(job(1, "running")).map(([, word]) => word)).toEqual(["pause", "cancel"]);
});

test("the jobs are counted by their state", () => {
  expect(counted(jobs)).toBe("1 done, 2 queued, 1 failed, 1 running");
});

test("throughput and waiting are told over the time in which jobs were carried, once two have ended", () => {
  const at = (seconds: number) => new Date(Date.UTC(2026, 0, 1) + seconds * 1000).toISOString();
  const one = (created: number, started: number, ended: number | null) =>
    ({ created: at(created), started: at(started), ended: ended === null ? null : at(ended) }) as Job;
  expect(pace([one(0, 1, 2)])).toBeNull();
  const told = pace([one(0, 10, 20), one(0, 30, 110), one(100, 105, null)], 2)!;
  expect(told.ended).toEqual([1, 1]);
  expect(told.waited).toEqual([10, 5]);
});
