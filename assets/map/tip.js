// Tooltip of a point.

const ARROWS_IN_TIP = 4;

function tipLines(panel, row) {
  const { examples, colours, places, moment } = panel;
  const id = examples.ids[row];
  const lines = [["b", examples.classes[examples.labels[row]] ?? ""], ["span", examples.texts[row]]];
  if (!coloursAreClasses(colours, panel)) {
    lines.push(["i", colourWords(colours, codeOf(colours, row, moment.from, places.points))]);
  }
  if (examples.splits && examples.open[row]) lines.push(["i", examples.open[row] === 2 ? _("test example") : _("training example")]);
  const arrows = panel.arrows.filter(({ start, end, text }) => text && (start === id || end === id));
  lines.push(...arrows.slice(0, ARROWS_IN_TIP).map(({ text }) => ["i", text]));
  const count = arrows.length - ARROWS_IN_TIP;
  if (count > 0) lines.push(["i", byCount(count, _("and 1 more arrow"), _("and {count} more arrows", { count }))]);
  return lines;
}

function showTip(panel, lines, x, y) {
  const { tip } = panel;
  tip.replaceChildren(...lines.map(([tag, text]) => make(tag, { text })));
  tip.hidden = false;
  const [w, h] = [tip.offsetWidth, tip.offsetHeight];
  const left = x + 16 + w <= panel.width ? x + 16 : Math.max(0, Math.min(x - 16 - w, panel.width - w));
  const top = clamp(y + 14, 0, Math.max(0, panel.height - h));
  tip.style.transform = `translate(${Math.max(0, left)}px, ${top}px)`;
}

const hideTip = (panel) => (panel.tip.hidden = true);
