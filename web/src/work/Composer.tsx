import { useEffect, useRef, useState } from "react";
import { post, remove } from "../api";
import { attempt, Button, toast } from "../components";
import { setSession, useStore } from "../events/store";
import type { SessionState } from "../types";

const DRAFT = "pawl-draft";

/** Where a request is written. While a run works, the words steer it, or wait for its end. */
export function Composer() {
  const [text, setText] = useState(() => sessionStorage.getItem(DRAFT) ?? "");
  const [busy, setBusy] = useState(false);
  const area = useRef<HTMLTextAreaElement>(null);
  const working = useStore((store) => store.session?.working ?? false);
  const queued = useStore((store) => store.session?.queued);
  const mode = useStore((store) => store.session?.choices.mode);
  useEffect(() => {
    const node = area.current!;
    node.style.height = "auto";
    node.style.height = `${Math.min(node.scrollHeight + 2, 260)}px`;
    sessionStorage.setItem(DRAFT, text);
  }, [text]);
  const send = async (queue: boolean) => {
    if (!text.trim() || busy) return;
    setBusy(true);
    const sent = await attempt(async () => {
      const { taken } = await post<{ taken: string }>("/requests", { text, queue });
      if (taken !== "begun") toast(taken === "queued" ? "it waits for the present request to end" : "said to the run");
    });
    setBusy(false);
    if (sent) setText("");
    area.current?.focus();
  };
  return (
    <form
      className="composer"
      aria-label="request"
      onSubmit={(event) => {
        event.preventDefault();
        void send(false);
      }}
    >
      {queued && queued.length > 0 && (
        <div className="queue">
          <span className="dim">follow-ups</span>
          <ol>
            {queued.map((one, key) => (
              <li key={key}>{one}</li>
            ))}
          </ol>
          <Button tone="quiet" onClick={() => attempt(async () => setSession(await remove<SessionState>("/queue")))}>
            Clear
          </Button>
        </div>
      )}
      <textarea
        ref={area}
        id="request"
        rows={2}
        value={text}
        aria-label="request"
        placeholder={
          working ? "Say something to the run…" : mode === "chat" ? "Ask about the workspace…" : "What is to be done?"
        }
        onChange={(event) => setText(event.target.value)}
        onKeyDown={(event) => {
          if (event.key !== "Enter" || event.shiftKey || event.nativeEvent.isComposing) return;
          event.preventDefault();
          void send(event.altKey);
        }}
      />
      <div className="actions">
        {working ? (
          <>
            <Button type="submit" tone="primary" busy={busy} disabled={!text.trim()} title="Enter">
              Steer
            </Button>
            <Button busy={busy} disabled={!text.trim()} onClick={() => send(true)} title="Alt+Enter">
              Queue
            </Button>
            <Button tone="danger" title="Ctrl+." onClick={stop}>
              Stop
            </Button>
          </>
        ) : (
          <Button type="submit" tone="primary" busy={busy} disabled={!text.trim()} title="Enter">
            Send
          </Button>
        )}
      </div>
    </form>
  );
}

/** Stops the run that works; it can be resumed. */
export function stop(): void {
  void attempt(async () => {
    const { stopped } = await post<{ stopped: boolean }>("/stop");
    toast(stopped ? "stopped; it can be resumed" : "nothing works");
  });
}
