/** Counts of tests in words, what failed first. */

import type { Counts } from "../types";

export const tests = (counts: Counts | null): string => {
  if (!counts) return "";
  const words = [
    [counts.failed, "failed"],
    [counts.errors, counts.errors === 1 ? "error" : "errors"],
    [counts.passed, "passed"],
    [counts.skipped, "skipped"],
  ] as const;
  return words.flatMap(([number, word]) => (number ? [`${number} ${word}`] : [])).join(", ") || "no tests";
};
