"use strict";
// Everything is made by these two: texts become text nodes, never markup.
const SVG = "http://www.w3.org/2000/svg";
function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== null && value !== undefined && value !== false) node.setAttribute(name, value === true ? "" : String(value));
  }
  for (const child of children.flat()) {
    if (child !== null && child !== undefined) node.append(typeof child === "object" ? child : String(child));
  }
  return node;
}
const make = (name, attributes, ...children) => fill(document.createElement(name), attributes, children);
const draw = (name, attributes, ...children) => fill(document.createElementNS(SVG, name), attributes, children);

// What stands between backticks is code.
const rich = (text) => String(text).split("`").map((part, index, all) => index % 2 && index + 1 < all.length ? make("code", {}, part) : (index % 2 ? "`" : "") + part);

const reports = JSON.parse(document.getElementById("data").textContent);

// ---- one place, with the lines around it
function snippet(shown) {
  const row = (line) => {
    const [before, marked, after] = line.parts;
    const text = line.marked ? [before, make("mark", {}, marked || " "), after] : [before];
    return make("span", { class: line.marked ? "row marked" : "row" }, make("span", { class: "number" }, line.number), ...text);
  };
  const lines = shown.lines.length ? make("pre", { tabindex: 0 }, shown.lines.map(row)) : null;
  return make("div", {}, make("div", { class: "at" }, shown.at), lines);
}

function stack(side) {
  if (!side.stack.length) return null;
  const frame = (one) => {
    const how = one.inlined ? " (inlined)" : "";
    return make("li", { class: one.library ? "library" : null }, make("code", {}, one.function), how, one.at ? make("span", { class: "at" }, " " + one.at) : null);
  };
  // Frames of libraries between those of the user's are there for who asks.
  const runs = side.stack.reduce((all, one) => {
    const last = all[all.length - 1];
    if (one.library && last && last[0].library) last.push(one); else all.push([one]);
    return all;
  }, []);
  const shown = runs.map((run) => run.length < 3 ? run.map(frame)
    : make("li", { class: "library" }, make("details", { class: "calls" }, make("summary", {}, run.length + " frames of libraries"), make("ul", { class: "stack" }, run.map(frame)))));
  const more = [];
  if (side.moreFrames) more.push(make("li", {}, "… " + side.moreFrames + " more"));
  if (!side.complete) more.push(make("li", { class: "library" }, "… callers further out are not known"));
  const summary = make("summary", {}, "call stack of (" + side.number + ")");
  // A short one is what one wants to see; of a long one, the innermost line is above.
  return make("details", { class: "calls", open: runs.length <= 8 }, summary, make("div", { class: "inside" }, make("ul", { class: "stack" }, shown.flat(), more)));
}

// ---- the tasks from the common ancestor
const steps = (way) => way.leftOut ? [...way.top, { leftOut: way.leftOut }, ...way.bottom] : way.top;
const taskText = (task) => task.leftOut ? "… " + task.leftOut + " more tasks" : "task " + task.task + (task.what ? " (" + task.what + ")" : "");

function tree(race) {
  const branch = (index) => {
    const access = make("li", { class: "access" }, rich("(" + (index + 1) + ") " + race.sides[index].does), make("span", { class: "at" }, " " + race.sides[index].shown.at));
    return steps(race.ways[index]).reduceRight((below, task) => {
      const at = task.at ? make("span", { class: "at" }, " created at " + task.at) : null;
      return make("li", {}, rich(taskText(task)), at, make("ul", {}, below));
    }, access);
  };
  const top = race.ancestor ? taskText(race.ancestor) + ", from which both come" : "the common ancestor";
  return make("ul", { class: "tree" }, make("li", {}, rich(top), make("ul", {}, branch(0), branch(1))));
}

// ---- the graph around the race
const verbs = { continue: "goes on", spawn: "begins", join: "joins", promise: "gets a promise", release: "acquires", isolation: "enters a section" };
// Columns of steps: what leads to each access, and from there to what comes after both. Without the graph of the run, how the tasks descend.
function columnsOf(race) {
  const access = (index, step) => ({ ...step, text: "(" + (index + 1) + ") " + race.sides[index].does, kind: "access" });
  const near = race.around;
  if (!near) {
    const down = race.ways.map((way, index) => [...steps(way).map((task) => ({ why: "spawn", text: taskText(task) })), access(index, { why: "continue" })]);
    return { start: race.ancestor ? taskText(race.ancestor) : "common ancestor", down, up: [[], []], end: null };
  }
  const named = (step) => ({ ...step, text: taskText(step.task) + "\n" + verbs[step.why] });
  const down = near.down.map((way, index) => way.length ? [...way.slice(0, -1).map(named), access(index, way[way.length - 1])] : [access(index, { why: "continue" })]);
  const up = near.up ? near.up.map((way) => way.map(named)) : [[], []];
  return { start: taskText(near.start), down, up, end: near.up && up[0].length ? taskText(near.up[0][near.up[0].length - 1].task) + "\ngoes on, after both" : null };
}

function graph(race) {
  // On a phone the boxes are narrow, so that their texts stay large.
  const narrow = matchMedia("(max-width: 600px)").matches;
  const [width, height, down, longest] = narrow ? [176, 44, 84, 28] : [240, 44, 84, 38];
  const columns = narrow ? [8, 244] : [20, 400], middle = (columns[0] + columns[1]) / 2;
  const shape = columnsOf(race);
  const world = draw("g", {});
  const box = (x, y, text, kind) => {
    const lines = text.split("\n").map((line) => line.length > longest ? line.slice(0, longest - 1) + "…" : line);
    const first = y + height / 2 + 4 - (lines.length - 1) * 8;
    world.append(draw("g", { class: kind }, draw("title", {}, text.replace("\n", " ")), draw("rect", { x, y, width, height, rx: 8 }),
      lines.map((line, index) => draw("text", { x: x + width / 2, y: first + index * 16, "text-anchor": "middle" }, line))));
  };
  // From the bottom of one box to the top of another; what is passed over stands beside it, outside, where the line is upright.
  const link = (x1, y1, x2, y2, step) => {
    const [one, two] = [x1 + width / 2, x2 + width / 2];
    const half = Math.min(24, (y2 - y1 - height) / 2);
    world.prepend(draw("path", { class: step.why, d: `M ${one} ${y1 + height} C ${one} ${y1 + height + half}, ${two} ${y2 - half}, ${two} ${y2}` },
      draw("title", {}, step.why)));
    if (!step.leftOut) return;
    const centre = middle + width / 2, above = Math.abs(one - centre) > Math.abs(two - centre);
    const [x, y] = one === two ? [one, (y1 + height + y2) / 2 + 4] : above ? [one, y1 + height + 14] : [two, y2 - 6];
    world.append(draw("text", { class: "passed", x: x < centre ? x - 8 : x + 8, y, "text-anchor": x < centre ? "end" : "start" },
      "and " + step.leftOut + (step.leftOut === 1 ? " strand" : " strands")));
  };
  const access = 10 + down * Math.max(...shape.down.map((way) => way.length));
  const bottom = access + down * Math.max(...shape.up.map((way) => way.length));
  box(middle, 10, shape.start, "task");
  shape.down.forEach((way, index) => {
    let [x, y] = [middle, 10];
    way.forEach((step, at) => {
      const next = at + 1 === way.length ? access : y + down;
      link(x, y, columns[index], next, step);
      [x, y] = [columns[index], next];
      box(x, y, step.text, step.kind || "task");
    });
    shape.up[index].forEach((step, at) => {
      const last = at + 1 === shape.up[index].length;
      const [to, next] = last ? [middle, bottom] : [x, y + down];
      link(x, y, to, next, step);
      if (!last) box(to, next, step.text, "task");
      [x, y] = [to, next];
    });
  });
  if (shape.end) box(middle, bottom, shape.end, "task");
  const [left, right, level] = [columns[0] + width, columns[1], access + height / 2];
  world.append(draw("path", { class: "missing", d: `M ${left} ${level} L ${right} ${level}` }),
    draw("text", { class: "missing", x: (left + right) / 2, y: level - 8, "text-anchor": "middle" }, "no path"));
  const start = { x: 0, y: 0, w: columns[1] + width + columns[0], h: Math.max(bottom, access) + height + 20 };
  const svg = draw("svg", { role: "img", tabindex: 0, "aria-label": "the two accesses, and what comes before both and after both; nothing orders them" }, world);
  // Of a long graph one begins at the accesses, where the texts can be read.
  const near = Math.min(start.h, start.w * .8);
  const view = { ...start, y: Math.min(Math.max(access + height / 2 - near / 2, 0), start.h - near), h: near };
  const show = () => svg.setAttribute("viewBox", [view.x, view.y, view.w, view.h].join(" "));
  const zoom = (by) => {
    const w = Math.min(Math.max(view.w * by, 60), start.w * 8), h = view.h * w / view.w;
    view.x += (view.w - w) / 2; view.y += (view.h - h) / 2; view.w = w; view.h = h;
    show();
  };
  const pan = (x, y) => { view.x += x * view.w; view.y += y * view.h; show(); };
  const reset = () => { Object.assign(view, start); show(); };
  // Without Ctrl the wheel scrolls the page, which has many graphs.
  svg.addEventListener("wheel", (event) => { if (!event.ctrlKey) return; event.preventDefault(); zoom(event.deltaY > 0 ? 1.15 : 1 / 1.15); }, { passive: false });
  svg.addEventListener("pointerdown", (event) => svg.setPointerCapture(event.pointerId));
  svg.addEventListener("pointermove", (event) => {
    if (event.buttons) pan(-event.movementX / svg.clientWidth, -event.movementY / svg.clientHeight);
  });
  svg.addEventListener("keydown", (event) => {
    const keys = {
      "+": () => zoom(1 / 1.25), "=": () => zoom(1 / 1.25), "-": () => zoom(1.25), "0": reset,
      ArrowLeft: () => pan(-.1, 0), ArrowRight: () => pan(.1, 0), ArrowUp: () => pan(0, -.1), ArrowDown: () => pan(0, .1),
    };
    if (keys[event.key]) { event.preventDefault(); event.stopPropagation(); keys[event.key](); }
  });
  const button = (text, label, action) => {
    const made = make("button", { type: "button", "aria-label": label, title: label }, text);
    made.addEventListener("click", action);
    return made;
  };
  show();
  const tools = make("div", { class: "tools" }, button("+", "zoom in", () => zoom(1 / 1.25)),
    button("−", "zoom out", () => zoom(1.25)), button("0", "show all", reset));
  const sample = (kind, text) => make("span", { class: "key" },
    draw("svg", { viewBox: "0 0 28 8", width: 28, height: 8, "aria-hidden": "true" }, draw("path", { class: kind, d: "M 0 4 L 28 4" })), text);
  const met = new Set([...shape.down, ...shape.up].flat().map((step) => step.why));
  const others = ["promise", "release", "isolation"].filter((why) => met.has(why));
  const legend = make("p", { class: "legend graph-keys" }, sample("spawn", "creates"), sample("continue", "goes on"), met.has("join") ? sample("join", "joins") : null,
    others.length ? sample(others[0], "a promise, a release or a section") : null, sample("missing", "the path that is missing, in both directions"));
  const moves = "Other tasks are left out. Drag or use the arrows to move, + and − to zoom (Ctrl and the wheel, too), 0 for all.";
  return make("div", {}, make("div", { class: "graph" }, svg, tools), legend, make("p", { class: "legend" }, moves));
}

// A mark far to the right is what its line is shown for.
function bringIntoView(mark) {
  const lines = mark.closest("pre"), beyond = mark.getBoundingClientRect().right + 12 - lines.getBoundingClientRect().right;
  if (beyond > 0) lines.scrollLeft += Math.min(beyond, mark.getBoundingClientRect().left - lines.getBoundingClientRect().left - 12);
}

// ---- a race, filled in when it is opened
function raceCard(race) {
  const word = race.accepted ? "accepted" : "race";
  const summary = make("summary", {}, make("span", { class: "word " + word }, race.accepted ? "accepted" : "race[" + race.kind + "]"),
    rich("parallel accesses to " + race.touched));
  const inside = make("div", { class: "inside" });
  const card = make("details", { class: "finding" }, summary, inside);
  card.addEventListener("toggle", () => {
    if (!card.open || inside.childNodes.length) return;
    const part = (title, ...nodes) => [make("h3", {}, title), ...nodes];
    const names = race.names.length > 1 ? make("p", { class: "at" }, rich(race.names.join("; ") + (race.moreNames ? "; and " + race.moreNames + " more" : ""))) : null;
    inside.append(...[
      race.accepted ? make("p", { class: "accepted" }, race.accepted) : null,
      make("p", { class: "help" }, rich(race.help)),
      names,
      make("div", { class: "sides" }, race.sides.map((side) =>
        make("section", {}, make("h3", {}, rich("(" + side.number + ") " + side.does)), snippet(side.shown), stack(side)))),
      ...(race.allocated ? part("What both touch is made here", snippet(race.allocated)) : []),
      ...part("Tasks, from the common ancestor", tree(race)),
      ...part("Graph around the race", graph(race)),
      ...race.notes.map((note) => make("p", {}, rich(note))),
      make("p", { class: "print" }, (race.count > 1 ? race.count + " times; " : "") + "fingerprint " + race.fingerprint),
    ].filter(Boolean));
    inside.querySelectorAll("mark").forEach(bringIntoView);
  });
  return card;
}

// ---- a program
function program(report) {
  const summary = make("summary", {}, make("span", { class: "word " + report.verdict }, report.verdict), report.name);
  const inside = make("div", { class: "inside" });
  const card = make("details", { class: "program" }, summary, inside);
  card.dataset.text = searchable(report);
  const build = () => {
    if (inside.childNodes.length) return;
    const basis = report.message.split("; ").map((text) => make("li", {}, rich(text)));
    inside.append(make("ul", { class: "basis" }, basis));
    const places = new Map();
    for (const race of report.races) {
      const made = raceCard(race);
      made.dataset.text = searchable(race);
      places.set(race.location, [...(places.get(race.location) || []), made]);
    }
    for (const [location, cards] of places) inside.append(make("section", { class: "place" }, make("h2", {}, rich(location)), cards));
    if (report.leftOut) inside.append(make("p", {}, report.leftOut + " more races are left out here; JSON has them"));
    for (const finding of report.findings) inside.append(make("section", {}, make("h2", {}, rich(finding.title)), snippet(finding.shown)));
    for (const note of report.notes) inside.append(make("p", { class: "note" }, rich(note)));
    if (report.again) inside.append(make("h3", {}, "To see it again"), make("div", { class: "command", tabindex: 0 }, report.again));
    const rows = report.facts.map(([name, value]) => make("tr", {}, make("td", {}, name), make("td", {}, typeof value === "number" ? value.toLocaleString("en") : value)));
    inside.append(make("details", { class: "facts" }, make("summary", {}, "Statistics"), make("div", { class: "inside" }, make("table", {}, make("tbody", {}, rows)))));
  };
  card.addEventListener("toggle", () => { if (card.open) { build(); filterInside(card); } });
  if (report.verdict !== "race-free" && report.verdict !== "not-checked") {
    build();
    // With a few programs their findings are what one came for.
    card.open = reports.length <= 20;
    const first = inside.querySelector(".finding");
    if (first && reports.length <= 3) first.open = true;
  }
  return card;
}

function searchable(value) {
  const texts = [];
  const walk = (one) => {
    if (typeof one === "string") texts.push(one);
    else if (one && typeof one === "object") Object.values(one).forEach(walk);
  };
  walk(value);
  return texts.join("\n").toLowerCase();
}

// ---- the page
const order = ["race", "deadlock", "error", "not-exhausted", "accepted", "race-free", "not-checked"];
const search = make("input", { type: "search", placeholder: "Search: file, function, variable   ( / )", "aria-label": "search" });
const theme = make("button", { type: "button", "aria-label": "light or dark" }, "◐");
const programs = make("div", { id: "programs" });
const shown = make("p", { class: "counts", role: "status" });
const sorted = [...reports].sort((one, other) => order.indexOf(one.verdict) - order.indexOf(other.verdict));
const cards = sorted.map(program);
programs.append(...cards);

const counts = order.map((word) => [word, reports.filter((report) => report.verdict === word).length]).filter(([, count]) => count);
const say = (found) => {
  const all = counts.map(([word, count]) => count + (word === "race" ? " with races" : " " + word)).join(", ");
  const programs = reports.length === 1 ? "1 program" : reports.length + " programs";
  shown.textContent = programs + ": " + all + (found === null ? "" : "; " + found + " with what is searched for");
};
let wanted = "";
function filterInside(card) {
  for (const finding of card.querySelectorAll(".finding")) finding.hidden = Boolean(wanted) && !finding.dataset.text.includes(wanted) && !card.dataset.name.includes(wanted);
  for (const place of card.querySelectorAll(".place")) place.hidden = !place.querySelector(".finding:not([hidden])");
}
cards.forEach((card, index) => { card.dataset.name = sorted[index].name.toLowerCase(); });
search.addEventListener("input", () => {
  wanted = search.value.trim().toLowerCase();
  let found = 0;
  for (const card of cards) {
    card.hidden = Boolean(wanted) && !card.dataset.text.includes(wanted);
    if (!card.hidden) { found += 1; filterInside(card); }
  }
  say(wanted ? found : null);
});
theme.addEventListener("click", () => {
  const root = document.documentElement;
  const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark";
});
document.addEventListener("keydown", (event) => {
  if (event.target === search) {
    if (event.key === "Escape") { search.value = ""; search.dispatchEvent(new Event("input")); search.blur(); }
    return;
  }
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "/") { event.preventDefault(); search.focus(); }
  const step = { j: 1, k: -1 }[event.key];
  if (!step) return;
  const all = [...document.querySelectorAll(".program:not([hidden]) > summary, .program[open]:not([hidden]) .finding:not([hidden]) > summary")];
  const at = all.indexOf(document.activeElement);
  const next = all[at < 0 ? 0 : Math.min(Math.max(at + step, 0), all.length - 1)];
  if (next) next.focus();
});
const keys = "Keys: / searches, j and k go from finding to finding, Enter opens.";
document.getElementById("page").append(
  make("header", {}, make("h1", {}, "DagSan"), search, theme), shown, programs, make("p", { class: "legend" }, keys));
say(null);
document.title = "DagSan: " + shown.textContent;
