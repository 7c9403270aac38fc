// The lab of one node. The server computes all gradients and moves.

const STEPS_PER_S = 30;
const BATCH = 40; // steps per request at normal speed
const MOST_STEPS = 3000;
const SILENCE_MS = 12_000;
const CHART_MS = 170;
const REST_MS = 400;
const NUDGE = 0.06;
const SPEEDS = [["0.25", "¼×"], ["1", "1×"], ["4", "4×"]];

class Lab {
  constructor(node) {
    Object.assign(this, { node, panels: [], history: [], at: 0, playing: false, anchor: null, asked: null, wanted: null, numbers: 0 });
    Object.assign(this, { moves: [], pure: true, dragging: null, speed: 1, updates: 0, chartedAt: 0, heardAt: 0 });
    this.still = window.matchMedia("(prefers-reduced-motion: reduce)").matches;
    this.sizes = new ResizeObserver(() => this.measure());
    this.playButton = labelledButton(icon("play"), _("Play"), () => this.togglePlay(), "lab-play");
    this.stepButton = labelledButton(icon("next"), _("One step"), () => this.stepOnce());
    this.resetButton = labelledButton(_("Reset"), _("Reset to the start"), () => this.reset(), "map-text-button");
    const speed = make("select", { className: "lab-speed", "aria-label": _("Speed") }, ...SPEEDS.map(([value, text]) => make("option", { value, text })));
    speed.value = "1";
    speed.addEventListener("change", () => (this.speed = Number(speed.value)));
    this.scrubber = make("input", { type: "range", className: "lab-scrubber", min: 0, max: 0, step: 1, "aria-label": _("Step") });
    this.scrubber.addEventListener("input", () => this.goTo(this.scrubber.valueAsNumber));
    this.count = make("span", { className: "lab-count" });
    this.bar = make("div", { className: "lab-bar" }, this.playButton, this.stepButton, this.resetButton, this.scrubber, this.count, speed);
    this.message = make("div", { className: "lab-message", role: "status" });
    this.legend = make("div", { className: "lab-legend" });
    this.row = make("div", { className: "lab-panels" });
    this.chart = make("div", { className: "lab-chart", role: "figure" });
    this.body = make("div", { className: "lab-body" }, this.row, this.chart);
    node.replaceChildren(this.bar, this.message, this.legend, this.body);
    this.say(_("The lab is starting …"));
  }

  // Apply the page's data: another stage restarts the lab, an answer continues it.
  update(data, report) {
    Object.assign(this, { data, report });
    const { stage } = data;
    Object.assign(this, { space: stage.space, theme: readTheme(this.node) });
    if (data.origin !== this.origin) this.begin();
    if (data.answer && this.asked && data.number === this.asked.number) this.hear(JSON.parse(data.answer));
    else if (data.problem && this.asked && data.number === this.asked.number) this.fail(data.problem);
  }

  begin() {
    const { data } = this;
    const first = this.origin === undefined;
    this.origin = data.origin;
    this.pause();
    this.panels = data.settings.map((setting, i) => this.panelOf(setting, i, data.settings.length > 1));
    this.sizes.disconnect();
    this.row.replaceChildren(...this.panels.map(({ node }) => node));
    this.body.dataset.panels = String(this.panels.length);
    for (const { picture } of this.panels) this.sizes.observe(picture.node);
    Object.assign(this, { anchor: data.anchor, moves: data.moves.map((move) => ({ ...move })), asked: null, wanted: null, labels: [] });
    this.target = first ? data.step : 0;
    this.restart();
  }

  panelOf(setting, i, several) {
    const panel = { i, moment: null, ended: null };
    panel.picture = new Picture(this, panel);
    panel.knobs = new Knobs(several ? `, ${"AB"[i]}` : "", this.data.losses, () => this.turned());
    panel.knobs.set(setting, this.data.offered);
    panel.numbers = make("div", { className: "lab-numbers" });
    panel.pulls = make("div", { className: "lab-pulls" });
    panel.bars = make("div", { className: "softmax-bars", "aria-hidden": "true" });
    panel.shares = make("div", { className: "lab-shares" });
    const called = several ? _("Setting {name}", { name: "AB"[i] }) : "";
    const name = make("div", { className: "lab-name", text: called });
    name.hidden = !several;
    panel.node = make("section", { className: "lab-panel", "aria-label": called || _("Points") }, name, panel.picture.node, panel.numbers, panel.knobs.node, panel.pulls, panel.bars, panel.shares);
    return panel;
  }

  // Return to the start and keep the moves of points made there.
  restart() {
    Object.assign(this, { history: [], at: 0, pure: true });
    for (const panel of this.panels) panel.ended = null;
    this.ask({ from: null, at: 0, steps: Math.min(this.target, 240) });
  }

  reset() {
    this.pause();
    this.target = 0;
    this.restart();
  }

  // Send one request at a time. Of those made meanwhile, only the newest is sent next.
  ask(question) {
    if (this.asked) {
      this.wanted = question;
      return;
    }
    this.numbers += 1;
    this.asked = { ...question, number: this.numbers };
    const { from, steps, moves } = question;
    this.report({
      number: this.numbers,
      origin: this.origin,
      question: { stage: this.data.stage, settings: this.panels.map(({ knobs }) => knobs.setting), held: from, moves: from === null ? this.moves : moves ?? [], steps, anchor: this.anchor },
      ...this.place(),
    });
    clearTimeout(this.silence);
    this.silence = setTimeout(() => {
      const lost = this.asked;
      this.asked = null;
      if (lost) this.ask(this.wanted ?? lost);
    }, SILENCE_MS);
  }

  // State for the address, besides the settings. The step is included only if start and settings reproduce it.
  place() {
    return { moves: this.moves, step: this.pure ? this.at : 0 };
  }

  // Report the step for the address once playback rests.
  rested() {
    clearTimeout(this.resting);
    this.resting = setTimeout(() => {
      if (!this.asked && !this.playing) this.report({ number: this.numbers, origin: this.origin, question: null, ...this.place() });
    }, REST_MS);
  }

  hear(answer) {
    if (!this.playing) this.heardAt = performance.now();
    const { at, number } = this.asked;
    this.asked = null;
    clearTimeout(this.silence);
    this.say("");
    Object.assign(this, { labels: answer.labels, corners: answer.corners });
    this.history.length = at;
    const length = Math.max(1, ...answer.panels.map(({ moments }) => moments.length));
    answer.panels.forEach(({ collapse, bound, exploded, moments }, i) => {
      Object.assign(this.panels[i], { collapse, bound });
      this.panels[i].ended = exploded ? at + Math.max(0, moments.length - 1) : null;
    });
    for (let k = 0; k < length; k += 1) {
      const before = this.history.at(-1);
      this.history.push(answer.panels.map(({ moments }, i) => moments[Math.min(k, moments.length - 1)] ?? before?.[i] ?? null));
    }
    this.node.dataset.answered = String(number);
    if (!this.playing) this.rested();
    this.at = Math.min(this.target > at ? this.target : this.at, this.history.length - 1);
    const next = this.wanted;
    this.wanted = null;
    if (this.target > this.history.length - 1 && !this.exploded()) this.askOn(240);
    else if (next) this.ask(next.from === null ? next : { ...next, from: this.heldAt(next.at) });
    else if (this.stepping) [this.stepping, this.at] = [false, Math.min(this.at + 1, this.history.length - 1)];
    this.draw(true);
  }

  fail(problem) {
    this.asked = this.wanted = null;
    clearTimeout(this.silence);
    this.pause();
    this.say(problem);
  }

  heldAt(at) {
    const moments = this.history[Math.min(at, this.history.length - 1)];
    return moments && moments.every(Boolean) ? moments.map(({ points, class_vectors }) => ({ points, class_vectors })) : null;
  }

  // Request steps after the last known one.
  askOn(steps) {
    const at = this.history.length - 1;
    if (at >= MOST_STEPS || this.asked) return;
    this.ask({ from: this.heldAt(at), at, steps: Math.min(steps, MOST_STEPS - at) });
  }

  // Request the current step again, because a change has made the later steps invalid.
  askAgain(moves = [], steps = 0) {
    this.ask({ from: this.heldAt(this.at), at: this.at, steps, moves });
  }

  turned() {
    if (this.at > 0) this.pure = false;
    this.target = 0;
    if (this.at === 0) this.ask({ from: null, at: 0, steps: this.playing ? BATCH : 0 });
    else this.askAgain([], this.playing ? BATCH : 0);
    this.draw();
  }

  drag(panel, mark, x, y) {
    const depth = this.dragging?.depth ?? mark.near;
    const to = panel.picture.unproject(x, y, this.space, depth).map((value) => Number(value.toFixed(3)));
    if (this.playing) [this.resume, this.playing] = [true, false];
    this.dragging = { panel, text: mark.text, view: mark.view, to, depth };
    this.move(mark.text, mark.view, to);
  }

  move(text, view, to) {
    if (this.at === 0) {
      this.moves = [...this.moves.filter((move) => move.text !== text || move.view !== view), { text, view, to }].slice(-60);
      this.ask({ from: null, at: 0, steps: 0 });
    } else {
      this.pure = false;
      this.askAgain([{ text, view, to }]);
    }
    this.draw();
  }

  drop() {
    this.dragging = null;
    if (this.resume) this.play();
    this.resume = false;
    this.draw();
  }

  press(mark) {
    this.anchor = mark === null || mark.text === this.anchor ? null : mark.text;
    this.askAgain([], this.playing ? BATCH : 0);
  }

  // Arrow keys move the anchor; N and P choose another anchor.
  key(event, { picture }) {
    const ways = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
    const texts = this.labels.length;
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "n" || event.key === "p") {
      const next = this.anchor === null ? 0 : (this.anchor + (event.key === "n" ? 1 : texts - 1)) % texts;
      this.anchor = next;
      this.askAgain();
    } else if (ways[event.key] && this.anchor !== null) {
      const mark = picture.marks.find(({ text, view }) => text === this.anchor && view === 0);
      const reach = NUDGE * picture.scale;
      const to = picture.unproject(mark.x + ways[event.key][0] * reach, mark.y + ways[event.key][1] * reach, this.space, mark.near);
      this.move(this.anchor, 0, to.map((value) => Number(value.toFixed(3))));
    } else return;
    event.preventDefault();
  }

  exploded() {
    return this.panels.length > 0 && this.panels.every(({ ended }) => ended !== null);
  }

  togglePlay() {
    if (this.playing) this.pause();
    else this.play();
    this.draw();
  }

  play() {
    if (this.exploded() && this.at >= this.history.length - 1) return;
    this.target = 0;
    this.playing = true;
    this.clock = performance.now();
    this.played = this.at;
    this.tick();
  }

  pause() {
    this.playing = false;
    cancelAnimationFrame(this.ticking);
    this.rested();
  }

  tick() {
    this.ticking = requestAnimationFrame((now) => {
      if (!this.playing) return;
      const last = this.history.length - 1;
      this.played = Math.min(last, Math.max(this.played, this.at) + ((now - this.clock) / 1000) * STEPS_PER_S * this.speed);
      this.clock = now;
      const at = Math.max(0, Math.floor(this.played));
      const moved = at !== this.at;
      this.at = at;
      const ahead = BATCH * Math.max(1, this.speed);
      if (last - at < ahead && !this.exploded()) this.askOn(ahead);
      if (at >= last && (this.exploded() || last >= MOST_STEPS)) this.pause();
      if (moved || !this.playing) this.draw(moved);
      if (this.playing) this.tick();
    });
  }

  stepOnce() {
    this.pause();
    if (this.at < this.history.length - 1) {
      this.at += 1;
      this.draw(true);
    } else if (!this.exploded()) {
      this.stepping = true;
      this.askOn(BATCH);
    }
  }

  goTo(at) {
    this.pause();
    this.at = clamp(at, 0, this.history.length - 1);
    this.draw(true);
  }

  say(text) {
    write(this.message, text);
    this.message.hidden = !text;
  }

  measure() {
    for (const { picture } of this.panels) picture.measure();
    this.draw();
  }

  // Draw at the next animation frame. Args: moved: whether the points have moved since the last drawing.
  draw(moved = false) {
    if (moved) this.updates += 1;
    this.pending ??= requestAnimationFrame(() => {
      this.pending = null;
      this.drawNow();
    });
  }

  drawNow() {
    const moments = this.history[this.at];
    this.node.dataset.step = String(this.at);
    this.node.dataset.updates = String(this.updates);
    this.node.dataset.playing = String(this.playing);
    if (!moments) return;
    for (const panel of this.panels) {
      panel.moment = moments[panel.i];
      if (!panel.moment) continue;
      panel.picture.draw();
      writeNumbers(this, panel);
    }
    showPlaying(this.playButton, this.playing, this.playing ? _("Pause") : _("Play"));
    this.drawLegend();
    this.scrubber.max = this.history.length - 1;
    this.scrubber.value = this.at;
    write(this.count, _("Step {number}", { number: this.at.toLocaleString("en") }));
    this.sayEnd();
    this.drawChart();
  }

  drawLegend() {
    const lines = this.panels.map(({ collapse, bound }) => `${collapse === null} ${bound === null}`);
    const key = `${this.origin} ${this.anchor === null} ${hasClassVectors(this)} ${lines}`;
    if (this.explained === key) return;
    this.explained = key;
    this.legend.replaceChildren(...legendOf(this));
  }

  sayEnd() {
    const blown = this.panels.filter(({ ended }) => ended !== null && this.at >= ended);
    if (blown.length) this.say(this.explosionWords(blown[0]));
    else if (this.at >= MOST_STEPS) this.say(_("Step {number} is the last. Reset to continue.", { number: MOST_STEPS.toLocaleString("en") }));
    else if (!this.asked || this.history.length) this.say("");
  }

  explosionWords({ i, ended }) {
    if (this.panels.length === 1) return _("The gradient exploded after step {number}. Use normalised points (circle, sphere) or a lower learning rate.", { number: ended });
    return _("The gradient of {setting} exploded after step {number}. Use normalised points (circle, sphere) or a lower learning rate.", { number: ended, setting: "AB"[i] });
  }

  drawChart() {
    const now = performance.now();
    clearTimeout(this.charting);
    // Curves are slower to draw than points, so they wait while the visitor drags or turns a knob.
    const busy = this.asked && !this.playing;
    if (now - this.chartedAt < CHART_MS || busy || now - this.heardAt < CHART_MS) {
      this.charting = setTimeout(() => this.drawChart(), CHART_MS);
      return;
    }
    this.chartedAt = now;
    loadPlotly(this.data.plotly)
      .then((Plotly) => drawCurves(Plotly, this))
      .catch((error) => (this.chart.textContent = _("The curves could not be drawn: {reason}.", { reason: error.message })));
  }

  className(number) {
    return _("class {number}", { number: number + 1 });
  }

  close() {
    this.pause();
    this.sizes.disconnect();
    clearTimeout(this.silence);
    clearTimeout(this.charting);
    clearTimeout(this.resting);
    cancelAnimationFrame(this.pending);
    if (window.Plotly) window.Plotly.purge(this.chart);
  }
}
