// Mouse, touch, pen and keyboard input of one panel: move the camera, hover a point, select points.

const CLICK_PX = 4;
const REACH_PX = 14;
const FINGER_PX = 24;
const KEY_PX = 40;

// Row of the point nearest to a screen position, null if none is within `reach`.
function rowAt(panel, x, y, reach) {
  let [best, nearest] = [null, reach * reach];
  for (let row = 0; row < panel.places.points; row += 1) {
    const [dx, dy] = [panel.screen[3 * row] - x, panel.screen[3 * row + 1] - y];
    const distance = dx * dx + dy * dy;
    if (distance <= nearest) [best, nearest] = [row, distance];
  }
  return best;
}

// Even–odd rule: a ray from the point crosses the outline an odd number of times.
function inside(outline, x, y) {
  let odd = false;
  for (let i = 0, j = outline.length - 1; i < outline.length; j = i, i += 1) {
    const [[ax, ay], [bx, by]] = [outline[i], outline[j]];
    if (ay > y !== by > y && x < ((bx - ax) * (y - ay)) / (by - ay) + ax) odd = !odd;
  }
  return odd;
}

const boxOutline = ([x, y], [u, v]) => [[x, y], [u, y], [u, v], [x, v]];

function listenToPointer(panel, view) {
  const { canvas } = panel;
  const fingers = new Map(); // pointer id → position
  let drag = null;
  let pinch = null;

  const hover = (event) => {
    const [x, y] = placeIn(canvas, event);
    const row = panel.moment?.from >= 0 ? rowAt(panel, x, y, REACH_PX) : null;
    view.setHover(row === null ? null : panel.examples.ids[row]);
    const own = row === null ? ownAt(panel, view, x, y) : null;
    if (row !== null) showTip(panel, tipLines(panel, row), x, y);
    else if (own) showTip(panel, [["b", own.name], ["span", own.text]], x, y);
    else hideTip(panel);
    canvas.style.cursor = row === null ? "" : "pointer";
  };

  const spread = () => {
    const [[x, y], [u, v]] = [...fingers.values()];
    return { x: (x + u) / 2, y: (y + v) / 2, distance: Math.hypot(x - u, y - v) };
  };

  canvas.addEventListener("pointerdown", (event) => {
    if (event.button !== 0 || panel.moment === undefined) return;
    fingers.set(event.pointerId, placeIn(canvas, event));
    canvas.setPointerCapture(event.pointerId);
    if (fingers.size === 2) {
      [pinch, drag, panel.drawn] = [spread(), null, null];
      return;
    }
    const start = placeIn(canvas, event);
    drag = { start, far: false, camera: cameraOf(panel), outline: [start] };
  });

  canvas.addEventListener("pointermove", (event) => {
    if (!fingers.has(event.pointerId)) {
      if (event.pointerType === "mouse") hover(event);
      return;
    }
    fingers.set(event.pointerId, placeIn(canvas, event));
    if (pinch && fingers.size === 2) {
      const now = spread();
      view.look(panel, zoomed(panel, now.distance / Math.max(1, pinch.distance), now.x, now.y));
      pinch = now;
    } else if (drag) moved(placeIn(canvas, event));
  });

  const moved = ([x, y]) => {
    const [dx, dy] = [x - drag.start[0], y - drag.start[1]];
    drag.far ||= Math.hypot(dx, dy) > CLICK_PX;
    if (!drag.far) return;
    hideTip(panel);
    if (view.tool === "move") view.look(panel, dragged(panel, drag.camera, dx, dy));
    else {
      drag.outline.push([x, y]);
      panel.drawn = view.tool === "box" ? boxOutline(drag.start, [x, y]) : drag.outline;
      view.draw();
    }
  };

  const ended = (event) => {
    fingers.delete(event.pointerId);
    if (fingers.size < 2) pinch = null;
    const done = drag;
    drag = null;
    const outline = panel.drawn;
    panel.drawn = null;
    if (!done || event.type === "pointercancel") {
      view.draw();
      return;
    }
    const adds = event.shiftKey || event.ctrlKey || event.metaKey;
    if (outline) {
      const within = (_id, row) => inside(outline, panel.screen[3 * row], panel.screen[3 * row + 1]);
      view.choose(panel.examples.ids.filter(within), adds);
    } else if (!done.far) {
      const row = rowAt(panel, ...done.start, event.pointerType === "mouse" ? REACH_PX : FINGER_PX);
      if (row !== null) view.click(panel.examples.ids[row], adds);
      if (row !== null && event.pointerType !== "mouse") showTip(panel, tipLines(panel, row), ...done.start);
      else if (event.pointerType !== "mouse") hideTip(panel);
    }
  };
  canvas.addEventListener("pointerup", ended);
  canvas.addEventListener("pointercancel", ended);
  canvas.addEventListener("pointerleave", (event) => {
    if (event.pointerType !== "mouse") return;
    view.setHover(null);
    hideTip(panel);
  });
  canvas.addEventListener("dblclick", (event) => {
    if (rowAt(panel, ...placeIn(canvas, event), REACH_PX) === null) view.choose([], false);
  });
  // The wheel scrolls the page; with Ctrl or ⌘, as in a trackpad pinch, it zooms.
  canvas.addEventListener(
    "wheel",
    (event) => {
      if (!event.ctrlKey && !event.metaKey) return;
      event.preventDefault();
      view.look(panel, zoomed(panel, Math.exp(-clamp(event.deltaY, -200, 200) / 400), ...placeIn(canvas, event)));
    },
    { passive: false },
  );
  canvas.addEventListener("keydown", (event) => keyOnMap(event, panel, view));
}

function keyOnMap(event, panel, view) {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const moves = { ArrowLeft: [KEY_PX, 0], ArrowRight: [-KEY_PX, 0], ArrowUp: [0, KEY_PX], ArrowDown: [0, -KEY_PX] };
  if (moves[event.key]) view.look(panel, dragged(panel, cameraOf(panel), ...moves[event.key]));
  else if (event.key === "+" || event.key === "=") view.look(panel, zoomed(panel, 1.25));
  else if (event.key === "-") view.look(panel, zoomed(panel, 0.8));
  else if (event.key === "0") view.look(panel, null);
  else return;
  event.preventDefault();
}

function ownAt(panel, view, x, y) {
  if (!(panel.moment?.from >= 0)) return null;
  const size = markSize(panel.places.points, panel.width);
  return panel.own.find((own) => {
    const star = ownMarks(panel, view, own, size).find((item) => item.symbol === "star");
    return star && Math.hypot(star.x - x, star.y - y) <= REACH_PX;
  });
}
