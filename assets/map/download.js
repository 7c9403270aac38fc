// Export of the current view as an SVG file, or as a PNG with twice the pixels.

const TITLE_PX = 26;
const LEGEND_LINE_PX = 20;
const PNG_SCALE = 2;

const SVG_WRITERS = {
  mark: (mark) =>
    svgNode("path", {
      d: symbolPath(mark.symbol, mark.open ? mark.r - OPEN_WIDTH / 3 : mark.r),
      transform: `translate(${mark.x.toFixed(1)} ${mark.y.toFixed(1)})`,
      fill: mark.open ? mark.edge : mark.colour,
      stroke: mark.open ? mark.colour : mark.edge,
      "stroke-width": mark.open ? OPEN_WIDTH : 0.8,
      opacity: mark.alpha,
    }),
  ring: ({ x, y, r, colour, width }) =>
    svgNode("circle", { cx: x.toFixed(1), cy: y.toFixed(1), r, fill: "none", stroke: colour, "stroke-width": width }),
  line: ({ points, colour, width, alpha, dash, fill }) =>
    svgNode("path", {
      d: `M${points.map((point) => point.map((value) => value.toFixed(1)).join(" ")).join("L")}${fill ? "Z" : ""}`,
      fill: fill ?? "none",
      stroke: colour,
      "stroke-width": width,
      "stroke-dasharray": dash.join(" ") || "none",
      opacity: alpha,
    }),
  text: ({ x, y, text, colour, size, halo, anchor }) =>
    svgNode("text", { x, y, fill: colour, "font-size": size, "font-weight": 600, stroke: halo, "stroke-width": 3, "paint-order": "stroke", "text-anchor": anchor }, text),
};

function pictureOf(view) {
  const outer = view.stages.getBoundingClientRect();
  const entries = legendEntries(view);
  const perLine = Math.max(1, Math.floor(outer.width / 190));
  const foot = Math.ceil(entries.length / perLine) * LEGEND_LINE_PX + 12;
  const [width, height] = [Math.round(outer.width), Math.round(outer.height) + TITLE_PX + foot];
  const font = { "font-family": view.theme.font.replaceAll('"', "'"), "font-size": 13, fill: view.theme.text };
  const picture = svgNode("svg", { xmlns: SVG_SPACE, width, height, viewBox: `0 0 ${width} ${height}`, ...font });
  picture.append(svgNode("rect", { width, height, fill: view.theme.background }));
  picture.append(svgNode("text", { x: 4, y: 17 }, momentWords(view)));
  view.panels.forEach((panel, index) => picture.append(panelPicture(panel, view, outer, index)));
  entries.forEach((entry, i) => {
    const [x, y] = [(i % perLine) * 190 + 10, height - foot + 14 + Math.floor(i / perLine) * LEGEND_LINE_PX];
    picture.append(SVG_WRITERS.mark({ ...entry, kind: "mark", x, y: y - 4, r: 5, alpha: 1, edge: view.theme.background }));
    picture.append(svgNode("text", { x: x + 12, y, "font-size": 12 }, shortened(entry.of ? `${entry.name} · ${entry.of}` : entry.name, 25)));
  });
  return { picture, width, height };
}

function panelPicture(panel, view, outer, index) {
  const box = panel.canvas.getBoundingClientRect();
  const [left, top] = [box.left - outer.left, box.top - outer.top + TITLE_PX];
  const group = svgNode("g", { transform: `translate(${left.toFixed(1)} ${top.toFixed(1)})` });
  const frame = { width: panel.width, height: panel.height };
  const clip = svgNode("clipPath", { id: `panel${index}` }, svgNode("rect", frame));
  group.append(clip, svgNode("rect", { ...frame, fill: "none", stroke: view.theme.line }));
  if (panel.title) group.append(svgNode("text", { x: 2, y: -8 }, shortened(`${panel.title} · ${panelWords(panel, view)}`, Math.floor(panel.width / 7))));
  const inner = svgNode("g", { "clip-path": `url(#panel${index})` });
  for (const item of sceneOf(panel, view)) inner.append(SVG_WRITERS[item.kind](item));
  group.append(inner);
  return group;
}

const shortened = (text, most) => (text.length <= most ? text : `${text.slice(0, most - 1)}…`);

function save(blob, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

function downloadSvg(view) {
  const text = new XMLSerializer().serializeToString(pictureOf(view).picture);
  save(new Blob([text], { type: "image/svg+xml" }), `${view.data.name}.svg`);
}

async function downloadPng(view) {
  const { picture, width, height } = pictureOf(view);
  const text = new XMLSerializer().serializeToString(picture);
  const image = new Image();
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(text)}`;
  await image.decode();
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [width * PNG_SCALE, height * PNG_SCALE];
  canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
  canvas.toBlob((blob) => blob && save(blob, `${view.data.name}.png`), "image/png");
}
