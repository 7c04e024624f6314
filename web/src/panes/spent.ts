/** Requests summed by run, in the order in which the runs began. */

import type { RequestRow } from "../types";

export interface Spent {
  run: string;
  /** Null when the price of one of its requests is unknown. */
  cost: number | null;
  input: number;
  output: number;
}

export function perRun(requests: readonly RequestRow[]): Spent[] {
  const runs = new Map<string, Spent>();
  for (const row of requests) {
    const sum = runs.get(row.run) ?? { run: row.run, cost: 0, input: 0, output: 0 };
    runs.set(row.run, {
      run: row.run,
      cost: sum.cost === null || row.cost_usd === null ? null : sum.cost + row.cost_usd,
      input: sum.input + row.input_tokens,
      output: sum.output + row.output_tokens,
    });
  }
  return [...runs.values()];
}
