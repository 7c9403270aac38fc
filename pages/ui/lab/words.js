// The text below a drawing: its numbers and the forces on the anchor.

const MOST_PULLS = 5;

function writeNumbers(lab, panel) {
  const { moment, collapse } = panel;
  const shown = [
    [_("Loss"), shortNumber(moment.loss), _("nats")],
    [mixedPart(panel), shortNumber(contrastOf(panel, moment)), _("the contrastive part, with its collapse line and lower bound")],
    [_("Collapse line"), shortNumber(collapse), _("value of the loss, or of its contrastive part, when all points coincide")],
    [_("Gradient"), shortNumber(moment.norm), _("norm over all points; the length of an arrow is proportional to the square root of the gradient norm at its point")],
    [_("Alignment"), shortNumber(moment.alignment), _("mean squared distance between points of a class; lower is tighter")],
    [_("Uniformity"), shortNumber(moment.uniformity), _("lower is more spread out")],
  ].filter(([, value]) => value !== "–");
  const key = JSON.stringify(shown);
  if (panel.written === key && panel.pullsOf === moment) return;
  if (panel.written !== key) {
    panel.written = key;
    panel.numbers.replaceChildren(
      ...shown.map(([name, value, about]) => make("span", { title: about }, make("small", { text: name }), make("b", { text: value }))),
    );
  }
  panel.pullsOf = moment;
  writePulls(lab, panel);
}

// In a mix with cross-entropy, the lines show the contrastive part. Its symbol and its values.
const isMixed = ({ knobs }) => knobs.setting.weight < 1 && knobs.losses[knobs.setting.loss].on_vectors;
const mixedPart = (panel) => panel.knobs.losses[panel.knobs.setting.loss].symbol;
const contrastOf = (panel, moment) => (isMixed(panel) && moment ? Object.values(moment.parts)[0] : null);

function writePulls(lab, { moment, pulls, bars, shares, picture, knobs }) {
  const about = pullWords(lab, moment, knobs.setting);
  write(pulls, about);
  drawShares(bars, shares, lab.anchor === null ? [] : moment.pulls.filter(([isClass]) => !isClass && knobs.losses[knobs.setting.loss].has_temperature), knobs.setting.temperature);
  const shown = _("{count} points, step {number}. {about}", { count: lab.labels.length, number: lab.at, about });
  picture.canvas.setAttribute("aria-label", shown);
}

// Draw the softmax over the anchor's similarities, most similar first, and describe it.
function drawShares(bars, shares, pulls, temperature) {
  bars.hidden = shares.hidden = !pulls.length;
  const sorted = pulls.toSorted((one, other) => other[5] - one[5]);
  drawBars(
    bars,
    sorted.map(([, number, , , related, share]) => {
      const title = _("point {number}: {share}%", { number: number + 1, share: (100 * share).toFixed(1) });
      return { share, positive: Boolean(related), title };
    }),
  );
  const largest = sorted.length ? (100 * sorted[0][5]).toFixed(1) : 0;
  const about = _(
    "Softmax over the ringed point's {count} similarities at temperature {temperature}; the largest probability is {share}%. Filled bars are positives.",
    { count: sorted.length, temperature, share: largest },
  );
  write(shares, about);
}

// The strongest pulls (sign -1) or pushes (sign 1) on the anchor.
const strongestPulls = ({ pulls }, sign) =>
  pulls
    .filter((pull) => sign * pull[3] > 0.005)
    .toSorted((one, other) => sign * (other[3] - one[3]))
    .slice(0, MOST_PULLS);

// Describe them in words.
function pullWords(lab, moment, setting) {
  if (lab.anchor === null) return _("Drag a point, or click one to see the forces on it.");
  const name = _("Point {number} ({name})", { number: lab.anchor + 1, name: lab.className(lab.labels[lab.anchor]) });
  if (!moment.pulls.length) return _("{name}: its two predictions attract each other, and its class pulls it. No other point acts on it.", { name });
  if (!moment.pulls.some(([, , , , related]) => related))
    return _("{name}: it has no positive, so its own loss is 0. It is pushed only as a negative of other anchors.", { name });
  const called = ([isClass, number, view]) => {
    if (isClass) return lab.className(number);
    return number === lab.anchor ? _("its other view") : _("point {number}", { number: `${number + 1}${view ? "′" : ""}` });
  };
  const list = (sign) =>
    strongestPulls(moment, sign)
      .map((pull) => _("{name} ({more})", { name: called(pull), more: shortNumber(Math.abs(pull[3])) }));
  const between = _("{first}, {next}", { first: "", next: "" });
  const [pulling, pushing] = [list(-1).join(between) || _("nothing"), list(1).join(between)];
  if (!pushing) return _("{name}: the strongest pulls (gradient coefficients) come from {pulling}; no point pushes it away.", { name, pulling });
  const said = _("{name}: the strongest pulls (gradient coefficients) come from {pulling}. The strongest pushes come from {pushing}.", { name, pulling, pushing });
  const negatives = moment.pulls.filter(([isClass, , , coefficient, related]) => !isClass && !related && coefficient > 0);
  if (!negatives.length) return said;
  const count = _("Effective number of negatives (as many as would push equally): {count}.", { count: shortNumber(effective(negatives)) });
  return `${said} ${count}`;
}

// Effective number of negatives: exp of the entropy of their shares of the push.
function effective(pulls) {
  const total = pulls.reduce((sum, pull) => sum + pull[3], 0);
  if (!(total > 0)) return 0;
  return Math.exp(-pulls.reduce((sum, pull) => sum + (pull[3] / total) * Math.log(pull[3] / total), 0));
}

// Draw the curves up to the current step. Python assigns a panel and a quantity to each trace.
function drawCurves(Plotly, lab) {
  const { figure } = lab.data;
  const steps = thinnedSteps(lab.at);
  const data = figure.data.map((trace) => {
    const { panel, field } = trace.meta;
    const owner = lab.panels[panel];
    const momentAt = (at) => lab.history[at]?.[panel];
    const valueOf = (at) => (field in LINES ? owner[field] : field === "contrast" ? contrastOf(owner, momentAt(at)) : momentAt(at)?.[field]);
    return { ...trace, x: steps, y: steps.map((at) => valueOf(at) ?? null), visible: true };
  });
  const layout = themed(figure, lab.chart);
  layout.xaxis = { ...layout.xaxis, range: [0, Math.max(FEWEST_SHOWN, lab.at)] };
  // Space the ticks by powers of ten, so that they fit.
  const norms = data.filter(({ meta }) => meta.field === "norm").flatMap(({ y }) => y).filter((value) => value > 0);
  const decades = norms.length ? Math.log10(Math.max(...norms) / Math.min(...norms)) : 1;
  layout.yaxis2 = { ...layout.yaxis2, dtick: Math.max(1, Math.ceil(decades / 3)) };
  const names = lab.panels.map(({ knobs }) => lab.data.losses[knobs.setting.loss].label);
  const [first, second] = names;
  const about = second
    ? _("Loss, gradient norm, alignment and uniformity of {first} and {second} over {count} steps.", { count: lab.at, first, second })
    : _("Loss, gradient norm, alignment and uniformity of {first} over {count} steps.", { count: lab.at, first });
  lab.chart.setAttribute("aria-label", about);
  lab.chart.style.height = `${figure.layout.height}px`;
  return Plotly.react(lab.chart, data, layout, { ...localOnly(), responsive: true, displayModeBar: false });
}

const LINES = { collapse: true, bound: true };
const MOST_CURVE_POINTS = 300;
const FEWEST_SHOWN = 20;

function thinnedSteps(last) {
  const every = Math.max(1, Math.ceil(last / MOST_CURVE_POINTS));
  const steps = [];
  for (let at = 0; at < last; at += every) steps.push(at);
  return [...steps, last];
}

const hasClassVectors = ({ space, panels }) => space !== "simplex" && panels.some(({ moment }) => moment?.class_vectors);

// Legend of colours, marks and lines.
function legendOf(lab) {
  const mark = (label) => {
    const path = svgNode("path", { d: symbolPath(lab.data.symbols[label], 6), fill: lab.data.colours[label] });
    const drawing = svgNode("svg", { viewBox: "-9 -9 18 18", width: 14, height: 14, "aria-hidden": "true" }, path);
    return make("span", {}, drawing, lab.className(label));
  };
  const stroke = (colour, dash, text) => {
    const path = svgNode("path", { d: "M0 3H22", stroke: colour, "stroke-width": 2.5, "stroke-dasharray": dash, fill: "none" });
    return make("span", {}, svgNode("svg", { viewBox: "0 0 22 6", width: 22, height: 6, "aria-hidden": "true" }, path), text);
  };
  const acting = lab.anchor === null ? [] : [stroke(PULL_COLOUR, "", _("pulls the ringed point")), stroke(PUSH_COLOUR, "4 3", _("pushes the ringed point"))];
  const rays = hasClassVectors(lab) ? [stroke(lab.data.colours[0], "", _("from the origin: class vectors"))] : [];
  const traceOf = (field, panel) => lab.data.figure.data.find(({ meta }) => meta.field === field && meta.panel === panel);
  const settings = lab.panels.length < 2 ? [] : lab.panels.map((_panel, at) => stroke(traceOf("loss", at).line.color, "", _("curves of {name}", { name: "AB"[at] })));
  const lines = [["collapse", "6 4", _("collapse line of the loss")], ["bound", "1.5 3", _("lower bound of the loss")]]
    .filter(([field]) => lab.panels.some((panel) => panel[field] !== null && panel[field] !== undefined))
    .map(([field, dash, text]) => stroke(traceOf(field, 0).line.color, dash, text));
  return [...lab.data.colours.map((_, label) => mark(label)), ...rays, ...acting, ...settings, ...lines];
}
