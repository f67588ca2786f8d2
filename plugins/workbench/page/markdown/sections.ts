/** Parts of a changelog. */

const HEADING = /^(#{1,6})\s+(.*)$/;

/** What stands below the heading that names a version, up to the next heading of its level; empty if there is none. */
export function sectionOf(changelog: string, version: string): string {
  const names = (title: string) => title.split(/[\s[\](),:]+/).some((word) => word === version || word === `v${version}`);
  const lines = changelog.split("\n");
  const first = lines.findIndex((line) => names(HEADING.exec(line)?.[2] ?? ""));
  if (first < 0) return "";
  const level = HEADING.exec(lines[first])![1].length;
  const length = lines.slice(first + 1).findIndex((line) => (HEADING.exec(line)?.[1].length ?? 7) <= level);
  return lines.slice(first + 1, length < 0 ? undefined : first + 1 + length).join("\n").trim();
}
