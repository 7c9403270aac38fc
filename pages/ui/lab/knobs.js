// Controls of one setting: the loss, λ, τ, the learning rate, and one knob of the loss, such as α.

// Ticks of a slider, equally spaced in the value or, for `log`, in its logarithm.
const TICKS = 200;
const KNOBS = [
  { name: "weight", label: N_("λ (CE gets 1 − λ)"), low: 0, high: 1, log: false, help: N_("(1 − λ)·CE + λ·loss") },
  { name: "temperature", label: N_("Temperature τ"), low: 0.02, high: 2, log: true, help: N_("Divides every similarity before the softmax.") },
  // The loss defines its name and bounds.
  { name: "extra", label: "", low: 0, high: 1, log: false, help: "" },
  { name: "learning_rate", label: N_("Learning rate"), low: 0.01, high: 50, log: true, help: N_("Step size along the negative gradient.") },
];

// Round to three digits. With two, neighbouring ticks would often have the same value.
const inFewDigits = (value) => Number(value.toPrecision(3));

function valueAt(knob, tick) {
  const share = tick / TICKS;
  return inFewDigits(knob.log ? knob.low * (knob.high / knob.low) ** share : knob.low + (knob.high - knob.low) * share);
}

function tickOf(knob, value) {
  const share = knob.log ? Math.log(value / knob.low) / Math.log(knob.high / knob.low) : (value - knob.low) / (knob.high - knob.low);
  return Math.round(clamp(share, 0, 1) * TICKS);
}

class Knobs {
  constructor(name, losses, changed) {
    Object.assign(this, { name, losses, changed, setting: {} });
    this.choice = make("select", { className: "lab-choice", "aria-label": `${_("Loss")}${name}` });
    this.choice.addEventListener("change", () => this.take({ ...this.setting, loss: this.choice.value, extra: null }));
    this.rows = KNOBS.map((knob) => {
      const slider = make("input", { type: "range", min: 0, max: TICKS, step: 1, "aria-label": `${_(knob.label)}${name}`, title: _(knob.help) });
      const shown = make("span", { className: "lab-value", "aria-hidden": "true" });
      const label = make("span", { text: _(knob.label) });
      const row = make("label", { className: "lab-knob" }, label, shown, slider);
      slider.addEventListener("input", () => this.take({ ...this.setting, [knob.name]: valueAt(this.boundsOf(knob), slider.valueAsNumber) }));
      return { knob, slider, label, shown, row };
    });
    this.node = make("div", { className: "lab-knobs" }, make("label", { className: "lab-knob lab-loss" }, make("span", { text: _("Loss") }), this.choice), ...this.rows.map(({ row }) => row));
  }

  take(setting) {
    this.setting = setting;
    this.show();
    this.changed();
  }

  boundsOf(knob) {
    const { extra } = this.losses[this.setting.loss];
    if (knob.name !== "extra" || !extra) return knob;
    const [low, high] = extra.range;
    return { ...knob, low, high };
  }

  // Show a setting, and the losses that its space offers.
  set(setting, offered) {
    this.setting = { ...setting };
    this.choice.replaceChildren(...offered.map((name) => make("option", { value: name, text: this.losses[name].label })));
    this.show();
  }

  show() {
    const known = this.losses[this.setting.loss];
    this.choice.value = this.setting.loss;
    this.choice.title = known.about;
    const has = { weight: known.on_vectors, temperature: known.has_temperature, extra: known.extra !== null, learning_rate: true };
    for (const { knob, slider, label, shown, row } of this.rows) {
      row.hidden = !has[knob.name];
      if (row.hidden) continue;
      const value = this.setting[knob.name] ?? known.extra.default;
      if (knob.name === "extra") {
        write(label, known.extra.label);
        slider.title = known.extra.help;
        slider.setAttribute("aria-label", `${known.extra.label}${this.name}`);
      }
      slider.value = tickOf(this.boundsOf(knob), value);
      slider.setAttribute("aria-valuetext", shortNumber(value));
      write(shown, shortNumber(value));
    }
  }
}
