import { useEffect, useRef, useState } from "react";
import { get, post, remove } from "../api";
import { attempt, Button, Dialog, Icon, Output, toast, useLoaded } from "../components";
import { refresh, setConversation, setSession, touched, useStore } from "../events/store";
import { plain } from "../format";
import type { SessionState } from "../types";

const DRAFT = "pawl-draft";

interface Taken {
  taken: "begun" | "steered" | "queued" | "command" | "chosen" | "doing" | "waits";
  exit_code?: number;
  text?: string;
}

const WAITS = "it waits for the present request to end";
const SAID = { begun: "", command: "", doing: "", steered: "said to the run", queued: WAITS, waits: WAITS };

/** Sends a request, or a command such as `/undo`; what a command said is returned. */
export async function sendRequest(text: string, queue = false): Promise<string> {
  const answer = await post<Taken>("/requests", { text, queue });
  if (answer.taken === "chosen") {
    const session = await get<SessionState>("/state");
    if (session.conversation === "") setConversation(session);
  } else if (SAID[answer.taken]) toast(SAID[answer.taken]);
  if (answer.taken === "command") touched();
  if (answer.taken === "command" || answer.taken === "chosen") await refresh();
  const ended = answer.exit_code ? `it failed (exit code ${answer.exit_code})` : "done";
  return answer.taken === "command" ? answer.text || ended : "";
}

/** Where a request is written. While a run works, the words steer it, or wait for its end. */
export function Composer() {
  const [text, setText] = useState(() => sessionStorage.getItem(DRAFT) ?? "");
  const [busy, setBusy] = useState(false);
  const [said, setSaid] = useState({ command: "", text: "" });
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
    const sent = await attempt(async () => setSaid({ command: text, text: await sendRequest(text, queue) }));
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
        className="request"
        ref={area}
        id="request"
        rows={1}
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
      {text.startsWith("/") && <Hints text={text} onChoose={setText} />}
      <Dialog title={said.command} open={said.text !== ""} onClose={() => setSaid({ command: "", text: "" })}>
        <Output label="what the command said" text={plain(said.text)} />
      </Dialog>
      <div className="actions">
        <small className="dim roomy">Enter sends · Shift+Enter a new line · / lists commands</small>
        <span className="spring" />
        {working ? (
          <>
            <Button type="submit" tone="primary" busy={busy} disabled={!text.trim()} title="Enter">
              Steer
            </Button>
            <Button busy={busy} disabled={!text.trim()} onClick={() => send(true)} title="Alt+Enter">
              Queue
            </Button>
            <Button tone="danger" title="Ctrl+." onClick={stop}>
              <Icon name="stop" />
              Stop
            </Button>
          </>
        ) : (
          <Button type="submit" tone="primary" busy={busy} disabled={!text.trim()} title="Enter">
            <Icon name="send" />
            Send
          </Button>
        )}
      </div>
    </form>
  );
}

/** The commands that begin as the text does. */
function Hints({ text, onChoose }: { text: string; onChoose: (text: string) => void }) {
  const commands = useLoaded(() => get<{ usage: string; help: string }[]>("/commands"), "");
  const name = text.split(" ")[0]!;
  const hits = (commands.value ?? []).filter(({ usage }) =>
    text.includes(" ") ? usage.split(" ")[0] === name : usage.startsWith(name),
  );
  if (!hits.length) return null;
  return (
    <ul className="hints" aria-label="commands">
      {hits.slice(0, 8).map(({ usage, help }) => (
        <li key={usage}>
          <button type="button" className="row-button" onClick={() => onChoose(`${usage.split(" ")[0]} `)}>
            <span className="mono nowrap">{usage}</span> <span className="dim ellipsis">{help}</span>
          </button>
        </li>
      ))}
    </ul>
  );
}

/** Stops the run that works; it can be resumed. */
export function stop(): void {
  void attempt(async () => {
    const { stopped } = await post<{ stopped: boolean }>("/stop");
    toast(stopped ? "stopped; it can be resumed" : "nothing works");
  });
}
