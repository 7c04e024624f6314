import {
  type ButtonHTMLAttributes,
  type ReactNode,
  type RefObject,
  useEffect,
  useId,
  useLayoutEffect,
  useRef,
  useState,
  useSyncExternalStore,
} from "react";
import { CONNECTED, Refused } from "../api";
import { Icon, type IconName } from "./Icon";

type Tone = "plain" | "primary" | "danger" | "quiet";

/** A button; `primary` for the one that goes on, `danger` for what takes something away. Alt with `data-key` presses it. */
export function Button({
  tone = "plain",
  busy = false,
  children,
  ...rest
}: ButtonHTMLAttributes<HTMLButtonElement> & { tone?: Tone; busy?: boolean; "data-key"?: string }) {
  return (
    <button
      type="button"
      {...rest}
      className={`button ${tone} ${rest.className ?? ""}`}
      disabled={busy || rest.disabled}
    >
      {busy && <Spinner label="" />}
      {children}
    </button>
  );
}

/** A labelled line of text, or an area with `rows`. */
export function Field({
  label,
  value,
  onChange,
  rows,
  hint,
  type = "text",
  placeholder,
}: {
  label: string;
  value: string;
  onChange: (value: string) => void;
  rows?: number;
  hint?: string;
  type?: string;
  placeholder?: string;
}) {
  const id = useId();
  const common = {
    id,
    value,
    placeholder,
    spellCheck: false,
    "aria-describedby": hint ? `${id}-hint` : undefined,
    onChange: (event: { target: { value: string } }) => onChange(event.target.value),
  };
  return (
    <div className="field">
      <label htmlFor={id}>{label}</label>
      {rows ? <textarea {...common} rows={rows} /> : <input {...common} type={type} />}
      {hint && (
        <small id={`${id}-hint`} className="dim">
          {hint}
        </small>
      )}
    </div>
  );
}

/** A choice of few values; the browser's own control, so that every keyboard and reader knows it. */
export function Select<T extends string>({
  label,
  value,
  options,
  onChange,
  bare = false,
}: {
  label: string;
  value: T;
  options: readonly (T | [T, string])[];
  onChange: (value: T) => void;
  bare?: boolean;
}) {
  const id = useId();
  return (
    <div className={bare ? "select bare" : "select"}>
      <label htmlFor={id} className={bare ? "hidden" : undefined}>
        {label}
      </label>
      <select id={id} value={value} title={label} onChange={(event) => onChange(event.target.value as T)}>
        {options.map((option) => {
          const [key, text] = typeof option === "string" ? [option, option] : option;
          return (
            <option key={key} value={key}>
              {text}
            </option>
          );
        })}
      </select>
    </div>
  );
}

/** A check box with its words. */
export function Check({
  label,
  checked,
  mixed = false,
  onChange,
}: {
  label: ReactNode;
  checked: boolean;
  mixed?: boolean;
  onChange: (on: boolean) => void;
}) {
  const box = useRef<HTMLInputElement>(null);
  useEffect(() => {
    if (box.current) box.current.indeterminate = mixed;
  }, [mixed]);
  return (
    <label className="check">
      <input ref={box} type="checkbox" checked={checked} onChange={(event) => onChange(event.target.checked)} />
      <span>{label}</span>
    </label>
  );
}

/** Tabs over one panel; arrows move, as the pattern of ARIA says. The panel is the caller's. */
export function Tabs<T extends string>({
  label,
  tabs,
  value,
  onChange,
  panel,
}: {
  label: string;
  tabs: readonly { id: T; label: ReactNode; mark?: ReactNode }[];
  value: T;
  onChange: (id: T) => void;
  panel: string;
}) {
  const list = useRef<HTMLDivElement>(null);
  const move = (by: number) => {
    const at = (tabs.findIndex((tab) => tab.id === value) + by + tabs.length) % tabs.length;
    onChange(tabs[at]!.id);
    list.current?.querySelectorAll<HTMLElement>('[role="tab"]')[at]?.focus();
  };
  return (
    <div className="tabs" role="tablist" aria-label={label} ref={list}>
      {tabs.map((tab) => (
        <button
          key={tab.id}
          type="button"
          role="tab"
          aria-selected={tab.id === value}
          aria-controls={panel}
          tabIndex={tab.id === value ? 0 : -1}
          onClick={() => onChange(tab.id)}
          onKeyDown={(event) => {
            if (event.key === "ArrowRight") move(1);
            else if (event.key === "ArrowLeft") move(-1);
          }}
        >
          {tab.label}
          {tab.mark}
        </button>
      ))}
    </div>
  );
}

/** A bordered part with a heading and, at its end, what can be done with it. */
export function Card({ title, actions, children }: { title?: ReactNode; actions?: ReactNode; children: ReactNode }) {
  return (
    <section className="card">
      {(title || actions) && (
        <header>
          {title && <h2>{title}</h2>}
          {actions && <div className="actions">{actions}</div>}
        </header>
      )}
      {children}
    </section>
  );
}

export type BadgeTone = "plain" | "good" | "bad" | "warn" | "busy";

/** A word on a coloured ground; the word says it, the colour only helps. */
export function Badge({ tone = "plain", children }: { tone?: BadgeTone; children: ReactNode }) {
  return <span className={`badge ${tone}`}>{children}</span>;
}

/** A circle that turns while something is waited for. */
export function Spinner({ label = "working" }: { label?: string }) {
  return label ? <span className="spinner" role="img" aria-label={label} /> : <span className="spinner" aria-hidden />;
}

/** A modal dialog: the browser's own, with its focus trap and Escape. */
export function Dialog({
  title,
  open,
  onClose,
  children,
}: {
  title: string;
  open: boolean;
  onClose: () => void;
  children: ReactNode;
}) {
  const dialog = useRef<HTMLDialogElement>(null);
  const id = useId();
  useEffect(() => {
    if (open && !dialog.current?.open) {
      dialog.current?.showModal();
      // A field is typed into at once, instead of the button that comes before it.
      dialog.current?.querySelector<HTMLElement>("input, textarea")?.focus();
    }
    if (!open && dialog.current?.open) dialog.current.close();
  }, [open]);
  return (
    <dialog ref={dialog} aria-labelledby={id} onClose={onClose}>
      {open && (
        <>
          <header>
            <h2 id={id}>{title}</h2>
            <Button tone="quiet" onClick={onClose} aria-label="close">
              <Icon name="close" />
            </Button>
          </header>
          {children}
        </>
      )}
    </dialog>
  );
}

/** A table of rows that scrolls within itself on narrow screens; `dense` keeps each row on one line. */
export function Table({
  label,
  head,
  rows,
  dense = false,
}: {
  label: string;
  head: readonly string[];
  rows: readonly ReactNode[][];
  dense?: boolean;
}) {
  const numbers = head.map((_, column) => rows.length > 0 && rows.every((row) => isNumber(row[column])));
  return (
    // biome-ignore lint/a11y/useSemanticElements: a scrolling region must be reachable by the keyboard
    <div className={dense ? "table-scroll dense" : "table-scroll"} role="region" aria-label={label} tabIndex={0}>
      <table>
        <thead>
          <tr>
            {head.map((cell, column) => (
              <th key={cell} scope="col" className={numbers[column] ? "number" : undefined}>
                {cell}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row, number) => (
            <tr key={number}>
              {row.map((cell, column) => (
                <td key={column} className={numbers[column] ? "number" : undefined}>
                  {cell}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** What stands at the right of its column. */
const isNumber = (cell: ReactNode) =>
  typeof cell === "number" || (typeof cell === "string" && /^[$−-]?\d[\d.,]*( ?(k|M|%|s|ms))?$/.test(cell));

/** An error with its advice, as the server or the command words them. */
export function Trouble({ error }: { error: unknown }) {
  if (!error) return null;
  const refused = error instanceof Refused ? error : null;
  return (
    <div className="trouble" role="alert">
      {error instanceof Error ? error.message : String(error)}
      {refused?.advice && <div className="dim">{refused.advice}</div>}
    </div>
  );
}

/** Text that a program printed, as it stands; long output scrolls within itself, and with `follow` stays at its end. */
export function Output({ label, text, follow = false }: { label: string; text: string; follow?: boolean }) {
  return (
    <section className={follow ? "output follow" : "output"} aria-label={label} tabIndex={0}>
      {text}
    </section>
  );
}

/** Nothing is here, and why; with an icon it stands in the middle of a pane that is empty. */
export function Empty({ icon, children }: { icon?: IconName; children: ReactNode }) {
  return (
    <div className={icon ? "empty dim whole" : "empty dim"}>
      {icon && <Icon name={icon} />}
      <p>{children}</p>
    </div>
  );
}

interface ToastLine {
  id: number;
  text: string;
  advice: string;
  bad: boolean;
}
let toasts: readonly ToastLine[] = [];
let counter = 0;
const watchers = new Set<() => void>();

function setToasts(next: readonly ToastLine[]): void {
  toasts = next;
  for (const watcher of watchers) watcher();
}

/** Says something in passing; an error with its advice. */
export function toast(what: unknown): void {
  counter += 1;
  const id = counter;
  const bad = what instanceof Error;
  const advice = what instanceof Refused ? what.advice : "";
  setToasts([...toasts.slice(-3), { id, bad, advice, text: bad ? what.message : String(what) }]);
  setTimeout(() => setToasts(toasts.filter((one) => one.id !== id)), bad ? 12000 : 5000);
}

/** The place where toasts are shown. */
export function Toasts() {
  const lines = useSyncExternalStore(
    (watch) => {
      watchers.add(watch);
      return () => watchers.delete(watch);
    },
    () => toasts,
  );
  return (
    <div className="toasts" role="status" aria-live="polite">
      {lines.map((line) => (
        <div key={line.id} className={line.bad ? "toast bad" : "toast"}>
          <div>
            {line.text}
            {line.advice && <div className="dim">{line.advice}</div>}
          </div>
          <Button
            tone="quiet"
            aria-label="dismiss"
            onClick={() => setToasts(toasts.filter((one) => one.id !== line.id))}
          >
            <Icon name="close" />
          </Button>
        </div>
      ))}
    </div>
  );
}

/** Does something and says its error in passing; true when it went well. */
export async function attempt(work: () => Promise<unknown>): Promise<boolean> {
  try {
    await work();
    return true;
  } catch (error) {
    toast(error instanceof Error ? error : new Error(String(error)));
    return false;
  }
}

/** The width of an element, in pixels; it follows every change. */
export function useWidth(box: RefObject<Element | null>): number {
  const [width, setWidth] = useState(640);
  useLayoutEffect(() => {
    const node = box.current!;
    const observer = new ResizeObserver(() => setWidth(Math.round(node.clientWidth)));
    observer.observe(node);
    setWidth(Math.round(node.clientWidth));
    return () => observer.disconnect();
  }, [box]);
  return width;
}

export interface Loaded<T> {
  value: T | null;
  error: unknown;
  loading: boolean;
  reload: () => void;
}

/**
 * A value from the server, asked for again when `key` changes, and after an error when the connection is back; an answer
 * that comes too late is dropped.
 */
export function useLoaded<T>(load: () => Promise<T>, key: unknown): Loaded<T> {
  const [state, setState] = useState<Omit<Loaded<T>, "reload">>({ value: null, error: null, loading: true });
  const [asked, setAsked] = useState(0);
  // biome-ignore lint/correctness/useExhaustiveDependencies: `key` and `asked` say when to load again
  useEffect(() => {
    let current = true;
    setState((old) => ({ ...old, loading: true }));
    load().then(
      (value) => current && setState({ value, error: null, loading: false }),
      (error) => current && setState({ value: null, error, loading: false }),
    );
    return () => {
      current = false;
    };
  }, [key, asked]);
  const failed = Boolean(state.error);
  useEffect(() => {
    if (!failed) return;
    const again = () => setAsked((number) => number + 1);
    addEventListener(CONNECTED, again);
    return () => removeEventListener(CONNECTED, again);
  }, [failed]);
  return { ...state, reload: () => setAsked((number) => number + 1) };
}
