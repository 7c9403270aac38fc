// The scrubber: play, step, drag, speed.

const SPEEDS = [0.5, 1, 2, 4];
const WHOLE_PLAY_MS = 20_000; // approximate playback time of a long run at speed 1
const FRAME_MS = [90, 600]; // minimum and maximum time per frame

const frameMs = (frames) => clamp(WHOLE_PLAY_MS / Math.max(1, frames - 1), ...FRAME_MS);

function makePlayer(view) {
  const play = labelledButton(icon("play"), _("Play"), () => view.togglePlay(), "map-play");
  const previous = labelledButton(icon("previous"), _("Previous frame"), () => view.goTo(Math.ceil(view.at) - 1));
  const next = labelledButton(icon("next"), _("Next frame"), () => view.goTo(Math.floor(view.at) + 1));
  const slider = make("input", { type: "range", min: "0", step: "1", "aria-label": _("Step"), className: "map-slider" });
  const strip = make("div", { className: "map-strip", "aria-hidden": "true" });
  const label = make("div", { className: "map-moment" });
  const speed = make("select", { "aria-label": _("Speed"), className: "map-speed", title: _("Speed") });
  speed.append(...SPEEDS.map((value) => make("option", { value: String(value), text: `${value}×` })));
  speed.value = "1";
  const box = make("input", { type: "checkbox" });
  const trails = make("label", { className: "map-switch", title: _("Show the paths of the selected points") }, box, _("Trails"));
  const track = make("div", { className: "map-track" }, slider, strip);
  const node = make("div", { className: "map-player" }, previous, play, next, track, label, speed, trails);

  slider.addEventListener("input", () => {
    view.scrubbing = true;
    const index = Number(slider.value);
    const { playable } = view.timeline;
    view.goTo(nearestPlayable(playable, index, index >= playable[Math.round(view.at)]));
  });
  slider.addEventListener("change", () => {
    view.scrubbing = false;
    view.draw();
  });
  // Arrow keys move between frames and skip those without a map.
  slider.addEventListener("keydown", (event) => {
    const by = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1, PageDown: -10, PageUp: 10 }[event.key];
    if (!by) return;
    event.preventDefault();
    view.goTo(Math.round(view.at) + by);
  });
  speed.addEventListener("change", () => (view.speed = Number(speed.value)));
  box.addEventListener("change", () => {
    view.trails = box.checked;
    view.draw();
  });
  return { node, play, slider, strip, label, trails, box, previous, next };
}

// Draw the strip under the slider: steps with a map in the accent colour, others in grey.
function drawStrip(view) {
  const { steps, playable } = view.timeline;
  const known = new Set(playable);
  view.player.strip.hidden = playable.length === steps.length;
  if (playable.length === steps.length) return;
  const stops = steps.flatMap((_, index) => {
    const colour = known.has(index) ? "var(--st-primary-color)" : "var(--st-border-color)";
    return [`${colour} ${(100 * index) / steps.length}%`, `${colour} ${(100 * (index + 1)) / steps.length}%`];
  });
  view.player.strip.style.background = `linear-gradient(to right, ${stops.join(", ")})`;
}

const thousands = (value) => value.toLocaleString("en-GB");
// Name of a frame by its unit, in lower case and capitalised.
const UNITS = {
  step: [N_("step {number}"), N_("Step {number}")],
  layer: [N_("layer {number}"), N_("Layer {number}")],
};

function panelWords(panel, view) {
  const { from } = momentOf(panel, view.timeline, Math.floor(view.at));
  if (from < 0) return "";
  return [_(UNITS[view.data.unit][0], { number: thousands(panel.steps[from]) }), panel.notes[from]].filter(Boolean).join(" · ");
}

function momentWords(view) {
  const step = _(UNITS[view.data.unit][1], { number: thousands(view.step()) });
  const note = view.panels.length === 1 ? view.panels[0].notes[momentOf(view.panels[0], view.timeline, Math.floor(view.at)).from] : "";
  return note ? `${step} · ${note}` : step;
}

function updatePlayer(view) {
  const { play, slider, label, previous, next } = view.player;
  const last = view.timeline.playable.length - 1;
  const index = view.timeline.playable[Math.round(view.at)];
  slider.max = String(view.timeline.steps.length - 1);
  if (Number(slider.value) !== index) slider.value = String(index);
  const words = momentWords(view);
  if (label.textContent !== words) {
    label.textContent = words;
    label.title = words;
    slider.setAttribute("aria-valuetext", words);
  }
  // Not `disabled`, which would remove the keyboard focus from a button that was just pressed.
  previous.setAttribute("aria-disabled", String(view.at <= 0));
  next.setAttribute("aria-disabled", String(view.at >= last || view.gliding !== null));
  showPlaying(play, view.playing, view.playing ? _("Pause") : _("Play"));
}
