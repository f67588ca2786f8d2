/** Small controls that every view uses. */

import { type ComponentChildren, type ComponentType, createElement } from "preact";
import { useEffect, useId, useRef, useState } from "preact/hooks";
import type { Action, RequestFailure, Note } from "../messages.ts";
import { Failure } from "../wire/client.ts";
import { Icon, type IconName } from "./icons.tsx";
import { copyText } from "./toasts.tsx";

interface ButtonProps {
  readonly icon?: IconName;
  readonly label: string;
  readonly onClick: (event: MouseEvent) => void;
  readonly tone?: "plain" | "primary" | "danger" | "quiet";
  /** Show the icon alone; the label is then the name and the tooltip. With `wide` or `widest`, also where there is room. */
  readonly bare?: boolean | "wide" | "widest";
  readonly disabled?: boolean;
  readonly busy?: boolean;
  readonly pressed?: boolean;
  readonly expanded?: boolean;
  readonly title?: string;
  readonly submit?: boolean;
  readonly tabIndex?: number;
  /** Why it cannot be used; it is then disabled, and the reason stands beside it. */
  readonly why?: string;
}

export function Button(props: ButtonProps) {
  const { icon, label, onClick, tone = "plain", bare, disabled, busy, pressed, expanded, title, submit, tabIndex, why } = props;
  const reason = useId();
  const button = (
    <button
      type={submit ? "submit" : "button"}
      class={`button ${tone}${bare ? ` bare${bare === true ? "" : ` ${bare}`}` : ""}`}
      onClick={onClick}
      disabled={disabled || busy || !!why}
      tabIndex={tabIndex}
      aria-describedby={why ? reason : undefined}
      aria-pressed={pressed}
      aria-expanded={expanded}
      aria-busy={busy}
      aria-label={bare ? label : undefined}
      title={title ?? (bare ? label : undefined)}
    >
      {busy ? <span class="spinner" aria-hidden="true" /> : icon && <Icon name={icon} />}
      {bare !== true && <span>{label}</span>}
    </button>
  );
  if (!why) return button;
  return (
    <span class="with-why">
      {button}
      <span id={reason} class="muted">{why}</span>
    </span>
  );
}

type BadgeTone = "plain" | "good" | "warn" | "bad" | "accent";

export function Badge({ tone = "plain", title, children }: {
  tone?: BadgeTone;
  title?: string;
  children: ComponentChildren;
}) {
  return (
    <span class={`badge ${tone}`} title={title}>
      {children}
    </span>
  );
}

/** Something is under way. It appears only after a moment, so that quick answers do not flicker. */
export function Waiting({ what }: { what: string }) {
  const [late, setLate] = useState(false);
  useEffect(() => {
    const timer = setTimeout(() => setLate(true), 150);
    return () => clearTimeout(timer);
  }, []);
  return (
    <p class="waiting" role="status">
      {late && <span class="spinner" aria-hidden="true" />}
      {late && what}
    </p>
  );
}

/** Errors whose message is in the words of a server, or of a command; the message is quoted below. */
const PLAIN: Readonly<Record<string, string>> = {
  "object-not-found": "This object does not exist, or this user may not see it.",
  "plugin-not-found": "No registry has this driver.",
};

type Does = (remedy: Action, again: () => void) => void;
let usual: Does | null = null;

/** What a button beside a failure does, unless its place says otherwise. */
export function onRemedy(does: Does): void {
  usual = does;
}

/** Why something failed, with what can be done about it. */
export function ErrorBox({ error, act, retry, children }: {
  error: unknown;
  act?: (remedy: Action) => void;
  retry?: () => void;
  /** Further buttons. */
  children?: ComponentChildren;
}) {
  const failure = asFailure(error);
  const { remedy } = failure;
  return (
    <div class="error-box" role="alert">
      <Icon name="warning" />
      <div class="error-text">
        <p>{PLAIN[failure.code] ?? failure.message}</p>
        {PLAIN[failure.code] && <p class="muted">{failure.message}</p>}
        {failure.hint && (
          <p class="muted">
            {failure.hintFrom === "driver" && <span>The driver says: </span>}
            {failure.hint}
          </p>
        )}
        <p class="code">{failure.code}</p>
      </div>
      <div class="error-actions">
        {remedy &&
          (remedy.action === "command" ? (
            <Button icon="copy" label={remedy.label} title={remedy.target} onClick={() => void copyText(remedy.target)} />
          ) : (
            (act || usual) && <Button label={remedy.label} tone="primary" onClick={() => (act ? act(remedy) : usual!(remedy, retry ?? (() => {})))} />
          ))}
        {children}
        {retry && <Button label="Try again" icon="refresh" onClick={retry} />}
      </div>
    </div>
  );
}

export function asFailure(error: unknown): Failure {
  if (error instanceof Failure) return error;
  if (error && typeof error === "object" && "code" in error && "message" in error) {
    return new Failure(error as RequestFailure);
  }
  return new Failure({ code: "page-fault", message: error instanceof Error ? error.message : String(error) });
}

/** A command to paste, which a click copies. */
export function CopyCommand({ command, label }: { command: string; label?: string }) {
  return (
    <span class="command">
      {label && <span class="muted">{label}</span>}
      <code>{command}</code>
      <Button icon="copy" label={`Copy ${command}`} bare tone="quiet" onClick={() => void copyText(command)} />
    </span>
  );
}

/** The notes of a result, always in sight. */
export function Notes({ notes, all }: { notes: readonly Note[]; all?: boolean }) {
  const [open, setOpen] = useState(!!all);
  if (!notes.length) return null;
  const shown = open ? notes : notes.slice(0, 2);
  return (
    <section class="notes" aria-label="Notes on this result">
      <ul>
        {shown.map((note) => (
          <li key={note.code + note.column + note.reason}>
            <Badge tone="warn">{note.code}</Badge>
            <span>
              {note.column && <strong>{note.column}: </strong>}
              {note.reason}
              {note.hint && <span class="muted"> {note.hint}</span>}
            </span>
          </li>
        ))}
      </ul>
      {notes.length > 2 && !all && (
        <Button
          label={open ? "Fewer notes" : `${notes.length - 2} more notes`}
          tone="quiet"
          expanded={open}
          onClick={() => setOpen(!open)}
        />
      )}
    </section>
  );
}

/** Tabs over one panel, whose id is `panel`: a click or an arrow key chooses, and one of them is always chosen. */
export function Tabs<T extends string>({ label, names, titles, chosen, choose, panel }: {
  label: string;
  names: readonly T[];
  /** What a tab says where it is not its name. */
  titles?: Readonly<Record<string, string>>;
  chosen: T | undefined;
  choose: (name: T) => void;
  panel: string;
}) {
  const list = useRef<HTMLDivElement>(null);
  const move = (event: KeyboardEvent) => {
    const by = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
    if (!by || !chosen) return;
    event.preventDefault();
    const next = (names.indexOf(chosen) + by + names.length) % names.length;
    choose(names[next]);
    (list.current?.children[next] as HTMLElement | undefined)?.focus();
  };
  return (
    <div role="tablist" aria-label={label} class="tabs" ref={list} onKeyDown={move}>
      {names.map((name) => (
        <button
          type="button"
          role="tab"
          class="tab"
          key={name}
          aria-controls={panel}
          aria-selected={name === chosen}
          tabIndex={name === chosen ? 0 : -1}
          onClick={() => choose(name)}
        >
          {titles?.[name] ?? name}
        </button>
      ))}
    </div>
  );
}

/** A view whose code is loaded when it is first shown. */
export function lazily<P extends object>(load: () => Promise<ComponentType<P>>): ComponentType<P> {
  let loaded: ComponentType<P> | null = null;
  return function Lazy(props: P) {
    const [, setReady] = useState(false);
    const [failed, setFailed] = useState<unknown>(null);
    useEffect(() => {
      if (loaded) return;
      load().then((view) => {
        loaded = view;
        setReady(true);
      }, setFailed);
    }, []);
    if (failed !== null) return <ErrorBox error={failed} />;
    return loaded ? createElement(loaded, props) : <Waiting what="Loading …" />;
  };
}

/** What an empty place says, and what to do there. */
export function Blank({ icon, title, children }: { icon: IconName; title: string; children?: ComponentChildren }) {
  return (
    <div class="blank">
      <Icon name={icon} />
      <h2>{title}</h2>
      <div>{children}</div>
    </div>
  );
}

/** Move the focus here when the view appears, so that a keyboard goes on where the eye does. */
export function useFocus<T extends HTMLElement>() {
  const target = useRef<T>(null);
  useEffect(() => target.current?.focus({ preventScroll: true }), []);
  return target;
}
