/** The files that are open, with their editor states; they outlive the pane that shows them. */

import type { EditorState, Text } from "@codemirror/state";
import { useSyncExternalStore } from "react";
import type { OpenFile } from "./files";

export interface Tab {
  file: OpenFile;
  state: EditorState;
  /** `file.base` as CodeMirror keeps it, so that comparing costs little. */
  base: Text;
  dirty: boolean;
}

let tabs: ReadonlyMap<string, Tab> = new Map();
const watchers = new Set<() => void>();

function set(next: ReadonlyMap<string, Tab>): void {
  tabs = next;
  for (const watcher of watchers) watcher();
}

export const tabOf = (path: string): Tab | undefined => tabs.get(path);
export const putTab = (tab: Tab): void => set(new Map(tabs).set(tab.file.path, tab));

export function closeTab(path: string): void {
  const next = new Map(tabs);
  next.delete(path);
  set(next);
}

/** Keeps the editor's state without telling anybody, unless the file became dirty or clean. */
export function keep(path: string, state: EditorState): void {
  const tab = tabs.get(path);
  if (!tab) return;
  const dirty = !state.doc.eq(tab.base);
  if (dirty !== tab.dirty) putTab({ ...tab, state, dirty });
  else tab.state = state;
}

export function useTabs(): ReadonlyMap<string, Tab> {
  return useSyncExternalStore(
    (watch) => {
      watchers.add(watch);
      return () => watchers.delete(watch);
    },
    () => tabs,
  );
}

addEventListener("beforeunload", (event) => {
  if ([...tabs.values()].some((tab) => tab.dirty)) event.preventDefault();
});
