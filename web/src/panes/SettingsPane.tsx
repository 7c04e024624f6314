import { type ReactNode, useState } from "react";
import { command } from "../api";
import {
  attempt,
  Badge,
  Button,
  Card,
  Check,
  Empty,
  Field,
  type Loaded,
  Spinner,
  Table,
  Trouble,
  toast,
  useLoaded,
} from "../components";
import { useStore } from "../events/store";
import { money } from "../format";

/** Models, rules, memory, skills, MCP servers, hooks: what is configured, and what would come of it. */
export default function SettingsPane() {
  return (
    <div className="scroll" tabIndex={0}>
      <Models />
      <Permissions />
      <Memory />
      <Skills />
      <Servers />
      <Doctor />
    </div>
  );
}

function Part<T>({ title, loaded, children }: { title: string; loaded: Loaded<T>; children: (value: T) => ReactNode }) {
  return (
    <Card title={title} actions={loaded.loading && <Spinner />}>
      <Trouble error={loaded.error} />
      {loaded.value !== null && children(loaded.value)}
    </Card>
  );
}

interface Model {
  model: string;
  used_for: string[];
  ready: boolean | null;
  detail: string;
  advice: string;
  input_usd_per_million: number | null;
  output_usd_per_million: number | null;
  context: number | null;
}

interface Tested {
  model: string;
  tasks: { name: string; of: string; passed: boolean; said: string }[];
}

function Models() {
  const [reach, setReach] = useState(false);
  const loaded = useLoaded(
    () =>
      command<{ models: Model[]; providers: { name: string; has_key: boolean; key_names: string[] }[] }>(
        "models",
        ...(reach ? [] : ["--offline"]),
      ),
    reach,
  );
  const used = useStore((store) => store.session?.model) ?? "";
  const [tested, setTested] = useState<Tested | null>(null);
  const [busy, setBusy] = useState("");
  const test = async (name: string) => {
    setBusy(name);
    await attempt(async () => setTested(await command<Tested>("models", "--test", name)));
    setBusy("");
  };
  return (
    <Part title="Models" loaded={loaded}>
      {({ models, providers }) => (
        <>
          {used && !models.some((one) => one.model === used) && (
            <p className="bar">
              <span className="memory">
                This page asks <code>{used}</code>, which is not in the settings.
              </span>
              <Button busy={busy === used} onClick={() => test(used)} title="gives it a few small tasks; this may cost">
                Test
              </Button>
            </p>
          )}
          {models.length === 0 && !used && (
            <Empty>
              No model is configured: <code>pawl setup</code> finds one, or name it as <code>default</code> under{" "}
              <code>[models]</code>.
            </Empty>
          )}
          {models.length > 0 && (
            <Table
              label="models"
              head={["model", "used for", "reachable", "per million in, out", ""]}
              rows={models.map((one) => [
                <span key="n" className="mono">
                  {one.model}
                </span>,
                one.used_for.join(", "),
                <span key="r" title={one.advice}>
                  {one.ready === null ? "not asked" : one.ready ? "yes" : `no: ${one.detail}`}
                </span>,
                one.input_usd_per_million === null
                  ? "unknown"
                  : `${money(one.input_usd_per_million)}, ${money(one.output_usd_per_million)}`,
                <Button
                  key="t"
                  busy={busy === one.model}
                  onClick={() => test(one.model)}
                  title="gives it a few small tasks; this may cost"
                >
                  Test
                </Button>,
              ])}
            />
          )}
          <Check label="ask the providers whether they can be reached" checked={reach} onChange={setReach} />
          {tested && (
            <div>
              <h3>{tested.model}</h3>
              <ul className="plain-list">
                {tested.tasks.map((task) => (
                  <li key={task.name}>
                    <Badge tone={task.passed ? "good" : "bad"}>{task.passed ? "passed" : "failed"}</Badge> {task.name}{" "}
                    <span className="dim">{task.of}</span>
                  </li>
                ))}
              </ul>
            </div>
          )}
          <p className="dim">
            Keys are set for:{" "}
            {providers
              .filter((one) => one.has_key && one.key_names.length)
              .map((one) => one.name)
              .join(", ") || "no provider"}
          </p>
        </>
      )}
    </Part>
  );
}

interface Ruling {
  ruling: "allow" | "ask" | "deny";
  reason: string;
  rule: string;
  source: string;
  suggestions: string[];
}

const TONE = { allow: "good", ask: "warn", deny: "bad" } as const;

function Permissions() {
  const loaded = useLoaded(
    () =>
      command<{ preset: string; rules: { ruling: Ruling["ruling"]; rule: string; source: string }[] }>("permissions"),
    "",
  );
  const [call, setCall] = useState("Bash(git push)");
  const [net, setNet] = useState(false);
  const [ruling, setRuling] = useState<Ruling | null>(null);
  return (
    <Part title="Permissions" loaded={loaded}>
      {({ preset, rules }) => (
        <>
          <form
            className="inline-form"
            onSubmit={(event) => {
              event.preventDefault();
              void attempt(async () =>
                setRuling(await command<Ruling>("permissions", "check", ...(net ? ["--net"] : []), call)),
              );
            }}
          >
            <Field label="what would happen to …" value={call} onChange={setCall} />
            <Button type="submit">Check</Button>
          </form>
          <Check label="with a network" checked={net} onChange={setNet} />
          {ruling && (
            <p role="status">
              <Badge tone={TONE[ruling.ruling]}>{ruling.ruling}</Badge> {ruling.reason}{" "}
              {ruling.suggestions.length > 0 && (
                <span className="dim">to allow it: {ruling.suggestions.join(", ")}</span>
              )}
            </p>
          )}
          <details>
            <summary>
              {rules.length} rules, preset {preset}
            </summary>
            <Table
              label="rules"
              head={["decision", "rule", "from"]}
              rows={rules.map((one, key) => [
                <Badge key={key} tone={TONE[one.ruling]}>
                  {one.ruling}
                </Badge>,
                <code key="r">{one.rule}</code>,
                one.source,
              ])}
            />
          </details>
        </>
      )}
    </Part>
  );
}

interface MemoryRow {
  id: number | string;
  tier: string;
  text: string;
  source: string;
  taken_back: boolean;
}

function Memory() {
  const loaded = useLoaded(() => command<{ memories: MemoryRow[] }>("memory"), "");
  const [text, setText] = useState("");
  const act = (...words: string[]) =>
    attempt(async () => {
      await command("memory", ...words);
      loaded.reload();
      setText("");
      toast(words[0] === "add" ? "remembered" : "forgotten");
    });
  return (
    <Part title="Memory" loaded={loaded}>
      {({ memories }) => (
        <>
          {memories.length === 0 && <Empty>Nothing is remembered of this workspace.</Empty>}
          <ul className="plain-list">
            {memories.map((one) => (
              <li key={one.id} className="bar">
                <span className="memory">{one.text}</span> <Badge>{one.tier}</Badge> <Badge>{one.source}</Badge>
                <Button tone="quiet" onClick={() => act("forget", String(one.id))}>
                  Forget
                </Button>
              </li>
            ))}
          </ul>
          <form
            className="inline-form"
            onSubmit={(event) => {
              event.preventDefault();
              if (text.trim()) void act("add", text);
            }}
          >
            <Field label="a sentence to remember" value={text} onChange={setText} />
            <Button type="submit">Add</Button>
          </form>
        </>
      )}
    </Part>
  );
}

interface Named {
  name: string;
  description: string;
  source: string;
}

function Skills() {
  const skills = useLoaded(() => command<{ skills: Named[] }>("skills"), "");
  const agents = useLoaded(() => command<{ agents: Named[] }>("agents"), "");
  const rows = (list: Named[]) => list.map((one) => [one.name, one.description, one.source]);
  return (
    <>
      <Part title="Skills" loaded={skills}>
        {(value) => <Table label="skills" head={["name", "for", "from"]} rows={rows(value.skills)} />}
      </Part>
      <Part title="Sub-agents" loaded={agents}>
        {(value) =>
          value.agents.length ? (
            <Table label="sub-agents" head={["name", "for", "from"]} rows={rows(value.agents)} />
          ) : (
            <Empty>There are none.</Empty>
          )
        }
      </Part>
    </>
  );
}

function Servers() {
  const loaded = useLoaded(
    () => command<{ servers: { name: string; standing: string; tools: number; source: string }[] }>("mcp", "list"),
    "",
  );
  return (
    <Part title="MCP servers" loaded={loaded}>
      {({ servers }) =>
        servers.length ? (
          <Table
            label="MCP servers"
            head={["name", "standing", "tools", "from"]}
            rows={servers.map((one) => [one.name, one.standing, one.tools, one.source])}
          />
        ) : (
          <Empty>
            There are none; <code>pawl mcp add</code> names one.
          </Empty>
        )
      }
    </Part>
  );
}

interface DoctorReport {
  ok: boolean;
  confinement: string;
  settings: string;
  trust: string;
  guardrails: string;
  hooks: { event: string; command: string | string[]; source: string; host: boolean; problem: string }[];
  problems: string[];
  probes: { name: string; works: boolean; detail: string; remedy: string }[];
  test_commands: { words: string[]; tests: number }[];
}

function Doctor() {
  const loaded = useLoaded(() => command<DoctorReport>("doctor"), "");
  return (
    <>
      <Part title="Hooks" loaded={loaded}>
        {({ hooks }) =>
          hooks.length ? (
            <Table
              label="hooks"
              head={["event", "command", "from", ""]}
              rows={hooks.map((one) => [
                one.event,
                <code key="c">{[one.command].flat().join(" ")}</code>,
                one.source,
                one.problem,
              ])}
            />
          ) : (
            <Empty>There are none.</Empty>
          )
        }
      </Part>
      <Part title="This machine" loaded={loaded}>
        {(value) => (
          <>
            <p>
              <Badge tone={value.ok ? "good" : "bad"}>{value.ok ? "in order" : "not in order"}</Badge> commands are
              confined by {value.confinement} · guardrails {value.guardrails} · workspace {value.trust} · settings{" "}
              <code>{value.settings}</code>
            </p>
            {value.problems.map((line) => (
              <p key={line} className="bad">
                {line}
              </p>
            ))}
            <Table
              label="probes"
              head={["part", "works", "detail"]}
              rows={value.probes.map((one) => [
                one.name,
                one.works ? "yes" : "no",
                one.works ? one.detail : `${one.detail} ${one.remedy}`,
              ])}
            />
          </>
        )}
      </Part>
    </>
  );
}
