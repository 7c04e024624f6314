/**
 * Requests to the server: the token of the address, JSON both ways, errors as the server words them. Addresses are
 * relative: under `own/` the same page shows the workspace of its own sources.
 */

import type { StreamEvent } from "./types";

const KEY = "pawl-token";
/** An event of the window: the server answers, for the first time or again. */
export const CONNECTED = "pawl-connected";

const others = new BroadcastChannel(KEY);

/**
 * Takes the token out of the address, so that it stands in no history and no screenshot. A server that began anew has
 * another one: a tab that is told it, in its own address or by another tab, goes on where it was.
 */
export function takeToken(anew: () => void): void {
  const taken = () => {
    const found = /[#&]token=([^&]+)/.exec(location.hash);
    if (!found) return false;
    sessionStorage.setItem(KEY, decodeURIComponent(found[1]!));
    history.replaceState(null, "", `${location.pathname}#/work`);
    others.postMessage(decodeURIComponent(found[1]!));
    return true;
  };
  taken();
  addEventListener("hashchange", () => taken() && anew());
  others.onmessage = ({ data }) => {
    sessionStorage.setItem(KEY, String(data));
    anew();
  };
}

/** An answer that is no success; `advice` says what to do next. */
export class Refused extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
    readonly advice: string,
  ) {
    super(message);
  }
}

const UNAUTHORIZED = "this page has no valid token";
const REOPEN = "open the address that `pawl web` printed";

function headers(body: boolean): HeadersInit {
  const token = sessionStorage.getItem(KEY) ?? "";
  return { Authorization: `Bearer ${token}`, ...(body ? { "Content-Type": "application/json" } : {}) };
}

async function refusal(response: Response): Promise<Refused> {
  if (response.status === 401) return new Refused(401, "unauthorized", UNAUTHORIZED, REOPEN);
  const body = await response.json().catch(() => ({}));
  const message = body.message ?? `the server answered ${response.status}`;
  return new Refused(response.status, body.error ?? "", message, body.advice ?? "");
}

async function send<T>(method: string, path: string, body?: unknown): Promise<T> {
  let response: Response;
  try {
    response = await fetch(`api${path}`, {
      method,
      headers: headers(method !== "GET"),
      body: body === undefined ? null : JSON.stringify(body),
      cache: "no-store",
    });
  } catch {
    throw new Refused(0, "unreachable", "the server does not answer", "start it again with `pawl web`");
  }
  if (!response.ok) throw await refusal(response);
  return response.json() as Promise<T>;
}

export const get = <T>(path: string) => send<T>("GET", path);
export const post = <T>(path: string, body: unknown = {}) => send<T>("POST", path, body);
export const put = <T>(path: string, body: unknown) => send<T>("PUT", path, body);
export const remove = <T>(path: string) => send<T>("DELETE", path);

/** A path with its query, encoded. */
export function query(path: string, values: Record<string, string | number>): string {
  return `${path}?${new URLSearchParams(Object.entries(values).map(([key, value]) => [key, String(value)]))}`;
}

export interface CommandAnswer<T> {
  exit_code: number;
  body: T;
}

/** The body of a command of the command line; a failure is thrown with the command's own words. */
export async function command<T>(...words: string[]): Promise<T> {
  const answer = await post<CommandAnswer<T & { error?: string; message?: string; advice?: string }>>("/command", {
    words,
  });
  const { body } = answer;
  if (body && body.error !== undefined && body.message !== undefined)
    throw new Refused(answer.exit_code, String(body.error), body.message, body.advice ?? "");
  return body;
}

/** Splits what came of an event stream into whole events and the rest that is still to come. */
export function parseEvents(buffer: string): { events: StreamEvent[]; rest: string } {
  const parts = buffer.split("\n\n");
  const rest = parts.pop() ?? "";
  const events: StreamEvent[] = [];
  for (const part of parts) {
    const data = part
      .split("\n")
      .filter((line) => line.startsWith("data:"))
      .map((line) => line.slice(5).trimStart())
      .join("\n");
    if (data) events.push(JSON.parse(data));
  }
  return { events, rest };
}

/** Reads the event stream until it is lost or aborted. */
export async function readEvents(
  after: number,
  signal: AbortSignal,
  take: (events: StreamEvent[]) => void,
): Promise<void> {
  const response = await fetch(`api/events?after=${after}`, { headers: headers(false), signal, cache: "no-store" });
  if (!response.ok) throw await refusal(response);
  const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
  let buffer = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const { events, rest } = parseEvents(buffer + value.replaceAll("\r", ""));
    buffer = rest;
    take(events);
  }
}

export function nonce(): string {
  return document.querySelector<HTMLMetaElement>('meta[name="csp-nonce"]')?.content ?? "";
}
