import { sectionOf } from "../markdown/sections.ts";
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Nodes } from "mdast";
import { fromLocal, spanLabel, toLocal } from "../grid/time_spans.ts";
import { readMarkdown, textOf } from "../markdown/tree.ts";

function kinds(node: Nodes): string[] {
  return [node.type, ...("children" in node ? node.children.flatMap(kinds) : [])];
}

function depth(node: Nodes): number {
  return 1 + ("children" in node ? Math.max(0, ...node.children.map(depth)) : 0);
}

test("Markdown becomes a tree of headings, lists, code, emphasis, tables and links", () => {
  const text = "# A *b*\n\n1. `c`\n\n```\nd\n```\n\n| e | f |\n| - | -: |\n| **g** | [h](https://i.invalid) |\n";
  const found = new Set(kinds(readMarkdown(text)));
  const wanted = ["heading", "emphasis", "list", "listItem", "inlineCode", "code", "table", "strong", "link"];
  assert.deepEqual(wanted.filter((kind) => !found.has(kind)), []);
});

test("HTML in Markdown is text, with every character", () => {
  for (const html of ["<b>x</b>", "<script>\nx\n</script>", "a <img src=x> b", "<!-- x -->", "<?x?>", "<!DOCTYPE x>"]) {
    const tree = readMarkdown(html);
    assert.ok(!kinds(tree).includes("html"), html);
    assert.equal(textOf(tree), html);
  }
});

test("entities are decoded without a document", () => {
  assert.equal(textOf(readMarkdown("&lt;b&gt; &ouml; &#65; &nope;")), "<b> ö A &nope;");
});

test("no tree is deep, and what is too deep keeps its text", () => {
  for (const unit of ["> ", "- ", "1. "]) {
    const tree = readMarkdown(`${unit.repeat(300)}inside`);
    assert.ok(depth(tree) < 40, unit);
    assert.ok(textOf(tree).includes("inside"), unit);
  }
  assert.ok(!JSON.stringify(readMarkdown("# a")).includes("position"));
});

test("a span of time has a name, and instants stay what they are in another time zone", () => {
  const time = { column: "t", window: null };
  assert.equal(spanLabel({ since: "-1h" }, time), "last hour");
  assert.equal(spanLabel({ all_time: true }, time), "all");
  assert.equal(spanLabel({}, time), "all");
  assert.equal(spanLabel({}, { column: "t", window: 604_800 }), "last 7 days");
  assert.match(spanLabel({ since: "2026-11-23T12:00:00Z" }, time), /^since 2026-11-2\d \d\d:\d\d$/);
  assert.match(spanLabel({ until: "2026-11-23T12:00:07Z" }, time), /^until 2026-11-2\d \d\d:\d\d:07$/);
  for (const instant of ["2026-11-23T12:00:00Z", "1969-12-31T23:59:59Z", "0999-01-01T00:00:00Z"]) {
    assert.equal(fromLocal(toLocal(instant)), instant);
  }
  assert.equal(toLocal(null), "");
  assert.equal(fromLocal(""), null);
});

test("a version's part of a changelog ends where the next one begins", () => {
  const text = "# Changes\n\n## [1.10.0] - 2026-01-02\n\nten\n\n### Fixed\n\n- a\n\n## v1.1.0\n\none\n";
  assert.equal(sectionOf(text, "1.10.0"), "ten\n\n### Fixed\n\n- a");
  assert.equal(sectionOf(text, "1.1.0"), "one");
  assert.equal(sectionOf(text, "1.1"), "");
  assert.equal(sectionOf("", "1.0"), "");
});
