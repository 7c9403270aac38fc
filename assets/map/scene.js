// The content of a panel at one moment: a list of marks, lines and texts, which canvas and SVG draw alike.

const PULL = { colour: "#0072b2", dash: [] };
const PUSH = { colour: "#d55e00", dash: [6, 4] };
const MOST_TRAILS = 60;
const MOST_RINGS = 60; // a larger selection stands out without rings, because other points are dimmed
const ANCHOR_WIDTH = 2.2;
const ANCHOR_TICK = 5;
const OWN_COLOUR = "#cc3377";

const markSize = (points, width) => (points <= 400 ? 5 : points <= 1000 ? 4.2 : points <= 4000 ? 3.6 : 2.6) * (width < 330 ? 0.8 : 1);

const shifted = ([x, y], [dx, dy]) => [x + dx, y + dy];
const lineOf = (points, colour, width, more = {}) => ({ kind: "line", points, colour, width, alpha: 1, dash: [], ...more });

// Return a function (x, y, z) that returns the screen position of a map position.
function onScreen(panel) {
  const see = projector(panel);
  const out = [0, 0, 0];
  return (x, y, z = 0) => {
    see(x, y, z, out);
    return [out[0], out[1]];
  };
}

// Fill panel.screen with x, y and nearness of every visible point, NaN for the others.
function project(panel, view) {
  const { points } = panel.places;
  if (panel.screen?.length !== 3 * points) panel.screen = new Float32Array(3 * points);
  panel.screen.fill(NaN);
  panel.moment = momentOf(panel, view.timeline, view.at);
  if (panel.moment.from < 0) return;
  const see = projector(panel);
  const out = [0, 0, 0];
  const hidden = view.hidden.get(panel.colouring);
  for (let row = 0; row < points; row += 1) {
    if (hidden?.has(codeOf(panel.colours, row, panel.moment.from, points))) continue;
    placeOf(panel.places, row, panel.moment, (x, y, z) => {
      see(x, y, z, out);
      panel.screen.set(out, 3 * row);
    });
  }
}

// Rows of the visible points, farthest first.
function visibleRows(panel) {
  const rows = [];
  for (let row = 0; row < panel.places.points; row += 1) if (!Number.isNaN(panel.screen[3 * row])) rows.push(row);
  if (panel.places.axes === 3) rows.sort((a, b) => panel.screen[3 * a + 2] - panel.screen[3 * b + 2]);
  return rows;
}

function emphasisedMark(panel, view, row) {
  const mark = markOf(panel, view, row, markSize(panel.places.points, panel.width));
  return { ...mark, alpha: 1, r: 1.25 * mark.r };
}

const ringOf = ({ x, y, r }, view) => ({ kind: "ring", x, y, r: r + 2.6, colour: view.theme.text, width: 1.5 });

function sceneOf(panel, view) {
  project(panel, view);
  if (panel.moment.from < 0) return [];
  const ordinary = [];
  const strong = [];
  const size = markSize(panel.places.points, panel.width);
  const spotted = view.spotted?.colouring === panel.colouring ? view.spotted.code : null;
  const focused = view.chosen.size > 0 || view.lit !== null || spotted !== null;
  for (const row of visibleRows(panel)) {
    const id = panel.examples.ids[row];
    const chosen = view.chosen.has(id);
    const inSpot = spotted !== null && codeOf(panel.colours, row, panel.moment.from, panel.places.points) === spotted;
    const emphasised = spotted === null ? chosen || view.lit?.has(id) : inSpot;
    const mark = emphasised ? emphasisedMark(panel, view, row) : markOf(panel, view, row, size);
    if (focused && !emphasised) mark.alpha = 0.18;
    (emphasised ? strong : ordinary).push(mark);
    if (chosen && id !== panel.anchor && view.chosen.size <= MOST_RINGS) strong.push(ringOf(mark, view));
  }
  return [
    ...(panel.places.axes === 3 ? boxLines(panel, view) : []),
    ...ordinary,
    ...(view.trails ? trailLines(panel, view) : []),
    ...strong,
    ...arrowLines(panel, size, view),
    ...anchorMarks(panel, view, size),
    ...(panel.centroids ? centroidMarks(panel, view, size) : []),
    ...panel.own.flatMap((own) => ownMarks(panel, view, own, size)),
    ...hoverMarks(panel, view, size),
  ];
}

function markOf(panel, view, row, size) {
  const [x, y, nearness] = panel.screen.subarray(3 * row, 3 * row + 3);
  const { examples, palette, colours, places, moment } = panel;
  const colour = palette[codeOf(colours, row, moment.from, places.points)];
  return {
    kind: "mark",
    x,
    y,
    // A few sizes suffice to show depth, so that sprites can be reused.
    r: nearness === 1 ? size : Math.round(size * nearness * 4) / 4,
    symbol: examples.symbols[examples.labels[row]] ?? "circle",
    colour,
    open: examples.splits && examples.open[row] === 1,
    alpha: 0.88,
    edge: examples.splits && examples.open[row] === 2 ? view.theme.text : view.theme.background,
  };
}

function trailLines(panel, view) {
  const rows = [...view.chosen].slice(0, MOST_TRAILS).map((id) => panel.rowOf.get(id));
  const seen = onScreen(panel);
  return rows.flatMap((row) => {
    if (row === undefined || Number.isNaN(panel.screen[3 * row])) return [];
    const points = [];
    const note = (...place) => points.push(seen(...place));
    for (const frame of panel.places.present) {
      if (frame <= panel.moment.from) placeOf(panel.places, row, { from: frame, to: frame, share: 0 }, note);
    }
    placeOf(panel.places, row, panel.moment, note);
    const { colour } = markOf(panel, view, row, 1);
    return [
      lineOf(points, colour, 1.6, { alpha: 0.75 }),
      { kind: "ring", x: points[0][0], y: points[0][1], r: 2.2, colour, width: 1.4 },
    ];
  });
}

// Arrows end outside the marks and the anchor's ring, which would cover their heads.
function arrowLines(panel, size, view) {
  const clear = (id) => (id === panel.anchor ? anchorRadius(size) + ANCHOR_WIDTH + 1 : size + 1);
  return panel.arrows.flatMap(({ start, end, weight }) => {
    const [a, b] = [screenOf(panel, start), screenOf(panel, end)];
    if (!a || !b) return [];
    const [dx, dy] = [b[0] - a[0], b[1] - a[1]];
    const length = Math.hypot(dx, dy);
    const [from, to] = [clear(start), clear(end)];
    if (length < from + to) return [];
    const [ux, uy] = [dx / length, dy / length];
    const strength = Math.min(1, Math.abs(weight));
    const { colour, dash } = weight >= 0 ? PULL : PUSH;
    const head = 5 + 5 * strength;
    const tail = [a[0] + ux * from, a[1] + uy * from];
    const tip = [b[0] - ux * to, b[1] - uy * to];
    const neck = [tip[0] - ux * head, tip[1] - uy * head];
    const wing = head * 0.45;
    const alpha = 0.35 + 0.6 * strength;
    const wings = [1, -1].map((side) => [neck[0] - side * uy * wing, neck[1] + side * ux * wing]);
    return [
      lineOf([tail, neck], colour, 1 + 3.5 * strength, { alpha, dash }),
      lineOf([tip, ...wings], colour, 0.5, { fill: colour, alpha: Math.min(1, alpha + 0.15) }),
    ];
  });
}

function screenOf(panel, id) {
  const row = panel.rowOf.get(id);
  if (row === undefined || Number.isNaN(panel.screen[3 * row])) return null;
  return panel.screen.subarray(3 * row, 3 * row + 3);
}

// Marks at the mean position of each class, over the visible points.
function centroidMarks(panel, view, size) {
  const { examples, places } = panel;
  const sums = examples.classes.map(() => [0, 0, 0, 0]);
  for (let row = 0; row < places.points; row += 1) {
    if (Number.isNaN(panel.screen[3 * row])) continue;
    const sum = sums[examples.labels[row]];
    placeOf(places, row, panel.moment, (x, y, z) => [x, y, z, 1].forEach((value, i) => (sum[i] += value)));
  }
  const seen = onScreen(panel);
  return sums.flatMap(([x, y, z, count], label) => {
    if (!count) return [];
    const middle = seen(x / count, y / count, z / count);
    const colour = panel.classPalette[label] ?? view.theme.text;
    const arm = size + 5;
    const cross = (width, stroke) =>
      [[[-arm, 0], [arm, 0]], [[0, -arm], [0, arm]]].map((ends) => lineOf(ends.map((end) => shifted(middle, end)), stroke, width));
    return [...cross(6, view.theme.background), ...cross(3.4, view.theme.text), ...cross(2, colour)];
  });
}

const anchorRadius = (size) => 1.25 * size + 4.5;

// Ring with four ticks around the anchor. Other selected points have a plain, thin ring.
function anchorMarks(panel, view, size) {
  const place = panel.anchor === null ? null : screenOf(panel, panel.anchor);
  if (!place) return [];
  const [x, y] = place;
  const r = anchorRadius(size);
  const drawn = (colour, width) => [
    { kind: "ring", x, y, r, colour, width },
    ...anchorTicks(r).map((ends) => lineOf(ends.map((end) => shifted(place, end)), colour, width)),
  ];
  return [...drawn(view.theme.background, ANCHOR_WIDTH + 2), ...drawn(view.theme.text, ANCHOR_WIDTH)];
}

// Ends of the ticks, relative to the centre of the ring.
const anchorTicks = (r) => [[0, -1], [1, 0], [0, 1], [-1, 0]].map(([x, y]) => [r - 1, r + ANCHOR_TICK].map((far) => [x * far, y * far]));

// Star at the position of the visitor's sentence, with its path so far; hollow if the position is an estimate.
function ownMarks(panel, view, own, size) {
  const seen = onScreen(panel);
  const { from, to, share } = panel.moment;
  const path = own.places.slice(0, from + 1).flatMap((place, frame) => (place && panel.places.slots[frame] >= 0 ? [seen(...place)] : []));
  const [start, end] = [own.places[from], own.places[to]];
  if (!start) return [];
  const place = end && share ? start.map((value, axis) => value + (end[axis] - value) * share) : start;
  const [x, y] = seen(...place);
  const r = size + 3;
  return [
    lineOf([...path, [x, y]], OWN_COLOUR, 1.8, { alpha: 0.8, dash: [2, 3] }),
    { kind: "mark", x, y, r, symbol: "star", colour: OWN_COLOUR, open: !own.exact[from], alpha: 1, edge: view.theme.background },
    nameMark(panel, view, own.name, x, y, r + 6),
  ];
}

// Name beside a mark, on the side with more space.
function nameMark(panel, view, name, x, y, gap) {
  const leftwards = x > panel.width * 0.6;
  const { text: colour, background: halo } = view.theme;
  return { kind: "text", x: leftwards ? x - gap : x + gap, y: y + 4, text: shortened(name, 40), colour, size: 12, halo, anchor: leftwards ? "end" : "start" };
}

function hoverMarks(panel, view, size) {
  const place = view.hover === null ? null : screenOf(panel, view.hover);
  if (!place) return [];
  return [
    { kind: "ring", x: place[0], y: place[1], r: size + 5, colour: view.theme.accent, width: 2.2 },
    { kind: "ring", x: place[0], y: place[1], r: size + 7, colour: view.theme.background, width: 1 },
  ];
}

function boxLines(panel, view) {
  const { middle, reach } = panel.places;
  const seen = onScreen(panel);
  const corner = (bits) => seen(...[0, 1, 2].map((axis) => middle[axis] + (bits & (1 << axis) ? 1 : -1) * reach[axis]));
  const lines = [];
  for (let bits = 0; bits < 8; bits += 1) {
    for (const edge of [1, 2, 4]) {
      if (bits & edge) continue;
      lines.push(lineOf([corner(bits), corner(bits | edge)], view.theme.line, 1, { alpha: 0.8 }));
    }
  }
  return lines;
}
