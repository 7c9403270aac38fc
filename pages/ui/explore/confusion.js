// A table whose cells can be pressed. Names are text, never markup.

const MOVES = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

function make(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children);
  return node;
}

function header(name, colour, scope) {
  const dot = make("i", { "aria-hidden": "true" });
  dot.style.background = colour;
  return make("th", { scope, title: name }, make("div", { dir: "auto" }, dot, name));
}

function cell(names, counts, row, column) {
  const count = counts[row][column];
  const kind = row === column ? "right" : "wrong";
  if (!count) return make("td", { class: "none" }, "·");
  const examples = `${count.toLocaleString("en-GB")} example${count === 1 ? "" : "s"}`;
  const about = `Label ${names[row]}, predicted ${names[column]}: ${examples}`;
  const button = make("button", { type: "button", class: kind, tabindex: "-1", title: about, "aria-label": about }, String(count));
  const all = counts[row].reduce((sum, value) => sum + value, 0);
  button.style.setProperty("--share", `${Math.round((100 * count) / all)}%`);
  Object.assign(button.dataset, { row, column });
  return make("td", {}, button);
}

function draw(node, { names, colours, counts, upright }) {
  const top = make("tr", {}, make("td", { class: "corner" }, "label ↓  prediction →"));
  names.forEach((name, column) => top.append(header(name, colours[column], "col")));
  const body = make("tbody");
  names.forEach((name, row) => {
    const line = make("tr", {}, header(name, colours[row], "row"));
    names.forEach((_, column) => line.append(cell(names, counts, row, column)));
    body.append(line);
  });
  node.replaceChildren(make("table", upright ? { class: "upright" } : {}, make("thead", {}, top), body));
  node.querySelector("button")?.setAttribute("tabindex", "0");
}

// One stop for the Tab key; arrows go from there to the next cell that holds examples.
function move(event, node) {
  const [dx, dy] = MOVES[event.key] ?? [];
  const from = event.target.closest("button");
  if (dx === undefined || !from) return;
  event.preventDefault();
  const line = [...node.querySelectorAll(dx ? `button[data-row="${from.dataset.row}"]` : `button[data-column="${from.dataset.column}"]`)];
  const next = line[line.indexOf(from) + dx + dy];
  if (!next) return;
  from.tabIndex = -1;
  next.tabIndex = 0;
  next.focus();
}

export default function ({ data, parentElement, setTriggerValue }) {
  const node = parentElement.querySelector(".confusion");
  if (!node || !data) return;
  const drawn = JSON.stringify(data);
  if (node.drawn !== drawn) draw(node, data);
  node.drawn = drawn;
  node.onkeydown = (event) => move(event, node);
  node.onclick = (event) => {
    const button = event.target.closest("button");
    if (button) setTriggerValue("cell", [Number(button.dataset.row), Number(button.dataset.column)]);
  };
}
