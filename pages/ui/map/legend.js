// What colours and symbols mean. A category can be hidden and shown again.

const sameColours = (a, b) => a === b || (a.label === b.label && JSON.stringify(a.names) === JSON.stringify(b.names));

function differentColours(panels) {
  const found = [];
  for (const { colours } of panels) if (!found.some((other) => sameColours(other, colours))) found.push(colours);
  return found;
}

// Whether colour and symbol say the same, so that one entry can show both.
const coloursAreClasses = (colours, panel) => !colours.frames && JSON.stringify(colours.names) === JSON.stringify(panel.examples.classes);

// Entries as { group, name, colour, symbol, open, code }; a code can be hidden.
function legendEntries(view) {
  const [panel] = view.panels;
  const { text } = view.theme;
  const entries = [];
  for (const colours of differentColours(view.panels)) {
    if (colours.kind !== "categories") continue;
    const classes = coloursAreClasses(colours, panel);
    colours.names.forEach((name, code) => {
      const symbol = classes ? panel.examples.symbols[code] : "circle";
      entries.push({ group: colours.label, name, colour: colours.colours[code], symbol, open: false, code });
    });
  }
  if (!view.panels.some((one) => coloursAreClasses(one.colours, one))) {
    const { classes, symbols } = panel.examples;
    classes.forEach((name, label) => entries.push({ group: "Symbol: label", name, colour: text, symbol: symbols[label], open: false }));
  }
  if (view.panels.some((one) => one.examples.splits)) {
    const group = "Filled or open";
    entries.push({ group, name: "validation", colour: text, symbol: "circle", open: false });
    entries.push({ group, name: "training", colour: text, symbol: "circle", open: true });
  }
  return entries;
}

function legendMark({ symbol, colour, open }, theme) {
  const drawing = svgNode("svg", { viewBox: "-9 -9 18 18", width: 16, height: 16, "aria-hidden": "true" });
  const look = open ? { fill: "none", stroke: colour, "stroke-width": 1.6 } : { fill: colour, stroke: theme.background, "stroke-width": 0.6 };
  drawing.append(svgNode("path", { d: symbolPath(symbol, open ? 5 : 5.6), ...look }));
  return drawing;
}

function lineMark({ colour, dash }) {
  const drawing = svgNode("svg", { viewBox: "0 0 26 12", width: 26, height: 12, "aria-hidden": "true" });
  const stroke = { stroke: colour, "stroke-width": 2.4, fill: "none", "stroke-dasharray": dash.join(" ") || "none" };
  drawing.append(svgNode("path", { d: "M1 6H18", ...stroke }), svgNode("path", { d: "M17 2L25 6L17 10Z", fill: colour }));
  return drawing;
}

function categoryItem(view, entry) {
  const label = make("span", { className: "map-legend-name", text: entry.name, title: entry.name });
  if (entry.code === undefined) return make("span", { className: "map-legend-item" }, legendMark(entry, view.theme), label);
  const shown = !view.hidden.has(entry.code);
  const item = make("button", { type: "button", className: "map-legend-item", "aria-pressed": String(shown) });
  item.append(legendMark(entry, view.theme), label);
  item.addEventListener("click", () => view.toggle(entry.code));
  return item;
}

function colourBar({ label, low, high, scale, none, codes }) {
  const number = (value) => String(+value.toPrecision(3));
  const strip = make("span", { className: "map-bar", role: "img", "aria-label": `colours from ${number(low)} to ${number(high)}` });
  strip.style.background = `linear-gradient(to right, ${scale.join(", ")})`;
  const unknown = make("span", { className: "map-legend-item" });
  unknown.append(legendMark({ symbol: "circle", colour: none, open: false }, { background: "none" }), make("span", { text: "none" }));
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

function drawLegend(view) {
  const items = differentColours(view.panels).filter(({ kind }) => kind === "values").map(colourBar);
  let group = null;
  for (const entry of legendEntries(view)) {
    if (entry.group !== group) items.push(make("span", { className: "map-legend-title", text: entry.group }));
    ({ group } = entry);
    items.push(categoryItem(view, entry));
  }
  const weights = view.panels.flatMap((panel) => panel.arrows.map((arrow) => arrow.weight));
  if (weights.some((weight) => weight >= 0)) items.push(make("span", { className: "map-legend-item" }, lineMark(PULL), "pulls"));
  if (weights.some((weight) => weight < 0)) items.push(make("span", { className: "map-legend-item" }, lineMark(PUSH), "pushes"));
  view.legend.replaceChildren(...items);
}
