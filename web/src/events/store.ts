/** The page's one store: the event stream, batched by animation frame, and the session's state beside it. */

import { useSyncExternalStore } from "react";
import { CONNECTED, command, get, Refused, readEvents } from "../api";
import type { CheckResult, SessionState, StreamEvent, Verified } from "../types";
import { EMPTY, type EventState, reduce } from "./reduce";

/** With the time, and the count of changes of files, at which the checks began. */
export interface Checked extends Verified {
  time: string;
  files: number;
}

export interface Store extends EventState {
  session: SessionState | null;
  connection: "connecting" | "connected" | "lost" | "refused";
  refusal: Refused | null;
  /** What the checks said of the workspace when they were asked for. */
  verified: Checked | null;
  /** What the quick checks said of it after the last save in the editor; newer than the others. */
  edited: CheckResult[] | null;
  /** Runs that were worked on here since the conversation was chosen; one that was stopped is in no record yet. */
  followed: readonly string[];
}

/** Events from before this page was opened that are read again; older ones come from the conversation's record. */
const BACKLOG = 4000;

let store: Store = {
  ...EMPTY,
  session: null,
  connection: "connecting",
  refusal: null,
  verified: null,
  edited: null,
  followed: [],
};
const listeners = new Set<() => void>();
let pending: StreamEvent[] = [];
let scheduled = false;

function set(change: Partial<Store>): void {
  store = { ...store, ...change };
  for (const listener of listeners) listener();
}

function flush(): void {
  scheduled = false;
  const events = pending;
  pending = [];
  const next = reduce(store, events);
  if (next === store) return;
  const asked = next.stateAsked !== store.stateAsked;
  // What the checks said is of a workspace that a run may now change.
  set(events.some((event) => event.type === "RunBegun") ? { ...next, verified: null, edited: null } : next);
  if (asked) void refresh();
}

function take(events: StreamEvent[]): void {
  if (store.connection !== "connected") set({ connection: "connected" });
  pending.push(...events);
  if (scheduled || pending.length === 0) return;
  scheduled = true;
  // A hidden tab paints no frame; its events are taken in all the same.
  if (document.hidden) setTimeout(flush, 250);
  else requestAnimationFrame(flush);
}

let refreshing = false;
let again = false;

/** Asks for the session's state; several wishes at a time are one request. */
export async function refresh(): Promise<void> {
  if (refreshing) {
    again = true;
    return;
  }
  refreshing = true;
  try {
    setSession(await get<SessionState>("/state"));
  } catch {
    // The stream says when the connection is lost, and asks again when it is back.
  } finally {
    refreshing = false;
  }
  if (again) {
    again = false;
    await refresh();
  }
}

export function setSession(session: SessionState): void {
  const { run } = session;
  const followed = run && !store.followed.includes(run) ? [...store.followed, run] : store.followed;
  // Whoever promoted or took back something, here, in another tab or in a terminal.
  const moved = store.session !== null && session.entry !== store.session.entry;
  set({ session, followed, filesChanged: store.filesChanged + Number(moved) });
  clearTimeout(asking);
  // A process that was killed tells nobody.
  if (session.elsewhere.length) asking = setTimeout(refresh, 5000);
}

let asking: ReturnType<typeof setTimeout>;

/** The user goes on with another conversation. */
export function setConversation(session: SessionState): void {
  set({ followed: [] });
  setSession(session);
}

/** A command that changes files or the history; whoever shows them reads them again. */
export async function change<T>(...words: string[]): Promise<T> {
  const body = await command<T>(...words);
  touched();
  await refresh();
  return body;
}

/** What a promotion says of itself, and what it left out. */
export interface Promoted {
  entry: number;
  verdict: string | null;
  held: { path: string; reason: string }[];
}

/** Promotes what was kept; in words what came of it. */
export async function promote(id: number | string): Promise<string> {
  const { entry, verdict, held } = await change<Promoted>("promote", String(id));
  const left = held.map((one) => `${one.path} (${one.reason})`).join(", ");
  return `promoted as entry ${entry}, ${verdict ?? "not verified"}${left && `; held back: ${left}`}`;
}

/** Runs the checks over the workspace as it stands. */
export async function verify(): Promise<void> {
  const began = { time: new Date().toISOString(), files: store.filesChanged };
  set({ checking: [] });
  try {
    set({ verified: { ...(await command<Verified>("verify")), ...began }, edited: null });
  } finally {
    set({ checking: null });
  }
}

let examining = false;
let once = false;

/** Runs the quick checks after a save, so that the editor marks what they find; saves meanwhile are one more time. */
export async function examine(): Promise<void> {
  once = true;
  if (examining) return;
  examining = true;
  try {
    while (once) {
      once = false;
      set({ edited: (await command<Verified>("verify", "--only", "syntax,types,lint")).steps });
    }
  } catch {
    // The marks stay as they were; Proof says why the checks cannot run.
  } finally {
    examining = false;
  }
}

/** Files of the workspace were changed by this page. */
export const touched = (): void => set({ filesChanged: store.filesChanged + 1 });

const wait = (milliseconds: number) => new Promise((resolve) => setTimeout(resolve, milliseconds));

let connecting = new AbortController();

/** Begins anew to connect, as with another token. */
export function reconnect(): void {
  connecting.abort();
  connecting = new AbortController();
  void connect(connecting.signal);
}

/** Connects and stays connected; ends only when the token is refused or the page goes. */
async function connect(signal: AbortSignal): Promise<void> {
  for (let attempt = 0; !signal.aborted; attempt += 1) {
    try {
      const session = await get<SessionState>("/state");
      if (signal.aborted) return;
      const last = store.session ? store.last : Math.max(0, session.last_event - BACKLOG);
      // A server that began anew counts from its own store; what we had is then of another one.
      const anew = last > session.last_event;
      set({ ...(anew ? EMPTY : { last }), connection: "connected", refusal: null });
      if (store.session) touched();
      else if (session.left) set({ followed: [session.left] });
      setSession(session);
      dispatchEvent(new Event(CONNECTED));
      attempt = 0;
      await readEvents(store.last, signal, take);
    } catch (error) {
      if (signal.aborted) return;
      if (error instanceof Refused && error.status === 401) {
        set({ connection: "refused", refusal: error });
        return;
      }
    }
    if (signal.aborted) return;
    set({ connection: "lost" });
    await wait(Math.min(5000, 300 * 2 ** attempt));
  }
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** A part of the store; the component renders again when that part is another value. */
export function useStore<T>(select: (store: Store) => T): T {
  return useSyncExternalStore(subscribe, () => select(store));
}

/** Whether somebody is working on the run, here or in another process. */
export const isAtWork = ({ session }: Store, run: string): boolean =>
  session !== null && (session.elsewhere.includes(run) || (session.working && session.run === run));

export const peek = (): Store => store;
