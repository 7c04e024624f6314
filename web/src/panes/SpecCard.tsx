import { useState } from "react";
import { command, post, Refused } from "../api";
import { attempt, Badge, type BadgeTone, Button, Field, Select, Table, Trouble, toast, useLoaded } from "../components";
import { refresh, useStore } from "../events/store";
import { count, money, plural } from "../format";

/** The answer of `pawl spec status`. */
interface Spec {
  name: string;
  specs: string[];
  parts: string[];
  tasks: { id: string; what: string; standing: string; wave: number; run: string }[];
  drift: { where: string; what: string }[];
  tokens: number;
  task_tokens: number;
  estimated_tokens: number;
  cost: string | number | null;
  next_step: string;
  trouble: string;
  questions: string[];
}

const TONES: Record<string, BadgeTone> = { proved: "good", waits: "busy", begun: "busy" };

/** The specification of the workspace: what is written, done and proved, as `pawl spec status` says it. */
export function SpecCard({ onRun }: { onRun: (run: string) => void }) {
  const files = useStore((store) => store.filesChanged);
  const [wanted, setWanted] = useState("");
  const spec = useLoaded(async () => {
    try {
      return await command<Spec>("spec", "status", ...(wanted ? ["--spec", wanted] : []));
    } catch (error) {
      if (error instanceof Refused && error.message.startsWith("there is no specification")) return null;
      throw error;
    }
  }, `${files} ${wanted}`);
  const { value } = spec;
  if (!value) return <Trouble error={spec.error} />;
  const number = (standing: string) => value.tasks.filter((one) => one.standing === standing).length;
  const proved = number("proved");
  return (
    <details className="card spec" open={value.questions.length > 0 || undefined}>
      <summary>
        <strong>{value.name}</strong>{" "}
        {value.tasks.length
          ? `${proved + number("done")} of ${plural(value.tasks.length, "task")} done, ${proved} proved`
          : value.parts.join(", ") || "nothing written yet"}{" "}
        {value.drift.length > 0 && <Badge tone="bad">{`${value.drift.length} drifted`}</Badge>}{" "}
        {value.questions.length > 0 && <Badge tone="warn">{plural(value.questions.length, "question")}</Badge>}
      </summary>
      {value.specs.length > 1 && (
        <Select label="specification" value={value.name} options={value.specs} onChange={setWanted} />
      )}
      <p className="dim">written: {value.parts.join(", ") || "nothing yet"}</p>
      <Questions key={value.questions.join("\n")} spec={value} />
      {value.tasks.length > 0 && (
        <Table
          label="tasks"
          head={["task", "wave", "standing", "what"]}
          rows={value.tasks.map((one) => [
            one.run ? (
              <Button key="run" tone="quiet" onClick={() => onRun(one.run)} title="its run">
                {one.id}
              </Button>
            ) : (
              one.id
            ),
            one.wave || "–",
            <Badge key="standing" tone={TONES[one.standing] ?? "plain"}>
              {one.standing}
            </Badge>,
            one.what,
          ])}
        />
      )}
      {[...value.drift.map((one) => `${one.where}: ${one.what}`), ...(value.trouble ? [value.trouble] : [])].map(
        (line) => (
          <p key={line} className="bad">
            {line}
          </p>
        ),
      )}
      <p className="dim">
        {count(value.task_tokens)} tokens for the tasks
        {value.estimated_tokens > 0 && ` of about ${count(value.estimated_tokens)} estimated`}; {count(value.tokens)}{" "}
        with the documents, {money(value.cost === null ? null : Number(value.cost))}
      </p>
      <p>
        next: <code>{value.next_step}</code>
      </p>
    </details>
  );
}

/** What the specification leaves open: asked of a model, answered by the user, and worked in. */
function Questions({ spec }: { spec: Spec }) {
  const [answers, setAnswers] = useState<string[]>([]);
  const working = useStore((store) => store.session?.working);
  const send = (given: string[]) =>
    attempt(async () => {
      await post("/spec/clarify", { spec: spec.name, answers: given });
      toast(given.length ? "the answers are worked in" : "what is unclear is asked");
      await refresh();
    });
  if (!spec.questions.length)
    return spec.next_step === "pawl spec clarify" ? (
      <div className="actions">
        <Button disabled={working} onClick={() => send([])}>
          Ask what is unclear
        </Button>
      </div>
    ) : null;
  const whole = spec.questions.every((_, at) => answers[at]?.trim());
  return (
    <form
      className="form"
      aria-label="open questions"
      onSubmit={(event) => {
        event.preventDefault();
        void send(answers);
      }}
    >
      {spec.questions.map((question, at) => (
        <Field
          key={question}
          label={question}
          value={answers[at] ?? ""}
          onChange={(text) =>
            setAnswers(spec.questions.map((_, place) => (place === at ? text : (answers[place] ?? ""))))
          }
        />
      ))}
      <Button type="submit" tone="primary" disabled={!whole || working}>
        Answer
      </Button>
    </form>
  );
}
