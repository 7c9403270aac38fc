// From a place on the map to a place on the screen, and how a view is written down.

const HOME_3D = { yaw: 0.6, pitch: 0.35, zoom: 1 };
const EYE = 4; // distance of the eye from the middle, in half widths of the box
const ZOOM_LIMIT = 200;
const EDGE_PX = 10; // the home view leaves room for the marks of the outermost points
const MOST_MAGNIFIED = 4; // a frame whose points lie closer together than this looks it
const HOME_MARGIN = 1.04;
const EASE_MS = 120;

const clamp = (value, low, high) => Math.min(high, Math.max(low, value));

// What the camera of a panel shows: { x, y, reach } in the map's own units, reach to the nearer edge; or the 3-D one.
function cameraOf(panel) {
  if (panel.camera) return panel.camera;
  if (panel.places.axes === 3) return HOME_3D;
  const { middle, reach } = panel.home ?? panel.places;
  const [w, h] = [Math.max(20, panel.width - 2 * EDGE_PX), Math.max(20, panel.height - 2 * EDGE_PX)];
  const perPixel = Math.max((2 * reach[0]) / w, (2 * reach[1]) / h);
  return { x: middle[0], y: middle[1], reach: (perPixel * Math.min(panel.width, panel.height)) / 2 };
}

// What the home view of flat maps holds: the points of the frame that is shown, or, while frames follow each other,
// those of all frames, so that the scale stays the same. Maps in one space have one view, so that they can be compared.
function homeOf(panels, moments, steady) {
  const boxes = panels.map(({ places }, i) => {
    places.boxes ??= boxesOf(places);
    return steady || moments[i].from < 0 ? null : places.boxes[places.slots[moments[i].to]];
  });
  const held = boxes.filter(Boolean);
  if (!held.length) return panels[0].places;
  const ends = (axis, side) => held.map(({ middle, reach }) => middle[axis] + side * reach[axis]);
  const [low, high] = [[0, 1].map((axis) => Math.min(...ends(axis, -1))), [0, 1].map((axis) => Math.max(...ends(axis, 1)))];
  return { middle: [0, 1].map((i) => (low[i] + high[i]) / 2), reach: [0, 1].map((i) => (high[i] - low[i]) / 2) };
}

// The box around the points of each frame that has a map, in the map's own units.
function boxesOf(places) {
  const { axes, points, half, middle, reach } = places;
  const unit = (2 * half) / PLACE_STEPS;
  return places.present.map((_, slot) => {
    const [low, high] = [[Infinity, Infinity], [-Infinity, -Infinity]];
    for (let at = slot * points * axes; at < (slot + 1) * points * axes; at += axes) {
      if (places.places[at] > PLACE_STEPS) continue;
      for (const axis of [0, 1]) {
        low[axis] = Math.min(low[axis], places.places[at + axis]);
        high[axis] = Math.max(high[axis], places.places[at + axis]);
      }
    }
    if (low[0] > high[0]) return null;
    const across = [0, 1].map((axis) => Math.max(((high[axis] - low[axis]) / 2) * unit * HOME_MARGIN, reach[axis] / MOST_MAGNIFIED));
    return { middle: [0, 1].map((axis) => middle[axis] - half + ((low[axis] + high[axis]) / 2) * unit), reach: across };
  });
}

// Move the home view of panels in one space towards what it has to hold; returns whether it is still on its way.
function easeHome(panels, moments, steady, ms) {
  const [panel] = panels;
  if (panel.places.axes === 3) return false;
  const goal = homeOf(panels, moments, steady);
  const start = panels.every(({ home }) => home) ? panel.home : null;
  const left = start && ms < Infinity ? Math.exp(-ms / EASE_MS) : 0;
  const towards = (from, to) => to + (from - to) * left;
  const eased = (name) => [0, 1].map((axis) => (left ? towards(start[name][axis], goal[name][axis]) : goal[name][axis]));
  let home = { middle: eased("middle"), reach: eased("reach") };
  const far = [0, 1].some((axis) =>
    ["middle", "reach"].some((name) => Math.abs(home[name][axis] - goal[name][axis]) > goal.reach[axis] / 500),
  );
  if (!far) home = { middle: goal.middle.slice(0, 2), reach: goal.reach.slice(0, 2) };
  for (const one of panels) one.home = home;
  return far;
}

// Returns a function (x, y, z, out) that writes screen x, y and nearness (1 in the middle, more is nearer) to out.
function projector(panel) {
  const camera = cameraOf(panel);
  const [halfW, halfH] = [panel.width / 2, panel.height / 2];
  const near = Math.min(halfW, halfH);
  if (panel.places.axes === 2) {
    const scale = near / camera.reach;
    return (x, y, _z, out) => {
      out[0] = halfW + (x - camera.x) * scale;
      out[1] = halfH - (y - camera.y) * scale;
      out[2] = 1;
    };
  }
  const { middle, half } = panel.places;
  const scale = (near * camera.zoom) / 1.25 / half;
  const [cosY, sinY, cosP, sinP] = [
    Math.cos(camera.yaw),
    Math.sin(camera.yaw),
    Math.cos(camera.pitch),
    Math.sin(camera.pitch),
  ];
  return (x, y, z, out) => {
    const [a, b, c] = [x - middle[0], y - middle[1], z - middle[2]];
    const across = cosY * a + sinY * b;
    const away = -sinY * a + cosY * b;
    const up = cosP * c - sinP * away;
    const depth = (cosP * away + sinP * c) / half;
    const nearness = EYE / (EYE + depth);
    out[0] = halfW + across * scale * nearness;
    out[1] = halfH - up * scale * nearness;
    out[2] = nearness;
  };
}

function zoomed(panel, factor, x = panel.width / 2, y = panel.height / 2) {
  const camera = cameraOf(panel);
  if (panel.places.axes === 3) return { ...camera, zoom: clamp(camera.zoom * factor, 0.3, 20) };
  const { half } = panel.places;
  const reach = clamp(camera.reach / factor, half / ZOOM_LIMIT, half * 4);
  // What lies under the pointer stays under it.
  const perPixel = (camera.reach - reach) / (Math.min(panel.width, panel.height) / 2);
  return {
    x: camera.x + (x - panel.width / 2) * perPixel,
    y: camera.y - (y - panel.height / 2) * perPixel,
    reach,
  };
}

function dragged(panel, start, dx, dy) {
  if (panel.places.axes === 3) {
    return { ...start, yaw: start.yaw + dx * 0.01, pitch: clamp(start.pitch + dy * 0.01, -1.55, 1.55) };
  }
  const perPixel = start.reach / (Math.min(panel.width, panel.height) / 2);
  return { ...start, x: start.x - dx * perPixel, y: start.y + dy * perPixel };
}

// A camera in the few digits that its text has, so that an address gives back the very same picture.
function inFewDigits(camera) {
  const round = (value, digits) => +value.toFixed(clamp(digits, 0, 12));
  if ("yaw" in camera) return { yaw: round(camera.yaw, 3), pitch: round(camera.pitch, 3), zoom: round(camera.zoom, 3) };
  const digits = 4 - Math.floor(Math.log10(camera.reach)); // a step is less than a tenth of a pixel
  return { x: round(camera.x, digits), y: round(camera.y, digits), reach: round(camera.reach, digits) };
}

// Views of all panels in one short text for an address: numbers of a panel with "_" between them, panels with "~".
function writeViews(panels) {
  const parts = panels.map(({ camera }) =>
    camera ? Object.values(camera).join("_") : "",
  );
  return parts.some(Boolean) ? parts.join("~") : "";
}

// The camera that a text gives to a panel; nonsense gives the home view.
function readView(text, index, axes) {
  const numbers = (text.split("~")[index] || "").split("_").map(Number);
  if (numbers.length !== 3 || !numbers.every(Number.isFinite) || numbers[2] <= 0) return null;
  const [a, b, c] = numbers;
  return axes === 3 ? { yaw: a, pitch: clamp(b, -1.55, 1.55), zoom: clamp(c, 0.3, 20) } : { x: a, y: b, reach: c };
}
