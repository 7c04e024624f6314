import { Component, lazy, type ReactNode, Suspense, useEffect, useState } from "react";
import QuickOpen from "./code/QuickOpen";
import { Badge, Button, Dialog, Icon, Select, Spinner, Tabs, Toasts } from "./components";
import { useStore } from "./events/store";
import { count, money } from "./format";
import { PageNote, PageSwitch } from "./OwnPage";
import { askSearch, go, PANES, type Pane, useRoute, useWide } from "./place";
import { applyTheme, useTheme } from "./theme";
import { Choices } from "./work/Choices";
import { stop } from "./work/Composer";
import { useRefreshOnReturn, WorkPane } from "./work/WorkPane";

const LAZY = {
  code: lazy(() => import("./code/CodePane")),
  proof: lazy(() => import("./panes/ProofPane")),
  time: lazy(() => import("./panes/TimePane")),
  money: lazy(() => import("./panes/MoneyPane")),
  preview: lazy(() => import("./panes/PreviewPane")),
  settings: lazy(() => import("./panes/SettingsPane")),
  components: lazy(() => import("./components/Gallery")),
};

const title = (pane: string) => pane[0]!.toUpperCase() + pane.slice(1);

/** The shell: panes side by side where they fit, one at a time where not; the choices are always in sight. */
export function App() {
  const route = useRoute();
  const wide = useWide();
  const connection = useStore((store) => store.connection);
  const [dialog, setDialog] = useState<"" | "keys" | "open">("");
  const [right, setRight] = useState<keyof typeof LAZY>(route.pane === "work" ? "code" : route.pane);
  useRefreshOnReturn();
  useEffect(() => {
    if (route.pane !== "work") setRight(route.pane);
  }, [route.pane]);
  useKeys(setDialog);
  const Right = LAZY[wide && route.pane === "work" ? right : (route.pane as keyof typeof LAZY)];
  const panes = (wide ? PANES.filter((pane) => pane !== "work") : PANES).map((id) => ({
    id,
    label: (
      <>
        <Icon name={id} />
        {title(id)}
      </>
    ),
    mark: <Mark pane={id} />,
  }));
  const value = wide ? (right as Pane) : (route.pane as Pane);
  return (
    <div className={wide ? "app wide" : "app"}>
      {connection === "refused" && <Reopen />}
      <header className="top">
        <Name />
        <Tabs label="panes" panel="pane" tabs={panes} value={value} onChange={(pane) => go(pane)} />
        <span className="spring" />
        <Connection />
        <PageSwitch />
        <ThemeSwitch />
        <Button tone="quiet" onClick={() => setDialog("keys")} aria-label="keys" title="keys (?)">
          ?
        </Button>
      </header>
      <PageNote />
      {connection === "lost" && <Lost />}
      <Panes wide={wide} work={<WorkPane />} alone={!wide && route.pane === "work"}>
        <Failsafe key={wide ? right : route.pane}>
          <Suspense fallback={<Spinner label="the pane is loaded" />}>{Right && <Right />}</Suspense>
        </Failsafe>
      </Panes>
      <footer className="status">
        <Choices compact={!wide} />
        <span className="spring" />
        <Meter />
      </footer>
      <Toasts />
      <Dialog title="Keys" open={dialog === "keys"} onClose={() => setDialog("")}>
        <Keys />
      </Dialog>
      <Dialog title="Open a file" open={dialog === "open"} onClose={() => setDialog("")}>
        <QuickOpen onClose={() => setDialog("")} />
      </Dialog>
    </div>
  );
}

function Panes({
  wide,
  work,
  alone,
  children,
}: {
  wide: boolean;
  work: ReactNode;
  alone: boolean;
  children: ReactNode;
}) {
  const [share, setShare] = useState(() => Number(localStorage.getItem("pawl-share")) || 44);
  const set = (value: number) => {
    const next = Math.min(75, Math.max(25, Math.round(value)));
    localStorage.setItem("pawl-share", String(next));
    setShare(next);
  };
  if (!wide)
    return (
      <main className="panes">
        <div className="pane" id="pane" role="tabpanel" aria-label={alone ? "Work" : "pane"}>
          {alone ? work : children}
        </div>
      </main>
    );
  return (
    <main className="panes" style={{ gridTemplateColumns: `${share}fr 5px ${100 - share}fr` }}>
      <section className="pane" aria-label="Work">
        {work}
      </section>
      {/* biome-ignore lint/a11y/useSemanticElements: a separator that can be moved is no hr */}
      <div
        className="splitter"
        role="separator"
        aria-label="width of Work"
        aria-orientation="vertical"
        aria-valuenow={share}
        aria-valuemin={25}
        aria-valuemax={75}
        tabIndex={0}
        onKeyDown={(event) => {
          if (event.key === "ArrowLeft") set(share - 3);
          if (event.key === "ArrowRight") set(share + 3);
        }}
        onPointerDown={(event) => event.currentTarget.setPointerCapture(event.pointerId)}
        onPointerMove={(event) => {
          if (event.currentTarget.hasPointerCapture(event.pointerId)) set((event.clientX / innerWidth) * 100);
        }}
      />
      <div className="pane" id="pane" role="tabpanel" aria-label="pane">
        {children}
      </div>
    </main>
  );
}

function Name() {
  const session = useStore((store) => store.session);
  useEffect(() => {
    if (session)
      document.title = `${session.waiting || session.asked ? "? " : session.working ? "… " : ""}${session.name} – Pawl`;
  }, [session]);
  return (
    <h1 className="name" title={session?.workspace}>
      Pawl <span className="dim">{session?.name}</span>
    </h1>
  );
}

/** A sign on a tab that something waits or works there. */
function Mark({ pane }: { pane: Pane }) {
  const waiting = useStore((store) => pane === "work" && store.session?.waiting != null);
  const failing = useStore(
    (store) =>
      pane === "proof" &&
      (store.session?.run ? store.runs.get(store.session.run)?.checks.some((one) => one.standing === "fail") : false),
  );
  if (!waiting && !failing) return null;
  return <span className="mark" role="img" aria-label={waiting ? "waits for you" : "a check fails"} />;
}

function Connection() {
  const connection = useStore((store) => store.connection);
  const working = useStore((store) => store.session?.working);
  const waiting = useStore((store) => store.session?.waiting ?? store.session?.asked);
  const state: [string, "plain" | "warn" | "busy"] =
    connection === "lost"
      ? ["connection lost, trying again", "warn"]
      : connection === "connecting"
        ? ["connecting", "plain"]
        : waiting
          ? ["waits for you", "warn"]
          : working
            ? ["working", "busy"]
            : ["ready", "plain"];
  return (
    <span role="status" className="connection">
      <Badge tone={state[1]}>{state[0]}</Badge>
    </span>
  );
}

function ThemeSwitch() {
  return <Select label="theme" bare value={useTheme()} options={["system", "light", "dark"]} onChange={applyTheme} />;
}

function Meter() {
  const meter = useStore((store) => {
    const run = store.session?.run ?? [...store.runs.keys()].at(-1);
    return run ? (store.runs.get(run)?.meter ?? null) : null;
  });
  if (!meter) return null;
  const full = meter.context_window ? Math.round((meter.context_tokens / meter.context_window) * 100) : 0;
  return (
    <span
      className="dim nowrap meter"
      title={`${count(meter.context_tokens)} of ${count(meter.context_window)} tokens`}
    >
      context {full}% <span className="roomy">· {count(meter.input_tokens + meter.output_tokens)} tokens </span>·{" "}
      {money(meter.cost)}
    </span>
  );
}

const KEYS: [string, string][] = [
  ["Alt+1 … Alt+7", "opens Work, Code, Proof, Time, Money, Preview, Settings"],
  ["Enter", "sends the request, or steers the current run"],
  ["Alt+Enter", "queues the request as a follow-up"],
  ["Shift+Enter", "inserts a new line"],
  ["Ctrl+.", "stops the run; it can be resumed"],
  ["Alt+I", "goes to the request"],
  ["Alt+A, Alt+R", "approves, rejects"],
  ["Ctrl+P", "opens a file by its name"],
  ["Ctrl+Shift+F", "searches in files"],
  ["Ctrl+S", "saves the file"],
  ["F12, Ctrl+click", "goes to the definition"],
  ["← →", "moves the bar between the panes when it has the focus"],
  ["?", "shows this list"],
];

function Keys() {
  return (
    <dl className="keys">
      {KEYS.map(([key, what]) => (
        <div key={key}>
          <dt>
            <kbd>{key}</kbd>
          </dt>
          <dd>{what}</dd>
        </div>
      ))}
    </dl>
  );
}

function useKeys(open: (dialog: "keys" | "open") => void): void {
  useEffect(() => {
    const key = (event: KeyboardEvent) => {
      const control = event.ctrlKey || event.metaKey;
      const typing = (event.target as Element).closest?.("input, textarea, select, [contenteditable]");
      const button = event.altKey && document.querySelector<HTMLElement>(`[data-key="${event.code}"]`);
      const pane = event.altKey && !control ? PANES[Number(event.code.replace("Digit", "")) - 1] : undefined;
      if (pane) {
        go(pane);
        if (pane === "work") document.getElementById("request")?.focus();
      } else if (button) button.click();
      else if (event.altKey && event.code === "KeyI") document.getElementById("request")?.focus();
      else if (control && event.key === ".") stop();
      else if (control && !event.shiftKey && event.key.toLowerCase() === "p") open("open");
      else if (control && event.shiftKey && event.key.toLowerCase() === "f") {
        const there = location.hash.startsWith("#/code");
        if (!there) go("code");
        setTimeout(askSearch, there ? 0 : 50);
      } else if (event.key === "?" && !typing) open("keys");
      else return;
      event.preventDefault();
      // Before the editor, whose own keys are others.
      event.stopPropagation();
    };
    addEventListener("keydown", key, true);
    return () => removeEventListener("keydown", key, true);
  }, [open]);
}

/** The server is gone or slow; what to do if it was ended. */
function Lost() {
  const workspace = useStore((store) => store.session?.workspace);
  return (
    <div className="page-note" role="status">
      <p>
        The server does not answer, and is asked again. If it has ended, start it with{" "}
        <code>{`pawl web --port ${location.port}`}</code>
        {workspace && (
          <>
            {" "}
            in <code>{workspace}</code>
          </>
        )}
        : when the browser opens its new address, this page goes on where it is. No run is lost.
      </p>
    </div>
  );
}

function Reopen() {
  const refusal = useStore((store) => store.refusal);
  return (
    <section className="reopen" role="alert">
      <h1>Pawl</h1>
      <p>{refusal?.message}</p>
      <p>
        Open the address that <code>pawl web</code> printed, here or in another tab: each start of it has a new one, so
        that nobody who listened on this port meanwhile knows it. What stands in this page stays, and goes on.
      </p>
    </section>
  );
}

/** A pane that fails says so and leaves the others standing. */
class Failsafe extends Component<{ children: ReactNode }, { error: Error | null }> {
  override state = { error: null as Error | null };
  static getDerivedStateFromError(error: Error) {
    return { error };
  }
  override render() {
    if (!this.state.error) return this.props.children;
    return (
      <div className="trouble" role="alert">
        This pane failed: {this.state.error.message}
        <Button onClick={() => this.setState({ error: null })}>Try again</Button>
      </div>
    );
  }
}
