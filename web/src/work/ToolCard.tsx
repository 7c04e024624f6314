import { memo, useState } from "react";
import { Badge, DiffView, Icon, type IconName, Output, Spinner } from "../components";
import { editOf, parsePatch } from "../components/diff";
import type { Block } from "../events/reduce";
import { plain, seconds } from "../format";

type Tool = Extract<Block, { kind: "tool" }>;

/** Arguments that the diff of an edit shows. */
const EDIT = new Set(["patch", "path", "old", "new", "edits"]);

const MAIN = ["command", "path", "query", "pattern", "name", "what"];

const ICONS: [RegExp, IconName][] = [
  [/command|run|test|check|dev/, "terminal"],
  [/patch|modify|edit|write|create|delete/, "edit"],
  [/search|locate|find|grep|fetch/, "search"],
  [/read|list|file|outline/, "file"],
];

/** The argument that says most, for the line that is always visible. */
export function summary(call: Tool["call"]): string {
  const given = call.arguments ?? {};
  const key = MAIN.find((one) => typeof given[one] === "string");
  if (key) return String(given[key]);
  if (typeof given.patch === "string")
    return parsePatch(given.patch)
      .map((file) => file.path)
      .join(", ");
  return Object.keys(given).length ? JSON.stringify(given).slice(0, 200) : "";
}

/** One call of a tool: what was asked for, what it prints while it runs, how it ended. */
export const ToolCard = memo(({ block, live }: { block: Tool; live: boolean }) => {
  const { call, answer, output } = block;
  const running = answer === null && live && !block.cut;
  const [toggled, setToggled] = useState<boolean | null>(null);
  const open = toggled ?? (running && output.length > 0);
  return (
    <details className={`tool ${answer?.failed ? "failed" : ""}`} open={open}>
      {/* biome-ignore lint/a11y/noStaticElementInteractions: a summary is a control of its own */}
      <summary
        onClick={(event) => {
          event.preventDefault();
          setToggled(!open);
        }}
      >
        <Icon name={ICONS.find(([words]) => words.test(call.name))?.[1] ?? "tool"} />
        <span className="tool-name">{call.name}</span>
        <span className="tool-what">{plain(summary(call))}</span>
        {running && <Spinner label="runs" />}
        {answer?.repeated && <Badge>repeated, not executed</Badge>}
        {answer?.failed && <Badge tone="bad">failed</Badge>}
        {answer && answer.seconds >= 0.05 && <span className="dim nowrap">{seconds(answer.seconds)}</span>}
        {!answer && !running && <Badge>no answer</Badge>}
      </summary>
      {open && <Body block={block} running={running} />}
    </details>
  );
});

function Body({ block: { call, output, dropped, answer }, running }: { block: Tool; running: boolean }) {
  const given = Object.entries(call.arguments ?? {});
  const edit = editOf(call.arguments ?? {});
  const rest = given.filter(([key]) => !(edit.length && EDIT.has(key)));
  return (
    <div className="tool-body">
      {call.mistake && <p className="bad-text">{call.mistake}</p>}
      {rest.length > 0 && (
        <dl className="arguments">
          {rest.map(([key, value]) => (
            <div key={key}>
              <dt>{key}</dt>
              <dd>{plain(typeof value === "string" ? value : JSON.stringify(value))}</dd>
            </div>
          ))}
        </dl>
      )}
      {edit.length > 0 && <DiffView files={edit} mode="inline" />}
      {output.length > 0 && (running || !answer?.text) && (
        <Output
          label="output"
          follow={running}
          text={(dropped ? `… ${dropped} lines before\n` : "") + plain(output.slice(-400).join("\n"))}
        />
      )}
      {answer?.text && <Output label="answer" text={plain(answer.text)} />}
    </div>
  );
}
