/** Where the page is: the pane and, for code, the file and line, in the fragment of the address. */

import { useSyncExternalStore } from "react";

export const PANES = ["work", "code", "proof", "time", "money", "preview", "settings"] as const;
export type Pane = (typeof PANES)[number];

export interface Route {
  pane: Pane | "components";
  path: string;
  line: number;
}

export function parseRoute(hash: string): Route {
  const [, pane = "work", rest = ""] = /^#\/(\w*)\/?(.*)$/.exec(hash) ?? [];
  const known = pane === "components" || (PANES as readonly string[]).includes(pane);
  let path = rest;
  try {
    path = decodeURIComponent(rest);
  } catch {
    // A path that is no valid encoding is taken as it stands.
  }
  const found = /^(.*?)(?::(\d+))?$/s.exec(path)!;
  return { pane: known ? (pane as Pane) : "work", path: found[1]!, line: Number(found[2] ?? 0) };
}

export function go(pane: Pane, path = "", line = 0): void {
  location.hash = `#/${pane}${path ? `/${encodeURIComponent(path).replaceAll("%2F", "/")}${line ? `:${line}` : ""}` : ""}`;
}

let asked = false;

/** The search is to be typed into, now or when the pane of it is there. */
export function askSearch(): void {
  asked = true;
  dispatchEvent(new Event("pawl-search"));
}

/** Calls `search` when it is asked for; returns what ends that. */
export function onSearch(search: () => void): () => void {
  const heard = () => {
    if (asked) search();
    asked = false;
  };
  heard();
  addEventListener("pawl-search", heard);
  return () => removeEventListener("pawl-search", heard);
}

const watch = (listener: () => void) => {
  addEventListener("hashchange", listener);
  return () => removeEventListener("hashchange", listener);
};

export function useRoute(): Route {
  return parseRoute(useSyncExternalStore(watch, () => location.hash));
}

/** Whether two panes fit side by side. */
export function useWide(): boolean {
  const query = matchMedia("(min-width: 800px)");
  return useSyncExternalStore(
    (listener) => {
      query.addEventListener("change", listener);
      return () => query.removeEventListener("change", listener);
    },
    () => query.matches,
  );
}
