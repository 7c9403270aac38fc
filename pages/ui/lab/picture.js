// The drawing of one setting: the space, the points, their arrows, and the forces on the anchor.

const POINT_R = 6;
const SECOND_R = 4;
const ARROW_PX = 46; // length of the longest arrow
const GRAB_PX = 14;
const FINGER_GRAB_PX = 26;
const DRAG_PX = 4;
const PULL_COLOUR = "#0072b2";
const PUSH_COLOUR = "#d55e00";
const GROW_MS = 160;
const TURN = 0.01;
const NUMBER_PX = 12; // distance of a number from its point, and minimum distance between numbers

class Picture {
  constructor(lab, panel) {
    Object.assign(this, { lab, panel, yaw: 0.5, pitch: 0.35, reach: 1.25, width: 0, height: 0 });
    this.canvas = make("canvas", { className: "lab-canvas", tabindex: "0", role: "img" });
    this.node = make("div", { className: "lab-stage" }, this.canvas);
    this.listen();
  }

  measure() {
    const ratio = Math.min(window.devicePixelRatio || 1, 2);
    [this.width, this.height] = [this.node.clientWidth, this.node.clientHeight];
    [this.canvas.width, this.canvas.height] = [this.width * ratio, this.height * ratio];
    this.pen = this.canvas.getContext("2d");
    this.pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  }

  get scale() {
    return (Math.min(this.width, this.height) / 2 - 16) / this.reach;
  }

  // Project a position to the screen. The third value is the nearness, above 0 in front.
  project([x, y, z]) {
    const [midX, midY] = [this.width / 2, this.height / 2];
    if (z === undefined) return [midX + x * this.scale, midY - y * this.scale, 0];
    const [cosY, sinY, cosP, sinP] = [Math.cos(this.yaw), Math.sin(this.yaw), Math.cos(this.pitch), Math.sin(this.pitch)];
    const across = cosY * x + sinY * y;
    const away = -sinY * x + cosY * y;
    const up = cosP * z - sinP * away;
    return [midX + across * this.scale, midY - up * this.scale, -(cosP * away + sinP * z)];
  }

  // Map a screen position to the space: the nearest position on circle or sphere; in other 3-D spaces, at `depth`.
  unproject(px, py, space, depth) {
    const across = (px - this.width / 2) / this.scale;
    const up = (this.height / 2 - py) / this.scale;
    if (!this.deep) {
      const length = Math.hypot(across, up) || 1;
      return space === "circle" ? [across / length, up / length] : [across, up];
    }
    let [a, u, near] = [across, up, depth];
    if (space === "sphere") {
      const length = Math.hypot(a, u);
      if (length > 1) [a, u] = [a / length, u / length];
      near = Math.sqrt(Math.max(0, 1 - a * a - u * u)) * (depth < 0 ? -1 : 1);
    }
    const [cosY, sinY, cosP, sinP] = [Math.cos(this.yaw), Math.sin(this.yaw), Math.cos(this.pitch), Math.sin(this.pitch)];
    const z = cosP * u - sinP * near;
    const away = -sinP * u - cosP * near;
    return [cosY * a - sinY * away, sinY * a + cosY * away, z];
  }

  draw() {
    const { pen, lab: view, panel } = this;
    if (!pen || this.width < 20 || !panel.moment) return;
    const { moment } = panel;
    const places = moment.places ?? moment.points;
    this.deep = places[0][0].length === 3;
    this.grow(view, places);
    pen.clearRect(0, 0, this.width, this.height);
    pen.lineCap = "round";
    this.drawSpace(view);
    const marks = this.marksOf(view, panel, places);
    if (view.anchor !== null) this.drawPulls(view, panel, marks);
    this.drawPairs(marks, view);
    this.drawArrows(view, moment, places);
    this.drawClasses(view, panel);
    for (const mark of marks.toSorted((one, other) => one.near - other.near)) this.drawMark(mark, view);
    if (view.anchor !== null) this.drawNumbers(view, moment, marks);
    this.marks = marks;
  }

  // Zoom out when points leave the visible part of the plane.
  grow(view, places) {
    if (view.space !== "plane") {
      this.reach = 1.18;
      return;
    }
    const goal = Math.max(1, ...places.flat(2).map(Math.abs)) * 1.15;
    const now = performance.now();
    const left = this.grownAt && !view.still ? Math.exp(-(now - this.grownAt) / GROW_MS) : 0;
    this.grownAt = now;
    this.reach = goal + (this.reach - goal) * left;
    if (Math.abs(this.reach - goal) > goal / 100) view.draw();
  }

  drawSpace(view) {
    const { pen } = this;
    pen.strokeStyle = view.theme.line;
    pen.lineWidth = 1;
    pen.setLineDash([]);
    const [midX, midY] = [this.width / 2, this.height / 2];
    if (view.space === "circle" || view.space === "sphere") {
      pen.beginPath();
      pen.arc(midX, midY, this.scale, 0, 2 * Math.PI);
      pen.stroke();
    }
    if (view.space === "sphere") for (const ring of ["equator", "meridian"]) this.drawRing(ring);
    if (view.space === "plane") {
      const tens = 10 ** Math.floor(Math.log10(this.reach / 2));
      const unit = [5, 2, 1].map((times) => times * tens).find((one) => one <= this.reach / 1.9);
      this.line([midX - this.width, midY], [midX + this.width, midY]);
      this.line([midX, midY - this.height], [midX, midY + this.height]);
      for (const tick of [-unit, unit]) this.label(shortNumber(tick), midX + tick * this.scale, midY + 14, view);
    }
    if (view.space === "simplex") this.drawCorners(view);
  }

  drawRing(ring) {
    const angles = Array.from({ length: 65 }, (_, i) => (i / 64) * 2 * Math.PI);
    const places = angles.map((angle) => (ring === "equator" ? [Math.cos(angle), Math.sin(angle), 0] : [Math.cos(angle), 0, Math.sin(angle)]));
    this.line(...places.map((place) => this.project(place)));
  }

  drawCorners(view) {
    const corners = view.corners.map((corner) => this.project(corner));
    corners.forEach((one, i) => corners.slice(i + 1).forEach((other) => this.line(one, other)));
    corners.forEach(([x, y], number) => {
      const out = y > this.height / 2 ? 16 : -8;
      this.label(view.className(number), x, y + out, view, view.data.colours[number]);
    });
  }

  line(...points) {
    this.pen.beginPath();
    points.forEach(([x, y], i) => (i ? this.pen.lineTo(x, y) : this.pen.moveTo(x, y)));
    this.pen.stroke();
  }

  label(text, x, y, view, colour) {
    const { pen } = this;
    pen.font = `12px ${view.theme.font}`;
    const half = pen.measureText(text).width / 2 + 4;
    pen.textAlign = "center";
    pen.fillStyle = colour ?? view.theme.text;
    pen.fillText(text, clamp(x, half, this.width - half), clamp(y, 12, this.height - 4));
  }

  marksOf(view, panel, places) {
    return places.flatMap((views, text) =>
      views.map((place, number) => {
        const held = view.dragging?.panel === panel && view.dragging.text === text && view.dragging.view === number;
        const [x, y, near] = this.project(held ? view.dragging.to : place);
        return { text, view: number, x, y, near, label: view.labels[text] };
      }),
    );
  }

  drawMark({ x, y, near, label, text, view: number }, view) {
    const { pen } = this;
    const r = number ? SECOND_R : POINT_R;
    pen.save();
    pen.translate(x, y);
    pen.globalAlpha = this.deep && near < -0.05 ? 0.4 : 1;
    pen.fillStyle = view.data.colours[label];
    pen.strokeStyle = view.theme.background;
    pen.lineWidth = 1;
    const path = new Path2D(symbolPath(view.data.symbols[label], r));
    pen.fill(path);
    pen.stroke(path);
    if (text === view.anchor && number === 0) {
      pen.strokeStyle = view.theme.text;
      pen.lineWidth = 2;
      pen.beginPath();
      pen.arc(0, 0, r + 4, 0, 2 * Math.PI);
      pen.stroke();
    }
    pen.restore();
  }

  // Draw a thin line between the two views of a text.
  drawPairs(marks, view) {
    const { pen } = this;
    pen.strokeStyle = view.theme.text;
    pen.globalAlpha = 0.3;
    pen.lineWidth = 1;
    const firsts = new Map(marks.filter((mark) => !mark.view).map((mark) => [mark.text, mark]));
    for (const mark of marks) if (mark.view) this.line([mark.x, mark.y], [firsts.get(mark.text).x, firsts.get(mark.text).y]);
    pen.globalAlpha = 1;
  }

  drawArrows(view, moment, places) {
    const { pen } = this;
    const longest = Math.max(0, ...moment.arrows.flat().map((arrow) => Math.hypot(...arrow)));
    if (!(longest > 0)) return;
    pen.strokeStyle = pen.fillStyle = view.theme.text;
    pen.globalAlpha = 0.75;
    pen.lineWidth = 1.4;
    // Lengths are square roots relative to the longest since the start, so that short arrows stay visible.
    this.longest = view.at ? Math.max(this.longest ?? 0, longest) : longest;
    moment.arrows.forEach((views, text) =>
      views.forEach((arrow, number) => {
        const [place, length] = [places[text][number], Math.hypot(...arrow)];
        if (view.dragging?.text === text || !length) return;
        const factor = (ARROW_PX / this.scale) * Math.sqrt(1 / this.longest / length);
        this.arrow(this.project(place), this.project(place.map((value, axis) => value + arrow[axis] * factor)));
      }),
    );
    pen.globalAlpha = 1;
  }

  arrow([x, y], [u, v]) {
    const length = Math.hypot(u - x, v - y);
    if (length < 3) return;
    this.line([x, y], [u, v]);
    const [dx, dy] = [(u - x) / length, (v - y) / length];
    const { pen } = this;
    pen.beginPath();
    pen.moveTo(u + 3 * dx, v + 3 * dy);
    pen.lineTo(u - 4 * dx - 3 * dy, v - 4 * dy + 3 * dx);
    pen.lineTo(u - 4 * dx + 3 * dy, v - 4 * dy - 3 * dx);
    pen.fill();
  }

  // Draw the classifier's class vectors from the centre, in the colours of their classes.
  drawClasses(view, { moment }) {
    if (!moment.class_vectors || view.space === "simplex") return;
    const { pen } = this;
    moment.class_vectors.forEach((vector, number) => {
      pen.strokeStyle = pen.fillStyle = view.data.colours[number];
      pen.lineWidth = 2.5;
      pen.globalAlpha = 0.8;
      this.arrow(this.project(vector.map(() => 0)), this.project(vector));
    });
    pen.globalAlpha = 1;
  }

  // Draw lines between the anchor and the points that act on it: solid for pulls, dashed for pushes, thick if strong.
  drawPulls(view, { moment }, marks) {
    const anchor = marks.find((mark) => mark.text === view.anchor && mark.view === 0);
    const strongest = Math.max(...moment.pulls.map((pull) => Math.abs(pull[3])), 0);
    if (!anchor || !strongest) return;
    const { pen } = this;
    for (const [isClass, number, second, coefficient] of moment.pulls) {
      const share = Math.abs(coefficient) / strongest;
      if (share < 0.02) continue;
      const other = isClass ? null : marks.find((mark) => mark.text === number && mark.view === second);
      const to = isClass ? this.project(moment.class_vectors[number]) : [other.x, other.y];
      pen.strokeStyle = coefficient < 0 ? PULL_COLOUR : PUSH_COLOUR;
      pen.setLineDash(coefficient < 0 ? [] : [5, 4]);
      pen.globalAlpha = 0.25 + 0.6 * share;
      pen.lineWidth = 0.6 + 3.4 * share;
      this.line([anchor.x, anchor.y], to);
    }
    pen.setLineDash([]);
    pen.globalAlpha = 1;
  }

  // Number the anchor and the points that act on it most, as in the text below, where numbers do not overlap.
  drawNumbers(view, moment, marks) {
    const acting = [-1, 1].flatMap((sign) => strongestPulls(moment, sign)).filter(([isClass]) => !isClass);
    const drawn = [];
    for (const [, text, second] of [[false, view.anchor, 0], ...acting]) {
      const mark = marks.find((one) => one.text === text && one.view === second);
      if (!mark || drawn.some(({ x, y }) => Math.hypot(x - mark.x, y - mark.y) < NUMBER_PX)) continue;
      drawn.push(mark);
      // The anchor's number is below its ring, away from the lines of pulls.
      const below = text === view.anchor && !second ? 2.2 * NUMBER_PX : -NUMBER_PX;
      this.label(`${text + 1}${second ? "′" : ""}`, mark.x, mark.y + below, view);
    }
  }

  nearest(x, y, reach) {
    let [best, least] = [null, reach];
    for (const mark of this.marks ?? []) {
      const distance = Math.hypot(mark.x - x, mark.y - y) + (this.deep && mark.near < 0 ? 4 : 0);
      if (distance <= least) [best, least] = [mark, distance];
    }
    return best;
  }

  // Drag a point to move it, drag the background to rotate a 3-D space, press a point to make it the anchor.
  listen() {
    const { canvas } = this;
    let held = null;
    canvas.addEventListener("pointerdown", (event) => {
      if (event.button !== 0) return;
      const [x, y] = placeIn(canvas, event);
      const mark = this.nearest(x, y, event.pointerType === "mouse" ? GRAB_PX : FINGER_GRAB_PX);
      held = { mark, x, y, far: false, yaw: this.yaw, pitch: this.pitch };
      if (mark || this.deep) canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener("pointermove", (event) => {
      const [x, y] = placeIn(canvas, event);
      if (!held) {
        canvas.style.cursor = this.nearest(x, y, GRAB_PX) ? "grab" : "";
        return;
      }
      held.far ||= Math.hypot(x - held.x, y - held.y) > DRAG_PX;
      if (!held.far) return;
      if (held.mark) this.lab.drag(this.panel, held.mark, x, y);
      else if (this.deep) {
        this.yaw = held.yaw - (x - held.x) * TURN;
        this.pitch = clamp(held.pitch + (y - held.y) * TURN, -1.55, 1.55);
        this.lab.draw();
      }
    });
    const ended = (event) => {
      if (!held) return;
      const done = held;
      held = null;
      if (done.far && done.mark) this.lab.drop();
      else if (!done.far && event.type === "pointerup") this.lab.press(done.mark);
    };
    canvas.addEventListener("pointerup", ended);
    canvas.addEventListener("pointercancel", ended);
    canvas.addEventListener("keydown", (event) => this.lab.key(event, this.panel));
  }
}

function shortNumber(value) {
  if (value === null || value === undefined || !Number.isFinite(value)) return "–";
  const size = Math.abs(value);
  if (size !== 0 && (size < 0.001 || size >= 1e5)) return value.toExponential(1).replace("-", "−").replace("e+", "e");
  return value.toLocaleString("en", { maximumSignificantDigits: 3 }).replace("-", "−");
}
