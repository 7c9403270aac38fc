// Legend of colours and symbols. A category can be highlighted, hidden, or shown alone.

const MANY_NAMES = 12; // more names scroll on most screens, so their title includes the count

// Return whether colour and symbol have the same meaning, so that one entry can show both.
const coloursAreClasses = (colours, panel) => !colours.frames && JSON.stringify(colours.names) === JSON.stringify(panel.examples.classes);

// Group panels by a field, such as their colouring or task.
function panelsBy(panels, field) {
  const found = new Map();
  for (const panel of panels) found.set(panel[field], [...(found.get(panel[field]) ?? []), panel]);
  return [...found.values()];
}

// Entries { group, of, name, colour, symbol, open, colouring, code }. An entry with a code can be hidden. If the panels
// differ, `of` names those that the entry applies to.
function legendEntries(view) {
  const entries = [...colourEntries(view), ...symbolEntries(view)];
  if (view.panels.some((one) => one.examples.splits)) {
    const mark = { group: _("Split"), of: "", colour: view.theme.text, symbol: "circle" };
    const has = (look) => view.panels.some((one) => one.examples.open.includes(look));
    entries.push({ ...mark, name: _("validation"), open: false });
    if (has(1)) entries.push({ ...mark, name: _("training"), open: true });
    if (has(2)) entries.push({ ...mark, name: _("test"), open: false, outlined: true });
  }
  return entries;
}

const titlesOf = (some, all) => (some.length === all.length ? "" : some.map(({ title }) => title).join(_("{first}, {next}", { first: "", next: "" })));

function colourEntries(view) {
  return panelsBy(view.panels, "colouring").flatMap((panels) => {
    const [panel] = panels;
    const { kind, label, names, colours } = panel.colours;
    if (kind !== "categories") return [];
    const classes = coloursAreClasses(panel.colours, panel);
    const about = { group: label, of: titlesOf(panels, view.panels), open: false, colouring: panel.colouring };
    return names.map((name, code) => {
      const symbol = classes ? panel.examples.symbols[code] : "circle";
      return { ...about, name, colour: colours[code], symbol, code };
    });
  });
}

// Entries for the symbols of every task whose colour entries do not already show them.
function symbolEntries(view) {
  return panelsBy(view.panels, "task").flatMap((panels) => {
    const [{ examples }] = panels;
    if (panels.some((one) => coloursAreClasses(one.colours, one))) return [];
    const about = { group: _("Symbol: label"), of: titlesOf(panels, view.panels), colour: view.theme.text, open: false };
    return examples.classes.map((name, label) => ({ ...about, name, symbol: examples.symbols[label] }));
  });
}

function legendMark({ symbol, colour, open, outlined }, theme) {
  const look = open ? { fill: "none", stroke: colour, "stroke-width": 1.6 } : { fill: colour, stroke: theme.background, "stroke-width": 0.6 };
  if (outlined) Object.assign(look, { fill: theme.line, stroke: theme.text, "stroke-width": 1 });
  const path = svgNode("path", { d: symbolPath(symbol, open ? 5 : 5.6), ...look });
  return svgNode("svg", { viewBox: "-9 -9 18 18", width: 16, height: 16, "aria-hidden": "true" }, path);
}

function lineMark({ colour, dash }) {
  const stroke = { stroke: colour, "stroke-width": 2.4, fill: "none", "stroke-dasharray": dash.join(" ") || "none" };
  const [line, head] = [svgNode("path", { d: "M1 6H18", ...stroke }), svgNode("path", { d: "M17 2L25 6L17 10Z", fill: colour })];
  return svgNode("svg", { viewBox: "0 0 26 12", width: 26, height: 12, "aria-hidden": "true" }, line, head);
}

function categoryItem(view, entry) {
  const label = make("span", { className: "map-legend-name", text: entry.name, title: entry.name });
  const { colouring, code } = entry;
  if (entry.code === undefined) return make("span", { className: "map-legend-item" }, legendMark(entry, view.theme), label);
  const shown = !view.hidden.get(entry.colouring)?.has(entry.code);
  const item = make("button", { type: "button", className: "map-legend-item", "aria-pressed": String(shown) }, legendMark(entry, view.theme), label);
  label.title = _("{name} · click to hide it, double-click to show it alone", { name: entry.name });
  item.addEventListener("click", (event) => (event.shiftKey ? view.showAlone(colouring, code) : view.toggle(colouring, code)));
  item.addEventListener("dblclick", () => view.showAlone(colouring, code));
  for (const name of ["pointerenter", "focus"]) item.addEventListener(name, () => view.spot({ colouring, code }));
  for (const name of ["pointerleave", "blur"]) item.addEventListener(name, () => view.spot(null));
  return item;
}

function colourBar({ label, low, high, scale, none, codes }) {
  const number = (value) => String(+value.toPrecision(3));
  const strip = make("span", { className: "map-bar", role: "img", "aria-label": _("colour scale from {low} to {high}", { low: number(low), high: number(high) }) });
  strip.style.background = `linear-gradient(to right, ${scale.join(", ")})`;
  const mark = legendMark({ symbol: "circle", colour: none, open: false }, { background: "none" });
  const unknown = make("span", { className: "map-legend-item" }, mark, make("span", { text: _("none") }));
  return make(
    "span",
    { className: "map-legend-bar" },
    make("span", { className: "map-legend-title", text: label }),
    make("span", { text: number(low) }),
    strip,
    make("span", { text: number(high) }),
    ...(codes.includes(NO_COLOUR) ? [unknown] : []),
  );
}

function anchorItem(view) {
  const stroke = { stroke: view.theme.text, "stroke-width": ANCHOR_WIDTH, fill: "none" };
  const ticks = anchorTicks(5.5).map(([[x, y], [u, v]]) => `M${x} ${y}L${u} ${v}`);
  const marks = [svgNode("circle", { r: 5.5, ...stroke }), svgNode("path", { d: ticks.join(""), ...stroke })];
  const drawing = svgNode("svg", { viewBox: "-11 -11 22 22", width: 18, height: 18, "aria-hidden": "true" }, ...marks);
  return make("span", { className: "map-legend-item" }, drawing, _("anchor"));
}

// Draw a line that wraps, or one for each group of panels if the panels differ.
function drawLegend(view) {
  const rows = new Map([["", panelsBy(view.panels, "colouring").map(([{ colours }]) => colours).filter(({ kind }) => kind === "values").map(colourBar)]]);
  let last = null;
  const entries = legendEntries(view);
  for (const entry of entries) {
    const heading = `${entry.of} ${entry.group}`;
    if (!rows.has(entry.of)) rows.set(entry.of, [make("span", { className: "map-legend-of", text: entry.of, title: entry.of })]);
    const row = rows.get(entry.of);
    if (heading !== last) {
      const count = entries.filter(({ of, group }) => `${of} ${group}` === heading).length;
      row.push(make("span", { className: "map-legend-title", text: count > MANY_NAMES ? _("{name}, {detail}", { name: entry.group, detail: count }) : entry.group }));
    }
    last = heading;
    row.push(categoryItem(view, entry));
  }
  const all = rows.get("");
  const weights = view.panels.flatMap((panel) => panel.arrows.map((arrow) => arrow.weight));
  if (weights.some((weight) => weight >= 0)) all.push(make("span", { className: "map-legend-item" }, lineMark(PULL), _("pulls")));
  if (weights.some((weight) => weight < 0)) all.push(make("span", { className: "map-legend-item" }, lineMark(PUSH), _("pushes")));
  if (view.panels.some((panel) => panel.anchor !== null && panel.rowOf.has(panel.anchor))) all.push(anchorItem(view));
  rows.delete("");
  const filled = [...rows, ["", all]].filter(([, items]) => items.length);
  const lines = filled.map(([, items]) => make("div", { className: "map-legend-row" }, ...items));
  const shown = JSON.stringify([lines.map((line) => line.outerHTML), entries.map(({ colouring, code }) => [colouring, code])]);
  if (shown === view.legend.shown) return; // keeps the focus, and a press that has begun
  view.legend.shown = shown;
  const focused = [...view.legend.querySelectorAll("button")].indexOf(view.legend.getRootNode().activeElement);
  const places = [...view.legend.children].map((row) => row.scrollTop); // a redraw keeps the scroll position
  view.legend.replaceChildren(...lines);
  [...view.legend.children].forEach((row, at) => (row.scrollTop = places[at] ?? 0));
  if (focused >= 0) view.legend.querySelectorAll("button")[focused]?.focus({ preventScroll: true });
}
