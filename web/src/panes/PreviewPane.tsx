import { useEffect, useState } from "react";
import { get, post } from "../api";
import { attempt, Badge, Button, Empty, Output, Spinner, Trouble, useLoaded } from "../components";
import { useStore } from "../events/store";
import { plain } from "../format";

interface Preview {
  running: boolean;
  url: string | null;
  framework: string;
  log: string[];
}

/** The project's dev server, on a bench and of another origin, in a frame that cannot reach this page. */
export default function PreviewPane() {
  const files = useStore((store) => store.filesChanged + store.stateAsked);
  const [key, setKey] = useState(0);
  const [busy, setBusy] = useState(false);
  const preview = useLoaded(() => get<Preview>("/preview"), `${files} ${key}`);
  const { value } = preview;
  const starting = value?.running && !value.url;
  useEffect(() => {
    if (!starting) return;
    const timer = setTimeout(() => setKey((old) => old + 1), 1000);
    return () => clearTimeout(timer);
  });
  const act = async (what: "start" | "stop") => {
    setBusy(true);
    await attempt(() => post(`/preview/${what}`));
    setBusy(false);
    setKey(key + 1);
  };
  return (
    <>
      <div className="bar">
        {value?.running ? (
          <Button busy={busy} onClick={() => act("stop")}>
            Stop
          </Button>
        ) : (
          <Button busy={busy} tone="primary" onClick={() => act("start")}>
            Start the dev server
          </Button>
        )}
        {value?.running && <Button onClick={() => setKey(key + 1)}>Reload</Button>}
        {value?.framework && <Badge>{value.framework}</Badge>}
        {value?.url && <span className="mono dim ellipsis">{value.url}</span>}
      </div>
      <Trouble error={preview.error} />
      {value?.url && value.running ? (
        <iframe
          key={key}
          className="preview-frame"
          title="preview of the project"
          src={value.url}
          sandbox="allow-scripts allow-forms allow-same-origin"
          referrerPolicy="no-referrer"
        />
      ) : (
        <div className="scroll" tabIndex={0}>
          {starting && <Spinner label="the dev server starts" />}
          {value && !value.running && (
            <Empty>The dev server runs on a bench: what a run makes can be looked at before it is promoted.</Empty>
          )}
        </div>
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
