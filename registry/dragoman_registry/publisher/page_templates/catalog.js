"use strict";
(() => {
  const STEP = 50;
  const el = (id) => document.getElementById(id);
  const { apis, can, reaches, drivers } = JSON.parse(el("data").textContent);
  const list = el("drivers"), more = el("more"), form = document.querySelector(".finder"), row = el("row").content;
  const boxes = [...form.querySelectorAll("input[type=checkbox]")];
  // One row of the data: file, id, label, summary, types, capabilities, version, API versions, reach; the last ones by number.
  const known = drivers.map(([file, id, label, summary, types, abilities, version, fits, reach]) => ({
    file, label, summary, types, version, abilities, fits, reach, id,
    names: [id, label.toLowerCase(), ...types], rest: summary.toLowerCase(),
  }));
  let found = [], shown = 0;

  // As the command line ranks: the id itself, its beginning, a name, then the summary; every word must be somewhere.
  const rank = (one, word) =>
    one.id === word ? 8 : one.id.startsWith(word) ? 4 : one.names.some((name) => name.includes(word)) ? 2
      : one.rest.includes(word) ? 1 : 0;

  const score = (one, words) => {
    let sum = 0;
    for (const word of words) {
      const value = rank(one, word);
      if (!value) return 0;
      sum += value;
    }
    return sum || 1;
  };

  const make = (one) => {
    const made = row.cloneNode(true);
    const put = (name, value) => { made.querySelector(`[data-at=${name}]`).textContent = value; };
    put("label", one.label);
    put("version", one.version);
    put("summary", one.summary);
    put("types", one.types.join(", "));
    put("can", one.abilities.map((at) => can[at]).join(", "));
    put("reaches", reaches[one.reach]);
    made.querySelector("a").setAttribute("href", one.file);
    return made;
  };

  const extend = () => {
    const next = found.slice(shown, shown + STEP);
    list.append(...next.map(make));
    shown += next.length;
    more.hidden = shown >= found.length;
    return next.length;
  };

  const search = () => {
    const words = el("words").value.toLowerCase().split(/\s+/).filter(Boolean);
    const type = el("type").value.trim().toLowerCase(), api = apis.indexOf(el("api").value);
    const wanted = boxes.filter((box) => box.checked).map((box) => can.indexOf(box.value));
    found = known
      .filter((one) => (!type || one.types.some((name) => name.startsWith(type)))
        && (api < 0 || one.fits.includes(api)) && wanted.every((at) => one.abilities.includes(at)))
      .map((one) => [score(one, words), one]).filter(([value]) => value)
      .sort((one, other) => other[0] - one[0] || (one[1].id < other[1].id ? -1 : 1)).map(([, one]) => one);
    const all = found.length === known.length;
    el("count").textContent = all ? `${known.length.toLocaleString("en")} driver${known.length === 1 ? "" : "s"}`
      : found.length ? `${found.length.toLocaleString("en")} of ${known.length.toLocaleString("en")} drivers` : "No driver is like that.";
    list.replaceChildren();
    shown = 0;
    extend();
    const state = new URLSearchParams();
    for (const id of ["words", "type", "api"]) if (el(id).value) state.set(id, el(id).value);
    for (const box of boxes) if (box.checked) state.append("can", box.value);
    history.replaceState(null, "", `#${state}`);
  };

  const restore = () => {
    const state = new URLSearchParams(location.hash.slice(1));
    for (const id of ["words", "type", "api"]) el(id).value = state.get(id) ?? "";
    for (const box of boxes) box.checked = state.getAll("can").includes(box.value);
    return state.size > 0;
  };

  for (const name of [...new Set(known.flatMap((one) => one.types))].sort().slice(0, 300)) {
    el("types").append(Object.assign(document.createElement("option"), { value: name }));
  }
  const button = Object.assign(document.createElement("button"), { type: "button", className: "plain", textContent: "Show more" });
  button.addEventListener("click", () => {
    const first = shown;
    extend();
    list.children[first].querySelector("a").focus(); // where the reading goes on
  });
  const here = new URL(".", location).href.replace(/^file:\/\//, "");
  const place = here.startsWith("/") ? decodeURIComponent(here) : here;
  const quoted = /^[\w@%+=:,./-]+$/.test(place) ? place : `'${place.replaceAll("'", "'\\''")}'`;
  el("use").textContent = `dragoman registry add ${quoted}`;
  more.replaceChildren(button);
  form.hidden = known.length === 0;
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("input", search);
  if (restore() || known.length > list.children.length) search();
})();
