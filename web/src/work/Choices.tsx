import { useEffect, useState } from "react";
import { put } from "../api";
import { attempt, Button, Dialog, Field, Select } from "../components";
import { setSession, useStore } from "../events/store";
import { shortModel } from "../format";
import type { Choices as Chosen, SessionState } from "../types";

const change = (part: Partial<Chosen>) => attempt(async () => setSession(await put<SessionState>("/choices", part)));

const APPROVAL: [Chosen["approval"], string][] = [
  ["each", "approve each edit"],
  ["final", "approve at the end"],
  ["never", "never ask me"],
];

/** The user's choices: mode, model, reasoning, approval, budget. Always visible, changed here and nowhere else. */
export function Choices({ compact }: { compact: boolean }) {
  const choices = useStore((store) => store.session?.choices);
  const models = useStore((store) => store.session?.models);
  const asked = useStore((store) => store.session?.model) || "no model";
  const [open, setOpen] = useState<"" | "all" | "budget">("");
  if (!choices || !models) return null;
  const bare = !compact;
  const fields = (
    <>
      <Select
        label="mode"
        bare={bare}
        value={choices.mode}
        options={["agent", "plan", "chat"]}
        onChange={(mode) => change({ mode })}
      />
      <ModelSelect bare={bare} value={choices.model} asked={asked} models={models} />
      <Select
        label="reasoning"
        bare={bare}
        value={choices.reasoning}
        options={[
          ["", "reasoning: as set"],
          ["on", "reasoning on"],
          ["off", "reasoning off"],
        ]}
        onChange={(reasoning) => change({ reasoning })}
      />
      <Select
        label="approval"
        bare={bare}
        value={choices.approval}
        options={APPROVAL}
        onChange={(approval) => change({ approval })}
      />
    </>
  );
  const budget = [
    choices.budget.money && `$${choices.budget.money}`,
    choices.budget.seconds && `${choices.budget.seconds} s`,
  ]
    .filter(Boolean)
    .join(", ");
  const summary = [
    choices.mode,
    shortModel(choices.model || asked),
    `reasoning ${choices.reasoning || "as set"}`,
    new Map(APPROVAL).get(choices.approval),
    budget ? `budget ${budget}` : "no budget",
  ].join(" · ");
  return (
    <div className="choices">
      {compact ? (
        <Button
          tone="quiet"
          className="summary"
          onClick={() => setOpen("all")}
          title="mode, model, reasoning, approval, budget"
        >
          {summary}
        </Button>
      ) : (
        <>
          {fields}
          <Button tone="quiet" onClick={() => setOpen("budget")} title="budget of a run">
            {budget ? `budget ${budget}` : "no budget set"}
          </Button>
        </>
      )}
      <Dialog title={compact ? "Choices" : "Budget of a run"} open={open !== ""} onClose={() => setOpen("")}>
        <div className="form">
          {open === "all" && fields}
          <BudgetFields choices={choices} onDone={() => setOpen("")} />
        </div>
      </Dialog>
    </div>
  );
}

/** `asked` is the model that the next request asks where the user has chosen none. */
function ModelSelect({
  bare,
  value,
  asked,
  models,
}: {
  bare: boolean;
  value: string;
  asked: string;
  models: string[];
}) {
  const [own, setOwn] = useState(false);
  const [name, setName] = useState("");
  const options = [...new Set([value, ...models])]
    .filter((one) => one && (value || one !== asked))
    .map((one) => [one, shortModel(one)] as [string, string]);
  if (own)
    return (
      <form
        className="inline-form"
        onSubmit={(event) => {
          event.preventDefault();
          setOwn(false);
          if (name.trim()) void change({ model: name.trim() });
        }}
      >
        <Field label="provider/name" value={name} onChange={setName} />
        <Button type="submit">Use</Button>
      </form>
    );
  return (
    <Select
      label="model"
      bare={bare}
      value={value}
      options={[...(value ? [] : [["", shortModel(asked)] as [string, string]]), ...options, ["…", "another…"]]}
      onChange={(model) => (model === "…" ? setOwn(true) : change({ model }))}
    />
  );
}

function BudgetFields({ choices, onDone }: { choices: Chosen; onDone: () => void }) {
  const [money, setMoney] = useState(choices.budget.money ?? "");
  const [limit, setLimit] = useState(choices.budget.seconds?.toString() ?? "");
  // The state comes anew with every event; what is typed here stays until the budget itself is another one.
  const { money: now, seconds: most } = choices.budget;
  useEffect(() => setMoney(now ?? ""), [now]);
  useEffect(() => setLimit(most?.toString() ?? ""), [most]);
  return (
    <form
      className="form"
      onSubmit={async (event) => {
        event.preventDefault();
        if (await change({ budget: { money: money.trim() || null, seconds: limit.trim() ? Number(limit) : null } }))
          onDone();
      }}
    >
      <Field
        label="US dollars"
        value={money}
        onChange={setMoney}
        hint="stops before a request that could cost more than is left"
      />
      <Field label="seconds" value={limit} onChange={setLimit} type="number" />
      <Button type="submit" tone="primary">
        Set
      </Button>
    </form>
  );
}
