import { useEffect, useRef, useState } from "react";
import { get, post } from "../api";
import { attempt, Badge, Button, Check, Empty, Output, Spinner, Trouble, useLoaded } from "../components";
import { useStore } from "../events/store";
import { plain, plural } from "../format";
import { OWN } from "../OwnPage";

interface Preview {
  running: boolean;
  url: string;
  framework: string;
  log: string[];
}

/** Errors of the framed page that are kept. */
const KEPT = 100;
/** Milliseconds without an edit after which the frame is loaded anew. */
const SETTLED = 600;

/** The project's dev server, on a bench and of another origin, in a frame that cannot reach this page. */
export default function PreviewPane() {
  const files = useSettled(useStore((store) => store.filesChanged));
  const asked = useStore((store) => store.stateAsked);
  const waiting = useStore((store) => store.session?.waiting);
  const [key, setKey] = useState(0);
  const [busy, setBusy] = useState("");
  const preview = useLoaded(() => get<Preview>("/preview"), `${files} ${asked} ${key}`);
  const { value } = preview;
  const frame = useRef<HTMLIFrameElement>(null);
  const errors = useConsole(frame, value?.url ?? "", `${files} ${key}`);
  const act = async (what: "start" | "stop" | "change", given = {}) => {
    setBusy(what);
    await attempt(() => post(`/preview/${what === "stop" ? "stop" : "start"}`, given));
    setBusy("");
    setKey((old) => old + 1);
  };
  // While a run works its bench is served, as it stands after each edit; afterwards the workspace. A file that is
  // replaced, as a promotion does, is seen by a server that starts anew.
  const [follows, setFollows] = useState(true);
  const live = useStore(({ session }) => (session?.working ? session.run : session?.elsewhere[0]) ?? "");
  const edits = useStore((store) => store.runs.get(live)?.edits ?? 0);
  const entry = useStore((store) => store.session?.entry ?? 0);
  const bench = follows && edits > 0 ? live : "";
  const aim = useSettled(bench ? `${bench} ${edits}` : `entry ${entry}`);
  const served = useRef(aim);
  // biome-ignore lint/correctness/useExhaustiveDependencies: only another aim is a reason, once nothing is under way
  useEffect(() => {
    // The work of a run that waits for an answer stays in sight.
    if (busy || served.current === aim || (waiting && !bench)) return;
    served.current = aim;
    if (value?.running && !OWN) void act("start", { anew: true, run: bench });
  }, [aim, busy, waiting]);
  const change = waiting?.question.kind === "change" ? waiting.run : "";
  return (
    <>
      <div className="bar">
        {value?.running ? (
          <Button busy={busy === "stop"} onClick={() => act("stop")}>
            Stop
          </Button>
        ) : (
          <Button busy={busy === "start"} tone="primary" onClick={() => act("start", { run: bench })}>
            Start the dev server
          </Button>
        )}
        {change && (
          <Button
            busy={busy === "change"}
            onClick={() => act("change", { anew: true, run: change })}
            title="serves the change that waits for you, before it is promoted"
          >
            With the change that waits
          </Button>
        )}
        {value?.running && <Button onClick={() => setKey(key + 1)}>Reload</Button>}
        {!OWN && <Check label="follow the run" checked={follows} onChange={setFollows} />}
        {value?.framework && <Badge>{value.framework}</Badge>}
        {value?.url && <span className="mono dim ellipsis">{value.url.split("#")[0]}</span>}
        {busy && <Spinner label="the dev server starts" />}
      </div>
      <Trouble error={preview.error} />
      {value?.url ? (
        <iframe
          key={`${files} ${key}`}
          ref={frame}
          className="preview-frame"
          title="preview of the project"
          src={value.url}
          sandbox="allow-scripts allow-forms allow-same-origin"
          referrerPolicy="no-referrer"
        />
      ) : (
        <div className="scroll" tabIndex={0}>
          {value && (
            <Empty icon="preview">
              The dev server runs on a bench: what a run makes can be looked at before it is promoted.
            </Empty>
          )}
        </div>
      )}
      {errors.length > 0 && (
        <details className="preview-log" open>
          <summary className="bad">{plural(errors.length, "error")} in the console</summary>
          <Output label="errors in the console" text={plain(errors.join("\n"))} />
        </details>
      )}
      {value && value.log.length > 0 && (
        <details className="preview-log">
          <summary className="dim">what it prints</summary>
          <Output label="output of the dev server" text={plain(value.log.slice(-300).join("\n"))} />
        </details>
      )}
    </>
  );
}

/** A count that has stood still for a moment: several edits are one reload. */
function useSettled<T>(value: T): T {
  const [settled, setSettled] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(value), SETTLED);
    return () => clearTimeout(timer);
  }, [value]);
  return settled;
}

/** The errors that the framed page tells of; only that frame, at that origin, is listened to. */
function useConsole(frame: React.RefObject<HTMLIFrameElement | null>, url: string, key: string): string[] {
  const [errors, setErrors] = useState<string[]>([]);
  // biome-ignore lint/correctness/useExhaustiveDependencies: a page that is loaded anew begins without errors
  useEffect(() => {
    setErrors([]);
    if (!url) return;
    const heard = ({ data, origin, source }: MessageEvent) => {
      if (source !== frame.current?.contentWindow || origin !== new URL(url).origin) return;
      if (typeof data?.pawlConsole === "string") setErrors((old) => [...old, data.pawlConsole].slice(-KEPT));
    };
    addEventListener("message", heard);
    return () => removeEventListener("message", heard);
  }, [frame, url, key]);
  return errors;
}
