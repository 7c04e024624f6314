/** Numbers and times as they are shown. */

import type { Standing } from "./types";

export { seconds } from "./events/reduce";

export const money = (value: number | null | undefined): string => {
  if (value === null || value === undefined) return "price unknown";
  if (value === 0) return "$0.00";
  return value < 0.01 ? `$${value.toFixed(4)}` : `$${value.toFixed(2)}`;
};

export const count = (value: number): string => {
  if (value >= 1_000_000) return `${(value / 1_000_000).toFixed(1)}M`;
  if (value >= 10_000) return `${Math.round(value / 1000)}k`;
  return value.toLocaleString("en");
};

export const clock = (iso: string): string =>
  new Date(iso).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", hour12: false });

export const day = (iso: string): string =>
  new Date(iso).toLocaleDateString([], { weekday: "short", year: "numeric", month: "short", day: "numeric" });

export const plural = (number: number, word: string): string => `${number} ${word}${number === 1 ? "" : "s"}`;

/** Output of a command without what only a terminal understands. */
const ESCAPES =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: escapes are what is taken out
  /\u001b(\[[0-9;?]*[ -/]*[@-~]|\][^\u0007\u001b]*(\u0007|\u001b\\)|[@-Z\\-_])|[\u0000-\u0008\u000b-\u001f\u007f]/g;
export const plain = (text: string): string => visible(text.replace(ESCAPES, ""));

/** Letters that turn the direction of a line, written out: what is approved reads as it runs. */
const TURNS = /[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;
export const visible = (text: string): string =>
  text.replace(TURNS, (letter) => `⟨U+${letter.charCodeAt(0).toString(16).toUpperCase().padStart(4, "0")}⟩`);

/** Letters of a line that are drawn; of more, the number is said. */
export const DRAWN = 4000;
export const line = (text: string): string =>
  visible(text.length > DRAWN ? `${text.slice(0, DRAWN)} ⟨… ${text.length - DRAWN} more letters⟩` : text);

/** The words for a delivery; never better than the report. */
export const DELIVERY = {
  DONE: ["done", "good"],
  PARTLY: ["partly", "warn"],
  NEEDS_WORK: ["not done", "bad"],
  UNVERIFIED: ["unverified", "warn"],
} as const;

export const VERDICT = {
  verified: "good",
  failed: "bad",
  unverified: "warn",
  "nothing to prove": "plain",
} as const;

const STANDING = { pass: ["✓", "good"], fail: ["✗", "bad"], skipped: ["–", "plain"] } as const;

/** The sign and the tone of a check; findings that do not count against the change are told, in a sign of their own. */
export function signOf(standing: Standing, told = false): readonly [string, string] {
  return told && standing === "fail" ? ["!", "warn"] : (STANDING[standing] ?? [standing, "plain"]);
}

/** A model as a list names it: a script by its file. */
export const shortModel = (model: string): string => model.replace(/^scripted:.*\//, "scripted:");
