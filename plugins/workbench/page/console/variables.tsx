/** Values of `${name}` in a console text; they live as long as the tab. */

import { useState } from "preact/hooks";
import { Button } from "../ui/controls.tsx";
import { Dialog } from "../ui/dialog.tsx";

type Values = Readonly<Record<string, string>>;

export function Variables({ values, change }: { values: Values; change: (values: Values) => void }) {
  const [open, setOpen] = useState(false);
  const [lines, setLines] = useState<readonly (readonly [string, string])[]>([]);
  const count = Object.keys(values).length;
  const start = () => {
    setLines([...Object.entries(values), ["", ""]]);
    setOpen(true);
  };
  const edit = (at: number, name: string, value: string) => {
    const next = lines.map((line, index) => (index === at ? ([name, value] as const) : line));
    setLines(next.at(-1)?.[0] ? [...next, ["", ""]] : next);
  };
  const keep = () => {
    change(Object.fromEntries(lines.filter(([name]) => name.trim()).map(([name, value]) => [name.trim(), value])));
    setOpen(false);
  };
  return (
    <>
      <Button label={count ? `Variables (${count})` : "Variables"} onClick={start} />
      {open && (
        <Dialog
          title="Variables"
          onClose={() => setOpen(false)}
          footer={
            <>
              <Button label="Cancel" onClick={() => setOpen(false)} />
              <Button label="Keep" tone="primary" onClick={keep} />
            </>
          }
        >
          <p class="muted">A request uses a value as {"${name}"}. Values stay in this tab.</p>
          {lines.map(([name, value], at) => (
            <div class="variable" key={at}>
              <input aria-label={`Name ${at + 1}`} placeholder="name" value={name} onInput={(event) => edit(at, event.currentTarget.value, value)} />
              <input aria-label={`Value ${at + 1}`} placeholder="value" value={value} onInput={(event) => edit(at, name, event.currentTarget.value)} />
            </div>
          ))}
        </Dialog>
      )}
    </>
  );
}
