/** A JSON text that is being written. */

import type { EditorView } from "@codemirror/view";
import { useEffect, useRef, useState } from "preact/hooks";
import { ErrorBox, Waiting } from "./controls.tsx";
import type { JsonCommands, Marks } from "./json_code.ts";

type Code = typeof import("./json_code.ts");

export function JsonEditor({ label, text, marks, folded = [], commands, goTo }: {
  label: string;
  /** What the editor begins with. */
  text: string;
  marks: Marks;
  /** Places of values that begin folded. */
  folded?: readonly number[];
  commands: JsonCommands;
  /** Set to what moves the cursor to a place. */
  goTo?: { current: (at: number) => void };
}) {
  const host = useRef<HTMLDivElement>(null);
  const now = useRef(commands);
  now.current = commands;
  const [editor, setEditor] = useState<{ view: EditorView; code: Code } | null>(null);
  const [failed, setFailed] = useState<unknown>(null);
  useEffect(() => {
    let view: EditorView | null = null;
    let left = false;
    import("./json_code.ts").then((code) => {
      if (left || !host.current) return;
      view = code.openJson(host.current, text, label, {
        changed: (written) => now.current.changed(written),
        done: () => now.current.done(),
        cancel: () => now.current.cancel(),
      });
      for (const at of folded) code.fold(view, at);
      const shown = view;
      if (goTo) goTo.current = (at) => code.reach(shown, at);
      setEditor({ view, code });
      view.focus();
    }, setFailed);
    return () => {
      left = true;
      view?.destroy();
    };
  }, []);
  useEffect(() => {
    if (editor) editor.code.mark(editor.view, marks);
  }, [editor, marks]);
  return (
    <div class="editor" ref={host} onKeyDown={(event) => event.key === "Escape" && event.stopPropagation()}>
      {!editor && failed === null && <Waiting what="Loading the editor …" />}
      {failed !== null && <ErrorBox error={failed} />}
    </div>
  );
}
