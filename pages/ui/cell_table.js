// A table with clickable cells. Names are set as text, never as markup.

const MOVES = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

function header({ name, colour }, scope) {
  const dot = make("i", { "aria-hidden": "true" });
  dot.style.background = colour;
  return make("th", { scope, title: name }, make("div", { dir: "auto" }, ...(colour ? [dot] : []), name));
}

function cell(found, row, column) {
  if (!found) return make("td", { class: "none" }, "·");
  const { text, note, about, strength, kind, chosen } = found;
  const attributes = { type: "button", class: kind, tabindex: "-1", title: about, "aria-label": about };
  const button = make("button", attributes, text, ...(note ? [make("small", {}, note)] : []));
  if (chosen) button.setAttribute("aria-pressed", "true");
  button.style.setProperty("--share", `${Math.round(100 * strength)}%`);
  Object.assign(button.dataset, { row, column });
  return make("td", {}, button);
}

function draw(node, { label, corner, rows, columns, cells, upright }) {
  const focused = node.contains(document.activeElement) ? { ...document.activeElement.dataset } : null;
  node.setAttribute("aria-label", label);
  const top = make("tr", {}, make("td", { class: "corner" }, corner), ...columns.map((column) => header(column, "col")));
  const lines = rows.map((name, row) => {
    const line = make("tr", {}, header(name, "row"), ...cells[row].map((found, column) => cell(found, row, column)));
    const left = columns.length - cells[row].length;
    if (left) line.lastChild.colSpan = left + 1;
    return line;
  });
  node.replaceChildren(make("table", upright ? { class: "upright" } : {}, make("thead", {}, top), make("tbody", {}, ...lines)));
  const stop = focused && node.querySelector(`button[data-row="${focused.row}"][data-column="${focused.column}"]`);
  (stop ?? node.querySelector("button"))?.setAttribute("tabindex", "0");
  stop?.focus({ preventScroll: true });
}

// The table is one tab stop. Arrow keys move to the next clickable cell.
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
  const node = parentElement.querySelector(".cell-table");
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
