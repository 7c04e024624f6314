import { useCallback, useState } from "react";
import { get, post, Refused } from "../api";
import {
  attempt,
  Badge,
  Button,
  Check,
  DiffSwitch,
  DiffView,
  Field,
  Output,
  Spinner,
  Trouble,
  toast,
  useDiffMode,
  useLoaded,
} from "../components";
import { answerHunks, choose, numbers } from "../components/diff";
import { refresh } from "../events/store";
import { plain, plural } from "../format";
import type { Asked, Change, Question, Report } from "../types";
import { Evidence } from "./Delivery";

/** The question that a run waits on, and everything that may be answered to it. */
export function Approval({ run, question }: { run: string; question: Question }) {
  const [busy, setBusy] = useState(false);
  const [reason, setReason] = useState<string | null>(null);
  const answer = async (body: Record<string, unknown>) => {
    setBusy(true);
    await attempt(async () => {
      try {
        await post(`/runs/${run}/answer`, { digest: question.digest, ...body });
      } catch (error) {
        if (error instanceof Refused && error.code === "protected_refused") {
          // Files without which this page does not come up.
          if (confirm(`${error.message}\n\n${error.advice}`)) await answer({ ...body, protected: true });
          return;
        }
        if (error instanceof Refused && error.status === 409) await refresh();
        throw error;
      }
      toast(body.answer === "approve" ? "approved" : "rejected");
      await refresh();
    });
    setBusy(false);
  };
  const reject = (
    <Rejection
      reason={reason}
      setReason={setReason}
      busy={busy}
      onReject={(why) => answer({ answer: "reject", reason: why })}
    />
  );
  return (
    <section className="approval" aria-label="approval">
      <header>
        <h2>{question.kind === "call" ? "A call waits for your yes" : "A change waits for your approval"}</h2>
        <span className="dim mono">{run}</span>
      </header>
      {question.why.map((line, key) => (
        <p key={key} className="why">
          {line}
        </p>
      ))}
      {question.flags.map((line, key) => (
        <p key={key} className="why">
          <Badge tone="warn">look closely</Badge> {line}
        </p>
      ))}
      {question.kind === "call" ? (
        <CallQuestion question={question} busy={busy} answer={answer} reject={reject} />
      ) : (
        <ChangeQuestion run={run} question={question} busy={busy} answer={answer} reject={reject} />
      )}
    </section>
  );
}

/** A question of a command, such as that of `/commit`, answered as in a session of the terminal. */
export function CommandQuestion({ id, question, choices, draft, shown, why }: Asked) {
  const [busy, setBusy] = useState(false);
  const [text, setText] = useState(draft ?? "");
  const say = async (said: string) => {
    setBusy(true);
    await attempt(async () => {
      await post("/say", { id, text: said });
      await refresh();
    });
    setBusy(false);
  };
  const keys: Record<string, string> = { y: "KeyA", n: "KeyR" };
  return (
    <section className="approval" aria-label="question">
      <header>
        <h2>{question}</h2>
      </header>
      {why && <p className="why">{why}</p>}
      {shown && <Output label="the command" text={plain(shown)} />}
      {choices.length > 0 ? (
        <div className="actions">
          {choices.map(({ key, label }) => (
            <Button
              key={key}
              tone={key === "y" ? "primary" : key === "n" ? "danger" : "quiet"}
              busy={busy}
              onClick={() => say(key)}
              data-key={keys[key]}
            >
              {title(label)}
            </Button>
          ))}
        </div>
      ) : (
        <form
          className="inline-form"
          onSubmit={(event) => {
            event.preventDefault();
            void say(text);
          }}
        >
          <Field label={question} value={text} onChange={setText} rows={draft === null ? undefined : 12} />
          <Button tone="primary" busy={busy} type="submit">
            {draft === null ? "Answer" : "Take it as it stands"}
          </Button>
        </form>
      )}
    </section>
  );
}

const title = (text: string) => text[0]!.toUpperCase() + text.slice(1);

interface Part {
  busy: boolean;
  answer: (body: Record<string, unknown>) => Promise<void>;
  reject: React.ReactNode;
}

function CallQuestion({ question, busy, answer, reject }: Part & { question: Question }) {
  const [always, setAlways] = useState(false);
  const shown = question.shown.length
    ? question.shown.join("\n")
    : `${question.tool} ${JSON.stringify(question.arguments)}`;
  return (
    <>
      <Output label="the call" text={plain(shown)} />
      <div className="actions">
        <Button tone="primary" busy={busy} onClick={() => answer({ answer: "approve", always })} data-key="KeyA">
          Allow
        </Button>
        {reject}
        <Check label="always in this run" checked={always} onChange={setAlways} />
      </div>
    </>
  );
}

function ChangeQuestion({ run, question, busy, answer, reject }: Part & { run: string; question: Question }) {
  const { digest, why } = question;
  const [chosen, setChosen] = useState<Set<number>>(new Set());
  const loaded = useLoaded(async () => {
    const change = await get<Change>(`/runs/${run}/change`);
    setChosen(new Set(numbers(change.files)));
    return change;
  }, `${run} ${digest}`);
  const [mode, setMode] = useDiffMode();
  const [patch, setPatch] = useState<string | null>(null);
  const onChoose = useCallback((hunks: number[], on: boolean) => setChosen((old) => choose(old, hunks, on)), []);
  const report = useLoaded(() => get<Report>(`/runs/${run}`), `${run} ${digest}`);
  const change = loaded.value;
  if (!change)
    return (
      <>
        {loaded.loading && <Spinner />}
        <Trouble error={loaded.error} />
        <div className="actions">{reject}</div>
      </>
    );
  const all = numbers(change.files).length;
  const hunks = answerHunks(chosen, change.files);
  const approve = () => {
    if (patch !== null) return answer({ answer: "approve", patch });
    return answer({ answer: "approve", ...(hunks?.length ? { hunks } : {}) });
  };
  return (
    <>
      <div className="approval-body">
        {report.value && <Evidence report={report.value} told={why} />}
        <div className="bar">
          <span className="dim">
            <span className="roomy">{plural(change.files.length, "file")}, </span>
            {chosen.size} of {plural(all, "hunk")} chosen
          </span>
          <span className="spring" />
          {patch === null && <DiffSwitch mode={mode} onChange={setMode} />}
          <Button onClick={() => setPatch(patch === null ? change.patch : null)}>
            {patch === null ? "Edit the patch" : "Leave it as it was"}
          </Button>
        </div>
        {patch === null ? (
          <DiffView files={change.files} mode={mode} chosen={chosen} onChoose={onChoose} />
        ) : (
          <Field label="the patch; what you approve is what stands here" value={patch} onChange={setPatch} rows={18} />
        )}
      </div>
      <div className="actions">
        <Button
          tone="primary"
          busy={busy}
          disabled={patch === null && hunks === null}
          onClick={approve}
          data-key="KeyA"
        >
          {patch !== null ? "Approve as edited" : hunks?.length ? `Approve ${plural(hunks.length, "hunk")}` : "Approve"}
        </Button>
        {reject}
      </div>
    </>
  );
}

function Rejection({
  reason,
  setReason,
  busy,
  onReject,
}: {
  reason: string | null;
  setReason: (reason: string | null) => void;
  busy: boolean;
  onReject: (reason: string) => void;
}) {
  if (reason === null)
    return (
      <Button tone="danger" onClick={() => setReason("")} data-key="KeyR">
        Reject…
      </Button>
    );
  return (
    <form
      className="inline-form"
      onSubmit={(event) => {
        event.preventDefault();
        onReject(reason);
      }}
    >
      <Field label="why (the model is told)" value={reason} onChange={setReason} />
      <Button tone="danger" busy={busy} type="submit">
        Reject
      </Button>
      <Button tone="quiet" onClick={() => setReason(null)}>
        Back
      </Button>
    </form>
  );
}
