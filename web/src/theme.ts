/** Light, dark or as the system says; the choice is kept. */

import { useSyncExternalStore } from "react";

export type Theme = "system" | "light" | "dark";
const KEY = "pawl-theme";
const watchers = new Set<() => void>();

export const theme = (): Theme => (localStorage.getItem(KEY) as Theme | null) ?? "system";

export function applyTheme(next: Theme = theme()): void {
  localStorage.setItem(KEY, next);
  if (next === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = next;
  for (const watcher of watchers) watcher();
}

export function useTheme(): Theme {
  return useSyncExternalStore((watch) => {
    watchers.add(watch);
    return () => watchers.delete(watch);
  }, theme);
}
