import { useEffect, useRef, useState } from "react";
import { get, post } from "../api";
import { Badge, Button, Check, Empty, Output, Select, Spinner, Trouble, useLoaded, useWidth } from "../components";
import { useStore } from "../events/store";
import { plain, plural } from "../format";
import { OWN } from "../OwnPage";

interface Preview {
  running: boolean;
  url: string;
  framework: string;
  log: string[];
  /** Why it serves no more, if it has ended by itself. */
  ended: string;
}

/** Widths in which a page is looked at; a wider one than the pane is made smaller. */
const WIDTHS: ["0" | "390" | "768" | "1280", string][] = [
  ["0", "as wide as the pane"],
  ["390", "phone, 390"],
  ["768", "tablet, 768"],
  ["1280", "desktop, 1280"],
];
/** Milliseconds after which a server is asked whether it still serves, and what it has printed. */
const ASKED = 2000;
/** Of a server that left no word of its end. */
const GONE = "the dev server is gone: it was stopped elsewhere, or killed";

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
  const stood = useRef("");
  // One that does not come up, as with half an edit, is tried again after the next edit.
  const wanted = useRef(false);
  const preview = useLoaded(async () => {
    const found = await get<Preview>("/preview");
    if (found.running) stood.current = GONE;
    return { ...found, ended: found.ended || (found.running ? "" : stood.current) };
  }, `${files} ${asked} ${key}`);
  const { value } = preview;
  // A server that ends tells nobody.
  const { reload } = preview;
  const running = value?.running && !OWN;
  // biome-ignore lint/correctness/useExhaustiveDependencies: asked again after each answer
  useEffect(() => {
    if (!running || busy) return;
    const timer = setTimeout(() => document.hidden || reload(), ASKED);
    return () => clearTimeout(timer);
  }, [running, busy, value]);
  const [failure, setFailure] = useState<unknown>(null);
  const [width, setWidth] = useState<(typeof WIDTHS)[number][0]>("0");
  const frame = useRef<HTMLIFrameElement>(null);
  // What was shown stays until the server that starts has answered, in place of a page that is not there.
  const shown = useRef({ url: "", key: "" });
  if (value && !busy) shown.current = { url: value.url, key: `${files} ${key}` };
  const { url } = shown.current;
  const errors = useConsole(frame, url, shown.current.key);
  const act = async (what: "start" | "stop" | "change", given = {}) => {
    wanted.current = what !== "stop";
    setBusy(what);
    setFailure(null);
    await post(`/preview/${what === "stop" ? "stop" : "start"}`, given).catch(setFailure);
    stood.current = "";
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
    if ((value?.running || wanted.current) && !OWN) void act("start", { anew: true, run: bench });
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
        {value?.url && <Select label="width" bare value={width} options={WIDTHS} onChange={setWidth} />}
        {value?.framework && <Badge>{value.framework}</Badge>}
        {value?.url && !OWN && (
          <a className="mono ellipsis" href={value.url} target="_blank" rel="noreferrer" title="opens it in a tab">
            {value.url}
          </a>
        )}
        {busy && (
          <span className="dim nowrap">
            <Spinner label="" /> {busy === "stop" ? "it ends" : "it starts"}
          </span>
        )}
      </div>
      <Trouble error={preview.error ?? failure ?? (busy ? "" : value?.ended)} />
      {url ? (
        <Sized width={Number(width)}>
          <iframe
            key={shown.current.key}
            ref={frame}
            className="preview-frame"
            title="preview of the project"
            src={url}
            sandbox="allow-scripts allow-forms allow-same-origin"
            referrerPolicy="no-referrer"
          />
        </Sized>
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
        <details className="preview-log" open={Boolean(value.ended)}>
          <summary className="dim">what it prints</summary>
          <Output label="output of the dev server" follow text={plain(value.log.slice(-300).join("\n"))} />
        </details>
      )}
    </>
  );
}

/** Shows what is in it as on a screen of that width, smaller where there is no room; 0 takes all the room. */
function Sized({ width, children }: { width: number; children: React.ReactNode }) {
  const box = useRef<HTMLDivElement>(null);
  const scale = Math.min(1, useWidth(box) / (width || 1));
  const style = width ? { width, height: `${100 / scale}%`, transform: `scale(${scale})` } : {};
  return (
    <div ref={box} className={width ? "preview-place sized" : "preview-place"}>
      <div style={style}>{children}</div>
    </div>
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
