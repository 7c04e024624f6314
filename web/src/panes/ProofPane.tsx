import { useMemo, useState } from "react";
import { post } from "../api";
import { attempt, Badge, Button, Card, Empty, Spinner, Trouble } from "../components";
import { isAtWork, useStore, verify } from "../events/store";
import { clock, plain, plural, seconds, signOf, VERDICT } from "../format";
import { go } from "../place";
import type { CheckResult, Diagnostic, Report } from "../types";
import { tests } from "../work/tests";

/** What the checks say: of the run that works or ended last, or of the workspace as it stands. */
export default function ProofPane() {
  const run = useStore((store) => [...store.runs.values()].findLast((one) => one.checks.length > 0));
  const verified = useStore((store) => store.verified);
  const files = useStore((store) => store.filesChanged);
  const [error, setError] = useState<unknown>(null);
  const checking = useStore((store) => store.checking);
  const working = useStore((store) => isAtWork(store, run?.id ?? ""));
  const busy = checking !== null;
  const look = () => {
    setError(null);
    verify().catch(setError);
  };
  return (
    <>
      <div className="bar">
        <Button busy={busy} onClick={look}>
          Verify the workspace
        </Button>
        {busy && (
          <Button onClick={() => attempt(() => post("/verify/stop"))} title="ends the checks">
            Stop
          </Button>
        )}
        {busy && <span className="dim">all checks run on a bench; this may take a while</span>}
      </div>
      <div className="scroll" tabIndex={0}>
        <Trouble error={error} />
        {checking && <Proof title="The workspace" verdict={null} working checks={checking} reasons={[]} notes={[]} />}
        {verified && !checking && (
          <Proof
            title={`The workspace at ${clock(verified.time)}`}
            verdict={verified.verdict}
            stale={verified.files !== files}
            checks={verified.steps}
            reasons={[...verified.refused, ...verified.unproved]}
            notes={verified.notes}
          />
        )}
        {run && (
          <Proof
            title={`Run ${run.id}: ${run.request}`}
            verdict={run.report?.verdict ?? null}
            working={working && run.node === "verify"}
            checks={run.checks}
            reasons={[...(run.report?.refused ?? []), ...(run.report?.unproved ?? [])]}
            notes={run.report?.notes ?? []}
          />
        )}
        {!run && !verified && !busy && (
          <Empty icon="proof">No check has run yet. A run shows its checks here while they work.</Empty>
        )}
      </div>
    </>
  );
}

interface ProofProps {
  title: string;
  verdict: Report["verdict"];
  /** Files have changed since. */
  stale?: boolean;
  /** A check works now, of which nothing is known yet. */
  working?: boolean;
  checks: CheckResult[];
  reasons: string[];
  notes: string[];
}

function Proof({ title, verdict, stale, working, checks, reasons, notes }: ProofProps) {
  const skipped = checks.filter((check) => check.standing === "skipped");
  const ran = checks.filter((check) => check.standing !== "skipped");
  return (
    <Card
      title={title}
      actions={
        stale ? (
          <Badge tone="warn">{verdict}, before files changed</Badge>
        ) : verdict ? (
          <Badge tone={VERDICT[verdict]}>{verdict}</Badge>
        ) : (
          <Badge tone={working ? "busy" : "plain"}>{working ? "at work" : "no verdict yet"}</Badge>
        )
      }
    >
      {reasons.map((reason, key) => (
        <p key={key} className="bad">
          {reason}
        </p>
      ))}
      {ran.map((check) => (
        <Step key={check.step} check={check} />
      ))}
      {working && (
        <p className="dim">
          <Spinner label="a check works" /> the next check works
        </p>
      )}
      {skipped.length > 0 && (
        <div className="not-run-list">
          <h3>Not run</h3>
          <ul className="plain-list">
            {skipped.map((check) => (
              <li key={check.step} className="not-run">
                <span className="dim">–</span> <strong>{check.step}</strong> <span className="dim">{check.reason}</span>
              </li>
            ))}
          </ul>
        </div>
      )}
      {notes.map((note, key) => (
        <p key={key} className="dim">
          {note}
        </p>
      ))}
    </Card>
  );
}

function Step({ check }: { check: CheckResult }) {
  const [sign, tone] = signOf(check.standing, check.advisory);
  const old = typeof check.old === "number" ? check.old : check.old.length;
  return (
    <details className="proof-step" open={check.standing === "fail"}>
      <summary>
        <span className={tone}>{sign}</span>
        <span className="proof-says">
          <strong>{check.step}</strong> {tests(check.counts) || check.reason}{" "}
          {old > 0 && (check.counts || !check.reason) && <Badge>{plural(old, "old finding")}</Badge>}
          {[check.part, check.incomplete].map((why) => why && <small key={why}>{why}</small>)}
        </span>
        <span className="dim nowrap">{seconds(check.seconds)}</span>
      </summary>
      <div className="proof-body">
        {check.counts && check.reason && <p className="dim">{check.reason}</p>}
        {check.findings.map((finding, key) => (
          <Finding key={key} finding={finding} />
        ))}
        {typeof check.old !== "number" && check.old.length > 0 && (
          <details>
            <summary className="dim">{plural(check.old.length, "finding")} from before the change</summary>
            {check.old.slice(0, DRAWN).map((finding, key) => (
              <Finding key={key} finding={finding} />
            ))}
            <More of={check.old.length} />
          </details>
        )}
        {check.flaky?.map((line) => (
          <p key={line}>
            <Badge tone="warn">flaky</Badge> {line}
          </p>
        ))}
        {check.left_out && check.left_out.length > 0 && (
          <details>
            <summary>{plural(check.left_out.length, "test")} taken out of the run by code of the project</summary>
            <ul className="mono">
              {check.left_out.map((id) => (
                <li key={id}>{id}</li>
              ))}
            </ul>
          </details>
        )}
        <Tests check={check} />
        {check.command && check.command.length > 0 && <code className="dim">{check.command.join(" ")}</code>}
      </div>
    </details>
  );
}

/** The tests that were watched, by file, the slowest file first. */
function Tests({ check }: { check: CheckResult }) {
  const files = useMemo(() => {
    const found = new Map<string, NonNullable<CheckResult["ran"]>>();
    for (const test of check.ran ?? []) {
      const file = test.id.split("::")[0]!;
      found.set(file, [...(found.get(file) ?? []), test]);
    }
    return [...found].map(([file, list]) => ({ file, list, sum: list.reduce((sum, one) => sum + one.seconds, 0) }));
  }, [check.ran]);
  return files
    .sort((one, other) => other.sum - one.sum)
    .map(({ file, list, sum }) => (
      <details key={file}>
        <summary>
          <span className="mono">{file}</span> {plural(list.length, "test")} <span className="dim">{seconds(sum)}</span>
        </summary>
        <ul className="plain-list mono">
          {list.slice(0, DRAWN).map((test) => (
            <li key={test.id}>
              <span className={test.outcome === "passed" ? "good" : test.outcome === "failed" ? "bad" : "dim"}>
                {test.outcome === "passed" ? "✓" : test.outcome === "failed" ? "✗" : "–"}
              </span>{" "}
              {test.id.split("::").slice(1).join("::") || test.id} <span className="dim">{seconds(test.seconds)}</span>
            </li>
          ))}
        </ul>
        <More of={list.length} />
      </details>
    ));
}

/** Rows of a list that are drawn; of more, the number is said. */
const DRAWN = 500;

const More = ({ of }: { of: number }) => (of > DRAWN ? <p className="dim">and {of - DRAWN} more</p> : null);

export function Finding({ finding }: { finding: Diagnostic }) {
  const place = finding.path ? `${finding.path}${finding.line ? `:${finding.line}` : ""}` : "";
  return (
    <div className={`finding ${finding.severity}`}>
      <div>
        {place && (
          <a href={`#/code/${encodeURI(place)}`} className="mono">
            {place}
          </a>
        )}{" "}
        {finding.test && <span className="mono">{finding.test}</span>} {finding.code && <Badge>{finding.code}</Badge>}{" "}
        <span className="dim">{finding.tool}</span>
      </div>
      <pre>{plain(finding.message)}</pre>
      {finding.frames?.length > 1 && (
        <div className="frames">
          {finding.frames.map((frame, key) => (
            <Button key={key} tone="quiet" onClick={() => go("code", frame.path, frame.line)}>
              {frame.path}:{frame.line}
            </Button>
          ))}
        </div>
      )}
    </div>
  );
}
