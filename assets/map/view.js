// The maps of one node: their state and the actions that change it.

const FRAME_REST_MS = 150;
const PLAY_REPORT_MS = 700;
const VIEW_REST_MS = 400;
const SAY_REST_MS = 500;
const GLIDE_MS = 450; // transition to a newer frame
const GLIDE_REST_MS = 33; // pause between its drawings, which use the cores that train
const LOOP_REST_MS = 2500; // pause on the last frame before a replay restarts
// Drawing more points takes over 5 ms. It then waits for the server's answer and for the elements beside the map.
const SLOW_POINTS = 1500;
const ANSWER_MS = 250;
const BESIDE_MS = 60;
const TOOLS = [
  ["move", N_("Pan")],
  ["box", N_("Select with a box")],
  ["lasso", N_("Select with a lasso")],
];

class MapView {
  constructor(node) {
    Object.assign(this, { node, panels: [], at: 0, playing: false, looping: false, scrubbing: false, gliding: null, speed: 1, tool: "move", trails: false });
    Object.assign(this, { chosen: new Set(), lit: null, hidden: new Map(), spotted: null, hover: null, applied: {}, updates: 0 });
    this.reports = new Reports();
    this.still = window.matchMedia("(prefers-reduced-motion: reduce)");
    this.sizes = new ResizeObserver(() => this.measure());
    this.player = makePlayer(this);
    this.legend = make("div", { className: "map-legend" });
    this.stages = make("div", { className: "map-stages" });
    this.message = make("div", { className: "map-message", role: "status" });
    this.spoken = make("div", { className: "map-spoken", "aria-live": "polite" });
    const main = make("div", { className: "map-main" }, this.toolbar(), this.stages);
    this.body = make("div", { className: "map-body" }, this.legend, main, this.player.node);
    node.replaceChildren(this.message, this.body, this.spoken);
    this.sizes.observe(this.legend);
    this.body.addEventListener("keydown", (event) => event.key === "Escape" && this.chosen.size && this.choose([], false));
    this.say(_("Loading the map …"));
  }

  toolbar() {
    this.tools = TOOLS.map(([tool, label]) => {
      const button = labelledButton(icon(tool), _(label), () => this.setTool(tool));
      button.tool = tool;
      return button;
    });
    const zoomAll = (factor) => this.panels.forEach((panel) => this.look(panel, factor && zoomed(panel, factor)));
    const group = (...buttons) => make("span", { className: "map-tools" }, ...buttons);
    return make(
      "div",
      { className: "map-toolbar", role: "toolbar", "aria-label": _("Map"), "aria-orientation": "vertical" },
      group(...this.tools),
      group(
        labelledButton(icon("in"), _("Zoom in (or Ctrl + wheel)"), () => zoomAll(1.4)),
        labelledButton(icon("out"), _("Zoom out"), () => zoomAll(1 / 1.4)),
        labelledButton(icon("whole"), _("Fit the map to the view"), () => zoomAll(null)),
      ),
      group(
        labelledButton("PNG", _("Download as PNG"), () => downloadPng(this), "map-text-button"),
        labelledButton("SVG", _("Download as SVG"), () => downloadSvg(this), "map-text-button"),
      ),
    );
  }

  // Apply the page's data once all of its bundles have arrived.
  update(data, send) {
    this.data = data;
    this.reports.send = send;
    this.node.setAttribute("aria-label", data.description);
    shelf.waiting.delete(this.arrived);
    this.arrived = () => {
      if (!neededBundles(this.data).every((id) => shelf.ready.has(id))) return;
      shelf.waiting.delete(this.arrived);
      this.show();
    };
    shelf.waiting.add(this.arrived);
    this.arrived();
  }

  show() {
    const { data } = this;
    this.theme = readTheme(this.node);
    if (!this.isNews(data)) return;
    const newest = this.panels.length === 0 || this.gliding || this.at >= this.timeline.playable.length - 1;
    const step = this.panels.length ? this.step() : null;
    const moved = makePanels(this, data.panels);
    this.timeline = makeTimeline(this.panels);
    if (!this.timeline.playable.length || this.panels.every((panel) => !panel.places.points)) return this.say(data.empty);
    this.say("");
    this.lit = data.lit && new Set(data.lit);
    const before = this.at;
    // Stay at the current step, or follow the newest one.
    this.at = step === null || this.follows(newest) ? this.timeline.playable.length - 1 : this.placeOfStep(step);
    this.takeFromPage("selected", (ids) => (this.chosen = new Set(ids)));
    this.takeFromPage("view", (text) => this.panels.forEach((panel, i) => (panel.camera = readView(text, i, panel.places.axes))));
    this.takeFromPage("frame", (frame) => frame !== null && (this.at = this.placeOfStep(frame)));
    if (this.updates && this.follows(newest) && this.at > before) this.glide(before);
    if (data.play && !this.updates && !this.still.matches) this.loop();
    if (moved) this.reports.report("view", writeViews(this.panels), VIEW_REST_MS);
    // Hidden categories apply to one colouring only.
    const colourings = new Set(this.panels.map((panel) => panel.colouring));
    for (const colouring of this.hidden.keys()) if (!colourings.has(colouring)) this.hidden.delete(colouring);
    this.player.node.hidden = this.timeline.steps.length < 2;
    // Set before the next drawing, so that the End key reaches the newest frame.
    this.player.slider.max = String(this.timeline.steps.length - 1);
    this.player.trails.hidden = !data.trails;
    drawStrip(this);
    drawLegend(this);
    this.setTool(this.tool);
    if (this.updates) this.drawLater(BESIDE_MS);
    else this.measure();
    this.updates += 1;
  }

  // Return whether the data differ from what is drawn. Most updates concern only elements beside the map. Values that
  // both page and visitor set are compared by their numbers instead, see `takeFromPage`.
  isNews({ selected, frame, view, ...rest }) {
    const shown = JSON.stringify([rest, frame === null, this.theme]);
    const news = shown !== this.shown;
    this.shown = shown;
    return news;
  }

  // Return whether to move to a newer frame, only if the visitor was at the newest one.
  follows(newest) {
    return newest && (this.data.frame === null || this.data.follow);
  }

  // Apply a value of the page if its number shows that the page requested a new one.
  takeFromPage(field, take) {
    const number = this.data.numbers[field];
    if (this.applied[field] === number) return;
    this.applied[field] = number;
    take(this.data[field]);
  }

  placeOfStep(step) {
    const { steps, playable } = this.timeline;
    return Math.max(0, playable.findLastIndex((index) => steps[index] <= step));
  }

  step() {
    return this.timeline.steps[this.timeline.playable[Math.floor(this.at)]];
  }

  say(sentence) {
    this.message.textContent = sentence;
    this.message.hidden = !sentence;
    this.body.hidden = Boolean(sentence);
  }

  measure() {
    const rows = [...this.legend.children];
    const line = Math.max(...rows.flatMap((row) => [...row.children].map((item) => item.offsetHeight)), 0);
    const extra = rows.reduce((sum, row) => sum + row.offsetHeight - line, 0);
    this.node.style.setProperty("--legend-extra", `${extra}px`);
    for (const panel of this.panels) {
      [panel.width, panel.height] = [panel.stage.clientWidth, panel.stage.clientHeight];
    }
    this.draw();
  }

  // Draw at the next animation frame, once for any number of calls.
  draw() {
    this.pending ??= requestAnimationFrame(() => {
      this.pending = null;
      this.drawNow();
    });
  }

  // Delay a slow drawing, which would otherwise hold up the display of the server's answer.
  drawLater(ms) {
    clearTimeout(this.later);
    this.later = setTimeout(() => this.measure(), this.isSlow() ? ms : 0);
  }

  isSlow() {
    return this.panels.reduce((sum, panel) => sum + panel.places.points, 0) > SLOW_POINTS;
  }

  drawNow() {
    if (!this.panels.length || this.body.hidden) return;
    const now = performance.now();
    const ms = this.still.matches || !this.drawings ? Infinity : now - this.drawnAt;
    this.drawnAt = now;
    const moving = panelsBy(this.panels, "space").map((panels) => {
      const moments = panels.map((panel) => momentOf(panel, this.timeline, this.at));
      return easeHome(panels, moments, this.playing || this.scrubbing, ms);
    });
    for (const panel of this.panels) {
      if (panel.width < 2 || panel.height < 2) continue;
      paint(panel, this);
      panel.missing.hidden = panel.moment.from >= 0;
      write(panel.note, panelWords(panel, this));
    }
    updatePlayer(this);
    this.node.dataset.step = String(this.step());
    this.node.dataset.updates = String(this.updates);
    this.node.dataset.settled = String(!moving.includes(true) && this.gliding === null);
    this.drawings = (this.drawings || 0) + 1;
    if (moving.includes(true) && !this.gliding) this.draw();
  }

  // Animate the points from a frame to the newest one.
  glide(from) {
    const to = this.at;
    this.gliding = null;
    if (this.still.matches) return;
    const [mine, began] = [{}, performance.now()];
    const move = (now) => {
      if (this.gliding !== mine) return;
      const share = clamp((now - began) / GLIDE_MS, 0, 1);
      this.at = share < 1 ? from + (to - from) * share * share * (3 - 2 * share) : to;
      if (share < 1) setTimeout(() => requestAnimationFrame(move), GLIDE_REST_MS);
      else this.gliding = null;
      this.drawNow();
    };
    [this.at, this.gliding] = [from, mine];
    requestAnimationFrame(move);
  }

  // Play in a loop until the visitor pauses or moves to a frame.
  loop() {
    this.pause();
    this.at = 0;
    this.togglePlay();
    this.looping = true;
  }

  goTo(at) {
    this.pause();
    this.gliding = null;
    this.at = clamp(at, 0, this.timeline.playable.length - 1);
    this.rested();
    this.draw();
  }

  rested() {
    if (this.looping) return;
    this.reports.report("frame", this.step(), FRAME_REST_MS);
    clearTimeout(this.speaking);
    this.speaking = setTimeout(() => (this.spoken.textContent = momentWords(this)), SAY_REST_MS);
  }

  togglePlay() {
    if (this.playing) {
      this.at = Math.round(this.at);
      this.pause();
      this.rested();
      return this.draw();
    }
    const last = this.timeline.playable.length - 1;
    if (this.at >= last) this.at = 0;
    this.gliding = null;
    this.playing = true;
    [this.clock, this.reportedAt, this.played] = [performance.now(), performance.now(), this.at];
    return this.tick();
  }

  pause() {
    this.playing = this.looping = false;
    cancelAnimationFrame(this.ticking);
    clearTimeout(this.resting);
  }

  tick() {
    this.ticking = requestAnimationFrame((now) => {
      if (!this.playing) return;
      const last = this.timeline.playable.length - 1;
      this.played = Math.min(last, this.played + (Math.max(0, now - this.clock) * this.speed) / frameMs(last + 1));
      this.clock = now;
      this.at = this.still.matches ? Math.floor(this.played) : this.played;
      if (now - this.reportedAt >= PLAY_REPORT_MS && !this.looping) {
        this.reportedAt = now;
        this.reports.report("frame", this.step(), 0);
      }
      if (this.at >= last && this.looping) {
        this.resting = setTimeout(() => this.loop(), LOOP_REST_MS);
      } else if (this.at >= last) {
        this.pause();
        this.rested();
      } else this.tick();
      this.drawNow();
    });
  }

  look(panel, camera) {
    panel.camera = camera && inFewDigits(camera);
    this.reports.report("view", writeViews(this.panels), VIEW_REST_MS);
    this.draw();
  }

  setTool(tool) {
    this.tool = tool;
    for (const button of this.tools) button.setAttribute("aria-pressed", String(button.tool === tool));
    this.stages.dataset.tool = tool;
  }

  setHover(id) {
    if (this.hover === id) return;
    this.hover = id;
    this.draw();
  }

  toggle(colouring, code) {
    if (!this.hidden.has(colouring)) this.hidden.set(colouring, new Set());
    const codes = this.hidden.get(colouring);
    if (!codes.delete(code)) codes.add(code);
    drawLegend(this);
    this.draw();
  }

  // Hide all other categories of a colouring, or show all if only this one is visible.
  showAlone(colouring, code) {
    const panel = this.panels.find((one) => one.colouring === colouring);
    const others = panel.colours.names.map((_, other) => other).filter((other) => other !== code);
    const hidden = this.hidden.get(colouring);
    const alone = !hidden?.has(code) && others.every((other) => hidden?.has(other));
    this.hidden.set(colouring, new Set(alone ? [] : others));
    drawLegend(this);
    this.draw();
  }

  // Highlight a category while its name is hovered or focused.
  spot(category) {
    this.spotted = category;
    this.draw();
  }

  click(id, adds) {
    const rest = [...this.chosen].filter((other) => other !== id);
    this.reports.note("clicked", id);
    this.choose(adds ? (this.chosen.has(id) ? rest : [...rest, id]) : [id], false);
  }

  choose(ids, adds) {
    this.chosen = new Set(adds ? [...this.chosen, ...ids] : ids);
    this.reports.report("selected", [...this.chosen], 0);
    this.drawLater(ANSWER_MS);
    if (this.isSlow()) this.panels.forEach((panel) => paintRings(panel, this));
  }

  close() {
    this.pause();
    this.reports.stop();
    this.sizes.disconnect();
    cancelAnimationFrame(this.pending);
    this.gliding = null;
    clearTimeout(this.later);
    clearTimeout(this.speaking);
    shelf.waiting.delete(this.arrived);
  }
}
