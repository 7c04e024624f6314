import { useEffect, useState } from "react";
import { post } from "./api";
import { attempt, Button } from "./components";
import { useStore } from "./events/store";
import { go } from "./place";

/** Under this address the page shows the workspace of its own sources: what is asked for there changes the page. */
export const OWN = location.pathname.endsWith("/own/");
/** Which build this page is of; empty for the one that came with Pawl. The script is put there by the server. */
const BUILD = document.querySelector<HTMLElement>("script[data-build]")?.dataset.build ?? "";
const FRAMED = window.top !== window;

/** Leads to the page's own sources, and back to the user's workspace. */
export function PageSwitch() {
  const [busy, setBusy] = useState(false);
  const waiting = useStore((store) => (OWN ? (store.session?.waiting?.run ?? "") : ""));
  useEffect(() => {
    if (waiting) go("preview");
  }, [waiting]);
  if (FRAMED) return null;
  if (OWN)
    return (
      <Button onClick={() => location.assign("../")} title="to the workspace that you work in">
        Back to work
      </Button>
    );
  const open = async () => {
    setBusy(true);
    const opened = await attempt(() => post<object>("/page/open"));
    setBusy(false);
    if (opened) location.assign("own/");
  };
  return (
    <Button tone="quiet" busy={busy} onClick={open} title="change this page: say what you would like otherwise">
      This page
    </Button>
  );
}

/** What became of the page itself: it was changed, it did not come up, an update did not fit. */
export function PageNote() {
  const page = useStore((store) => store.session?.page);
  const changed = !FRAMED && page !== undefined && page.build !== BUILD;
  useEffect(() => {
    if (changed && OWN) location.reload();
  }, [changed]);
  return (
    <div className="page-note" role="status">
      {OWN && !FRAMED && <span className="dim">Requests here change this page. It is shown as a preview first.</span>}
      {changed && (
        <span>
          This page was changed. <Button onClick={() => location.reload()}>Reload</Button>
        </span>
      )}
      {page?.note && (
        <span className="bad">
          {page.note} <Button onClick={() => attempt(() => post("/page/read"))}>Read</Button>
        </span>
      )}
    </div>
  );
}
