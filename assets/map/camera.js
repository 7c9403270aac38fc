// Projection of map coordinates onto the screen, and the text form of a view.

const HOME_3D = { yaw: 0.6, pitch: 0.35, zoom: 1 };
const EYE = 4; // distance of the eye from the centre, in half widths of the box
const ZOOM_LIMIT = 200;
const EDGE_PX = 10; // margin of the home view, for the marks of the outermost points
const MOST_MAGNIFIED = 4; // maximum zoom of the home view, so that collapsed points look collapsed
const HOME_MARGIN = 1.04;
const EASE_MS = 120;

// Camera of a panel: { x, y, reach } in map units, where `reach` extends to the nearer edge, or a 3-D camera.
function cameraOf(panel) {
  if (panel.camera) return panel.camera;
  if (panel.places.axes === 3) return HOME_3D;
  const { middle, reach } = panel.home ?? panel.places;
  const [w, h] = [Math.max(20, panel.width - 2 * EDGE_PX), Math.max(20, panel.height - 2 * EDGE_PX)];
  const perPixel = Math.max((2 * reach[0]) / w, (2 * reach[1]) / h);
  return { x: middle[0], y: middle[1], reach: (perPixel * Math.min(panel.width, panel.height)) / 2 };
}

// Bounds of the home view of 2-D maps: the points of the current frame or, during playback and scrubbing, of all
// frames, so that the scale stays constant. Maps in one space share a view, so that they can be compared.
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

// Bounding box, in map units, of the points of each frame that has a map.
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

// Move the home view of panels in one space towards its bounds. Returns whether it is still moving.
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

// Return a function (x, y, z, out) that writes screen x, y and nearness to `out`. Nearness is 1 at the centre.
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
  // The map position under the pointer stays there.
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

// Round a camera to the digits of its text form, so that the address restores exactly the same view.
function inFewDigits(camera) {
  const round = (value, digits) => +value.toFixed(clamp(digits, 0, 12));
  if ("yaw" in camera) return { yaw: round(camera.yaw, 3), pitch: round(camera.pitch, 3), zoom: round(camera.zoom, 3) };
  const digits = 4 - Math.floor(Math.log10(camera.reach)); // a step is less than a tenth of a pixel
  return { x: round(camera.x, digits), y: round(camera.y, digits), reach: round(camera.reach, digits) };
}

// Encode the views of all panels for the address: "_" separates the numbers of a panel, "~" separates panels.
function writeViews(panels) {
  const parts = panels.map(({ camera }) =>
    camera ? Object.values(camera).join("_") : "",
  );
  return parts.some(Boolean) ? parts.join("~") : "";
}

// Parse the camera of a panel. Invalid text gives null, the home view.
function readView(text, index, axes) {
  const numbers = (text.split("~")[index] || "").split("_").map(Number);
  if (numbers.length !== 3 || !numbers.every(Number.isFinite) || numbers[2] <= 0) return null;
  const [a, b, c] = numbers;
  return axes === 3 ? { yaw: a, pitch: clamp(b, -1.55, 1.55), zoom: clamp(c, 0.3, 20) } : { x: a, y: b, reach: c };
}
