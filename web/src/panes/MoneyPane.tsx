import { useMemo, useState } from "react";
import { command, get } from "../api";
import { Card, Empty, Plot, Select, Spinner, Table, Trouble, useLoaded } from "../components";
import { useStore } from "../events/store";
import { clock, count, money, seconds, shortModel } from "../format";
import type { Attempt, Counts, RequestRow } from "../types";
import { perRun } from "./spent";

interface Audit {
  run: string;
  objective: string;
  why: string;
  reason: string;
  attempts: (Omit<Attempt, "failing"> & { number: number; failing: number | null })[];
}

/** What requests cost, per run; of a run that climbed a ladder, how its attempts went. */
export default function MoneyPane() {
  const key = useStore((store) => store.filesChanged);
  const [run, setRun] = useState("");
  const requests = useLoaded(
    () =>
      command<{ requests: RequestRow[]; total: { cost_usd: number | null; requests: number } }>(
        "requests",
        "--limit",
        "1000",
      ),
    key,
  );
  const runs = useMemo(() => perRun(requests.value?.requests ?? []).slice(-40), [requests.value]);
  const rows = (requests.value?.requests ?? []).filter((row) => !run || row.run === run);
  const labels = runs.map((one) => one.run.slice(0, 5));
  const tests = useLoaded(() => get<Record<string, Counts | null>>("/tests"), key);
  const failing = runs.map(({ run: id }) => {
    const after = tests.value?.[id];
    return after ? after.failed + after.errors : null;
  });
  const pick = (at: number) => setRun(run === runs[at]!.run ? "" : runs[at]!.run);
  return (
    <div className="scroll" tabIndex={0}>
      <Trouble error={requests.error} />
      {requests.loading && !requests.value && <Spinner />}
      {requests.value && runs.length === 0 && <Empty icon="money">No model was asked yet.</Empty>}
      {requests.value && runs.length > 0 && (
        <>
          <dl className="tiles">
            <Tile name="cost in all" value={money(requests.value.total.cost_usd)} />
            <Tile
              name={requests.value.total.requests === 1 ? "request" : "requests"}
              value={count(requests.value.total.requests)}
            />
            <Tile name="tokens in" value={count(sum(runs, "input"))} />
            <Tile name="tokens out" value={count(sum(runs, "output"))} />
          </dl>
          <div className="split">
            <Card>
              <Plot
                title="Cost per run"
                labels={labels}
                format={money}
                series={[{ name: "cost", values: runs.map((one) => one.cost) }]}
                onPick={pick}
              />
            </Card>
            <Card>
              <Plot
                title="Tokens per run"
                labels={labels}
                format={count}
                series={[
                  { name: "in", values: runs.map((one) => one.input) },
                  { name: "out", values: runs.map((one) => one.output) },
                ]}
                onPick={pick}
              />
            </Card>
            {failing.some((one) => one !== null) && (
              <Card>
                <Plot
                  line
                  title="Failing tests per run"
                  labels={labels}
                  format={whole}
                  series={[{ name: "failing", values: failing }]}
                />
              </Card>
            )}
          </div>
          <Audits />
          <Card
            title="Requests"
            actions={
              <Select
                label="run"
                bare
                value={run}
                options={[["", "of all runs"], ...runs.map((one) => [one.run, `of ${one.run}`] as [string, string])]}
                onChange={setRun}
              />
            }
          >
            <Table
              label="requests"
              dense
              head={["when", "run", "stage", "role", "model", "in", "out", "cost", "time", "ended"]}
              rows={rows
                .slice(-200)
                .reverse()
                .map((row) => [
                  clock(row.time),
                  row.run,
                  row.stage,
                  row.role,
                  shortModel(row.model),
                  count(row.input_tokens),
                  count(row.output_tokens),
                  money(row.cost_usd),
                  seconds(row.seconds),
                  row.ended,
                ])}
            />
          </Card>
        </>
      )}
    </div>
  );
}

const sum = (runs: ReturnType<typeof perRun>, key: "input" | "output") => runs.reduce((all, one) => all + one[key], 0);

function Tile({ name, value }: { name: string; value: string }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{value}</dd>
    </div>
  );
}

/** Between whole numbers an axis says nothing. */
const whole = (value: number) => (Number.isInteger(value) ? String(value) : "");

function Audits() {
  const list = useLoaded(() => command<{ runs: { run: string }[] | string[] }>("audit", "--list"), "");
  const names = (list.value?.runs ?? []).map((one) => (typeof one === "string" ? one : one.run));
  const [chosen, setChosen] = useState("");
  const name = chosen || names[0] || "";
  const audit = useLoaded(() => (name ? command<Audit>("audit", name) : Promise.resolve(null)), name);
  if (!name) return null;
  const attempts = audit.value?.attempts ?? [];
  const labels = attempts.map((one) => String(one.number));
  return (
    <Card title="Attempts" actions={<Select label="run" bare value={name} options={names} onChange={setChosen} />}>
      <Trouble error={audit.error} />
      {audit.value && (
        <>
          <p className="dim">
            {audit.value.objective} – {audit.value.reason || audit.value.why}
          </p>
          <div className="split">
            <Plot
              line
              title="Failing tests per attempt"
              labels={labels}
              format={whole}
              series={[{ name: "failing", values: attempts.map((one) => one.failing) }]}
            />
            <Plot
              title="Tokens per attempt"
              labels={labels}
              format={count}
              series={[{ name: "tokens", values: attempts.map((one) => one.tokens) }]}
            />
            <Plot
              title="Cost per attempt"
              labels={labels}
              format={money}
              series={[{ name: "cost", values: attempts.map((one) => one.cost ?? one.cost_usd ?? null) }]}
            />
          </div>
        </>
      )}
    </Card>
  );
}
