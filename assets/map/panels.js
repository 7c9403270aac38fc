// The panels of a view: their nodes and their data.

const neededBundles = (data) => [...new Set(data.panels.flatMap(({ examples, places, colours }) => [examples, places, colours]))];

// Create, update or remove panels. Returns whether a camera was reset.
function makePanels(view, given) {
  for (const panel of view.panels.splice(given.length)) {
    view.sizes.unobserve(panel.stage);
    panel.node.remove();
  }
  let moved = false;
  given.forEach((data, index) => {
    view.panels[index] ??= newPanel(view);
    moved = fillPanel(view.panels[index], data) || moved;
    const { description } = view.data;
    const about = data.title ? _("{what}: {value}", { what: data.title, value: description }) : description;
    view.panels[index].canvas.setAttribute("aria-label", about);
  });
  view.stages.dataset.panels = String(given.length);
  view.stages.style.setProperty("--map-height", view.data.height);
  const { columns } = view.data;
  view.stages.classList.toggle("map-grid", Boolean(columns));
  view.stages.style.setProperty("--map-columns", columns ?? [1, 2, 3, 2, 3, 3][given.length - 1]);
  view.stages.style.setProperty("--narrow-columns", columns ?? (given.length > 3 ? 2 : 1));
  return moved;
}

function newPanel(view) {
  const canvas = make("canvas", { className: "map-canvas", role: "img", tabindex: "0" });
  const tip = make("div", { className: "map-tip", role: "tooltip" });
  tip.hidden = true;
  const missing = make("div", { className: "map-missing", text: _("No frame at or before this step.") });
  const title = make("span", { className: "map-title" });
  const note = make("span", { className: "map-note" });
  const about = make("span", { className: "map-about" });
  const caption = make("div", { className: "map-caption" }, title, note, about);
  const stage = make("div", { className: "map-stage" }, canvas, missing, tip);
  const node = make("div", { className: "map-panel" }, caption, stage);
  const panel = { node, canvas, tip, missing, caption, heading: title, note, about, stage, camera: null, home: null, width: 0, height: 0, drawn: null };
  view.stages.append(node);
  view.sizes.observe(stage);
  listenToPointer(panel, view);
  return panel;
}

function fillPanel(panel, data) {
  const [examples, places, colours] = [data.examples, data.places, data.colours].map((id) => shelf.ready.get(id));
  // Array slot of each frame; -1 for a frame without a map.
  places.slots ??= Array.from({ length: places.frames }, (_, frame) => places.present.indexOf(frame));
  // Another space has other axes, so the zoom is meaningless there.
  const space = `${data.space} ${places.axes}`;
  const moved = panel.camera !== null && panel.space !== space;
  if (moved) panel.camera = null;
  if (panel.space !== space) panel.home = null;
  panel.space = space;
  if (panel.examples !== examples) panel.rowOf = new Map(examples.ids.map((id, row) => [id, row]));
  if (panel.colours !== colours) panel.palette = paletteOf(colours);
  const { title, steps, notes, arrows, own, centroids, anchor } = data;
  Object.assign(panel, { examples, places, colours, title, steps, notes, arrows, own, centroids, anchor });
  panel.colouring = JSON.stringify([colours.label, colours.names]);
  panel.task = JSON.stringify(examples.classes);
  panel.caption.hidden = !title;
  panel.heading.textContent = panel.heading.title = title;
  panel.about.textContent = data.about;
  panel.classPalette = coloursAreClasses(colours, panel) ? colours.colours : [];
  return moved;
}
