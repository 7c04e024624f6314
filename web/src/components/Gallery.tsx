import { useState } from "react";
import * as library from ".";
import { parsePatch } from "./diff";
import { iconNames } from "./Icon";

const { Badge, Button, Card, Check, Dialog, DiffSwitch, DiffView, Empty, Field, Icon, Markdown } = library;
const { ModelSays, Output, Rows, Plot, Select, Spinner, Table, Tabs, Tree, Trouble, toast, useDiffMode } = library;

const PATCH = `--- a/prices.py
+++ b/prices.py
@@ -1,3 +1,3 @@
 def total(prices):
-    return sum(prices)
+    return round(sum(prices), 2)
 
`;

const TEXT = `# Heading
A **list** with \`code\`, a [link](https://example.org/) and an image that is not loaded ![one](https://example.org/a.png):

- first
- second, in \`prices.py:2\`

| word | meaning |
| --- | --- |
| bench | a view of the workspace |
`;

/** Every component of the library with an example; the page that shows what can be drawn on. */
export default function Gallery() {
  const [text, setText] = useState("text");
  const [choice, setChoice] = useState<"one" | "two">("one");
  const [on, setOn] = useState(true);
  const [open, setOpen] = useState(false);
  const [folders, setFolders] = useState<ReadonlySet<string>>(new Set(["src"]));
  const [mode, setMode] = useDiffMode();
  return (
    <div className="scroll gallery" tabIndex={0}>
      <h2>Components</h2>
      <Card title="Button">
        <div className="actions">
          <Button>Plain</Button>
          <Button tone="primary">Primary</Button>
          <Button tone="danger">Danger</Button>
          <Button tone="quiet">Quiet</Button>
          <Button busy>Busy</Button>
          <Button disabled>Disabled</Button>
        </div>
      </Card>
      <Card title="Icon">
        <div className="actions">
          {iconNames.map((name) => (
            <Badge key={name}>
              <Icon name={name} /> {name}
            </Badge>
          ))}
        </div>
      </Card>
      <Card title="Field, Select, Check">
        <Field label="a field" value={text} onChange={setText} hint="with a hint" />
        <Select label="a choice" value={choice} options={["one", "two"]} onChange={setChoice} />
        <Check label="a check box" checked={on} onChange={setOn} />
      </Card>
      <Card title="Tabs">
        <Tabs
          label="example"
          panel="example-panel"
          value={choice}
          onChange={setChoice}
          tabs={[
            { id: "one", label: "One" },
            { id: "two", label: "Two" },
          ]}
        />
        <div id="example-panel" role="tabpanel" aria-label={choice}>
          {choice}
        </div>
      </Card>
      <Card title="Card" actions={<Button>With an action</Button>}>
        A part with a heading.
      </Card>
      <Card title="Badge, Spinner, Empty, Trouble">
        <div className="actions">
          <Badge>plain</Badge>
          <Badge tone="good">good</Badge>
          <Badge tone="bad">bad</Badge>
          <Badge tone="warn">warn</Badge>
          <Badge tone="busy">busy</Badge>
          <Spinner />
        </div>
        <Empty>Nothing is here, and why.</Empty>
        <Empty icon="file">The same for a whole pane.</Empty>
        <Trouble error={new Error("something failed")} />
      </Card>
      <Card title="Dialog, Toast">
        <div className="actions">
          <Button onClick={() => setOpen(true)}>Open a dialog</Button>
          <Button onClick={() => toast("said in passing")}>Say something</Button>
        </div>
        <Dialog title="A dialog" open={open} onClose={() => setOpen(false)}>
          Escape closes it.
        </Dialog>
      </Card>
      <Card title="Tree">
        <Tree
          label="example tree"
          selected=""
          open={folders}
          onSelect={() => {}}
          onToggle={(id) => setFolders(new Set(folders.has(id) ? [] : [id]))}
          nodes={[
            { id: "src", name: "src", label: "src", children: [{ id: "src/a.py", name: "a.py", label: "a.py" }] },
            { id: "README.md", name: "README.md", label: "README.md" },
          ]}
        />
      </Card>
      <Card title="DiffView" actions={<DiffSwitch mode={mode} onChange={setMode} />}>
        <DiffView files={parsePatch(PATCH)} mode={mode === "whole file" ? "inline" : mode} />
      </Card>
      <Card title="Output">
        <Output label="an example of output" text={"2 passed\n1 failed"} />
      </Card>
      <Card title="Markdown">
        <Markdown text={TEXT} />
      </Card>
      <Card title="ModelSays">
        <ModelSays text="**DONE, verified.** Whatever a model says is marked as its own words." />
      </Card>
      <Card title="Table">
        <Table
          label="example table"
          head={["word", "number"]}
          rows={[
            ["one", 1],
            ["two", 2],
          ]}
        />
      </Card>
      <Card title="Rows">
        <div className="gallery-rows">
          <Rows
            label="ten thousand rows"
            height={24}
            items={[...Array(10_000).keys()]}
            render={(item) => `row ${item}`}
          />
        </div>
      </Card>
      <Card title="Plot">
        <Plot
          title="Bars"
          labels={["a", "b", "c"]}
          format={(value) => value.toFixed(0)}
          series={[
            { name: "in", values: [3, 5, 2] },
            { name: "out", values: [1, 2, 2] },
          ]}
        />
        <Plot
          line
          title="Line"
          labels={["1", "2", "3"]}
          format={(value) => value.toFixed(0)}
          series={[{ name: "failing", values: [3, 1, 0] }]}
        />
      </Card>
    </div>
  );
}
