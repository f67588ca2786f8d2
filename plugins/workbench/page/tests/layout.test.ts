/** Requests laid out over lines: only blanks change, and what cannot be read stays. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { LayoutFault, layOut, signsOf } from "../console/layout.ts";

function laidOut(text: string, place = 0): string {
  return [...layOut(text, place)].reverse().reduce((now, { from, to, insert }) => now.slice(0, from) + insert + now.slice(to), text);
}

const same = (text: string) => text.replace(/\s/g, "");

test("a body is laid out, with every digit, name and comment", () => {
  const text = `POST /a/_search?q=x\n{"a":12345678901234567890,"a":1.10,  // why\n"b":{"c":[],"d":{}},/* of\ntwo lines */"e":[1,  2,3e400], # end
 "f":[{"g":null}] }\n\nGET /b {"z":1}`;
  const after = laidOut(text);
  assert.equal(
    after,
    `POST /a/_search?q=x
{
  "a": 12345678901234567890,
  "a": 1.10, // why
  "b": {
    "c": [],
    "d": {}
  }, /* of
two lines */ "e": [1, 2, 3e400], # end
  "f": [
    {
      "g": null
    }
  ]
}

GET /b {"z":1}`,
  );
  assert.equal(same(after), same(text));
  assert.deepEqual(layOut(after, 0), []);
});

test("the request of the cursor's line is laid out, and no other", () => {
  const text = 'GET /a\n{"x":1}\n\nGET /b {"y":1}\n# of c\nGET /c\n{"z":1}';
  assert.equal(laidOut(text, text.indexOf("x")), text.replace('{"x":1}', '{\n  "x": 1\n}'));
  assert.equal(laidOut(text, text.indexOf("GET /b") + 2), text.replace('{"y":1}', '{\n  "y": 1\n}'));
  assert.equal(laidOut(text, text.indexOf("z")), text.replace('{"z":1}', '{\n  "z": 1\n}'));
});

test("what endpoints for many rows take is a line for each value", () => {
  const text = 'POST /_bulk\n{"index":{"_id":\n"1"}}\n\n{"a" : [1,2],"b":"""two\nlines"""}\n{"delete":{ /* old */ "_id":"2"}}\n{"a":1, # x\n"b":2}';
  const after = laidOut(text);
  assert.equal(
    after,
    'POST /_bulk\n{"index": {"_id": "1"}}\n{"a" : [1,2],"b":"""two\nlines"""}\n{"delete": { /* old */ "_id": "2"}}\n{"a":1, # x\n"b":2}',
  );
  assert.deepEqual(layOut(after, 0), []);
  assert.equal(laidOut('POST /a/_msearch?x=1\n{ }\n{"size":\n1}'), 'POST /a/_msearch?x=1\n{}\n{"size": 1}');
  assert.equal(laidOut('POST /_bulk {"delete":\n{}}'), 'POST /_bulk {"delete": {}}');
});

test("variables and words that touch stay together, and texts keep their blanks", () => {
  const text = 'PUT /${index}/_doc/1\n{"n":${a}${b},"m":-${c} ,"t":"a  ${d}  \\" {","u":"""x " {\n  y"""}';
  assert.equal(laidOut(text), 'PUT /${index}/_doc/1\n{\n  "n": ${a}${b},\n  "m": -${c},\n  "t": "a  ${d}  \\" {",\n  "u": """x " {\n  y"""\n}');
});

test("a text and what touches it stay together", () => {
  assert.equal(laidOut('GET /a {"n":"a"${b} ,"m":${a}"b"}'), 'GET /a {\n  "n": "a"${b},\n  "m": ${a}"b"\n}');
  assert.equal(laidOut('POST /_bulk\n{"n":"a"${b} ,\n"m":${a}"b"}'), 'POST /_bulk\n{"n": "a"${b}, "m": ${a}"b"}');
  assert.equal(laidOut("query($a:[Int!]!){b}"), "query($a: [Int!]!) {\n  b\n}");
});

test("GraphQL is laid out too", () => {
  const text = `query Q($n:Int! = 5){Get{Book(where:{path:["a"],operator:Equal ,valueText:"x {"},limit:$n){title author:name,pages # of
... on Book{isbn} ...more @include(if:true) _additional{id}}}}fragment more on Book{a b}`;
  const after = laidOut(text);
  assert.equal(
    after,
    `query Q($n: Int! = 5) {
  Get {
    Book(where: {path: ["a"], operator: Equal, valueText: "x {"}, limit: $n) {
      title
      author: name,
      pages # of
      ... on Book {
        isbn
      }
      ...more @include(if: true)
      _additional {
        id
      }
    }
  }
}
fragment more on Book {
  a
  b
}`,
  );
  assert.equal(same(after), same(text));
  assert.deepEqual(layOut(after, 0), []);
});

test("GraphQL below a request by path is a request of its own, and JSON with a query is JSON", () => {
  assert.equal(laidOut("GET /v1/schema\n\n{Get{Book{title}}}", 20), "GET /v1/schema\n\n{\n  Get {\n    Book {\n      title\n    }\n  }\n}");
  assert.equal(laidOut('{"query":"{ Get { x } }"}'), '{\n  "query": "{ Get { x } }"\n}');
});

test("what cannot be laid out is refused with its place, and nothing changes", () => {
  const fault = (text: string, place = 0): [string, number] => {
    try {
      layOut(text, place);
    } catch (error) {
      assert.ok(error instanceof LayoutFault);
      return [error.message, error.at];
    }
    return ["", -1];
  };
  assert.deepEqual(fault('GET /a\n{"a":[1}'), ["this } closes nothing", 14]);
  assert.deepEqual(fault('GET /a\n{"a":[1]'), ["this { is not closed", 7]);
  assert.deepEqual(fault('GET /a\n{"a\n":1}'), ["this text is not closed", 8]);
  for (const none of ["GET /a", "", "SELECT 1 {", 'sum(rate(up{job="a"}[5m]))', '{__name__="up"}', "{job=~'a'}", "# {}", "GET /a\n# {"]) {
    assert.equal(fault(none)[0], "there is no JSON and no GraphQL here to lay out", none);
  }
});

test("random texts keep their signs, and a second time changes nothing", () => {
  let seed = 7;
  const random = (below: number) => (seed = (seed * 1_103_515_245 + 12_345) % 2_147_483_648) % below;
  const scalars = ["9007199254740993", "-0.10", "1e400", "null", '"a  b"', '"\\"}"', '"é\\n"', "${x}", '"""l\n{"""', "${x}_${y}", '""'];
  const blanks = ["", " ", "\n", "\n\n   ", "\t", " /* } */ ", " # ]\n", " // {\n"];
  const blank = () => blanks[random(blanks.length)];
  const value = (depth: number): string => {
    const kind = depth > 3 ? 0 : random(3);
    if (!kind) return scalars[random(scalars.length)];
    const parts = Array.from({ length: random(4) }, () => `${blank()}${kind > 1 ? `"a"${blank()}:${blank()}` : ""}${value(depth + 1)}${blank()}`);
    return kind > 1 ? `{${parts.join(",")}${blank()}}` : `[${parts.join(",")}${blank()}]`;
  };
  for (let round = 0; round < 2_000; round += 1) {
    const bodies = Array.from({ length: 1 + random(3) }, () => `\n{"v":${value(0)}}`);
    const text = `POST /a/${["_search", "_bulk", "${i}"][random(3)]}${bodies.join("")}\n`;
    const after = laidOut(text);
    assert.equal(same(after), same(text), text);
    assert.equal(signsOf(after), signsOf(text), text);
    assert.ok(signsOf(after));
    assert.deepEqual(layOut(after, 0), [], after);
  }
});

test("signs tell whether two texts begin with the same request", () => {
  const one = 'GET /a\n{"a":1}';
  for (const other of ['GET /a\n{\n  "a": 1 }\n', `${one}\n# x\n\n`, `${one}\n\nGET /b`, `${one}\n// x\n  POST /b\n{"`, `${one}\n{ Get { x } }`]) {
    assert.equal(signsOf(other), signsOf(one), other);
  }
  for (const other of ['GET /a\n{"a":2}', 'GET /b\n{"a":1}', `${one}\n{}`, `${one} x`, `${one} GET /b`, `${one}\nx`, 'GET /a\n{"a":1,"a":1}', "GET /a", 'GET /a x\n{"a":1}']) {
    assert.notEqual(signsOf(other), signsOf(one), other);
  }
  const query = "{\n  Get {\n    Book {\n      post title\n      id\n    }\n  }\n}";
  assert.equal(signsOf(query), signsOf("{Get{Book{post title id}}}"));
  assert.notEqual(signsOf(query), signsOf(query.replace(" id", " name")));
  for (const text of ["sum(up)\n\nup", "x", "", 'GET /a\n{"']) assert.equal(signsOf(text), null, text);
});

test("a line as long as the text is read once, and deep brackets are not laid out", () => {
  const many = 300_000; // a reader that looks at a whole line for each sign takes minutes
  const long = `POST /a/_search\n{"a":[${"{},".repeat(many)}1]}`;
  assert.equal(layOut(long, 0).length, many + 5);
  assert.equal(signsOf(long), signsOf(long.replaceAll(",", " ,  ")));
  const variables = `query Q(${"$a: Int = 1 ".repeat(20_000)}) { a }`;
  assert.ok(layOut(variables, 0).length);
  const deep = (depth: number) => `POST /a\n${"[".repeat(depth)}${"]".repeat(depth)}`;
  assert.ok(laidOut(deep(1_000)).includes("\n"));
  assert.throws(() => layOut(deep(1_001), 0), LayoutFault);
});
