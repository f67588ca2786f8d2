/** Installations that run now, as the event stream tells. */

import { fileSize } from "../ui/figures.ts";
import { installs } from "../state/store.ts";

export function InstallProgress() {
  return (
    <>
      {[...installs.value.values()].map(({ plugin, version, phase, done, total }) => (
        <div class="progress" key={plugin} role="status">
          <p>
            Installing <strong>{plugin}</strong> {version}: {phase || "starting"}
            {total > 0 && <span class="muted"> {fileSize(done)} of {fileSize(total)}</span>}
          </p>
          <progress max={total || undefined} value={total ? done : undefined} aria-label={`Installing ${plugin}`} />
        </div>
      ))}
    </>
  );
}
