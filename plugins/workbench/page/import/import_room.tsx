/** The view of imports, fetched when it is first opened. */

import type { ComponentType } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { OpenConnection } from "../messages.ts";
import { ErrorBox, Waiting } from "../ui/controls.tsx";

type View = ComponentType<{ open: OpenConnection; object: string }>;

export function ImportRoom(props: { open: OpenConnection; object: string }) {
  const [loaded, setLoaded] = useState<{ View: View } | null>(null);
  const [failed, setFailed] = useState<unknown>(null);
  useEffect(() => {
    import("./import_view.tsx").then(({ ImportView }) => setLoaded({ View: ImportView })).catch(setFailed);
  }, []);
  if (failed !== null) return <ErrorBox error={failed} />;
  return loaded ? <loaded.View {...props} /> : <Waiting what="Loading …" />;
}
