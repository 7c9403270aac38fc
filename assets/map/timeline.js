// Which frame of which panel is shown at which step, and the places and colours there.

const PLACE_STEPS = 65534; // the number after it says that a point has no place
const NO_COLOUR = 255;

// The latest frame of a panel that has a map and is not after a step; -1 where there is none.
function latestFrame(panel, step) {
  let found = -1;
  for (const frame of panel.places.present) if (panel.steps[frame] <= step) found = frame;
  return found;
}

// All steps of all panels in order, and which of them can be played: those at which some panel has a map of its own.
function makeTimeline(panels) {
  const known = new Map();
  for (const panel of panels) {
    const present = new Set(panel.places.present);
    panel.steps.forEach((step, frame) => known.set(step, known.get(step) || present.has(frame)));
  }
  const steps = [...known.keys()].sort((a, b) => a - b);
  for (const panel of panels) panel.frameAt = steps.map((step) => latestFrame(panel, step));
  return { steps, playable: steps.flatMap((step, index) => (known.get(step) ? [index] : [])) };
}

// Where in `playable` the index nearest to `index` stands; of two as near, the one ahead when one comes from before.
function nearestPlayable(playable, index, forwards) {
  let best = 0;
  playable.forEach((candidate, at) => {
    const gain = Math.abs(playable[best] - index) - Math.abs(candidate - index);
    if (gain > 0 || (gain === 0 && forwards)) best = at;
  });
  return best;
}

// The frames of a panel between which position `at` of the timeline lies: { from, to, share of the way }.
function momentOf(panel, timeline, at) {
  const [low, high] = [Math.floor(at), Math.min(Math.ceil(at), timeline.playable.length - 1)];
  const [from, to] = [panel.frameAt[timeline.playable[low]], panel.frameAt[timeline.playable[high]]];
  return { from, to, share: from < 0 || from === to ? 0 : at - low };
}

// Calls `take(x, y, z)` with the place of one point in the map's units; not where it has none.
function placeOf(places, row, { from, to, share }, take) {
  const { axes, points, half, middle, slots } = places;
  const [p, q] = [(slots[from] * points + row) * axes, (slots[to] * points + row) * axes];
  if (places.places[p] > PLACE_STEPS) return;
  const moves = share > 0 && places.places[q] <= PLACE_STEPS;
  const unit = (2 * half) / PLACE_STEPS;
  const along = (axis) => {
    const start = places.places[p + axis];
    const step = moves ? start + (places.places[q + axis] - start) * share : start;
    return middle[axis] - half + unit * step;
  };
  take(along(0), along(1), axes === 3 ? along(2) : 0);
}

function codeOf(colours, row, frame, points) {
  return colours.codes[colours.frames ? frame * points + row : row];
}

const mixed = (a, b, share) =>
  `#${[1, 3, 5]
    .map((i) => {
      const [p, q] = [parseInt(a.slice(i, i + 2), 16), parseInt(b.slice(i, i + 2), 16)];
      return Math.round(p + (q - p) * share)
        .toString(16)
        .padStart(2, "0");
    })
    .join("")}`;

// The colour of every code that a bundle of colours can hold.
function paletteOf(colours) {
  const palette = new Array(256).fill(colours.none);
  if (colours.kind === "categories") colours.colours.forEach((colour, code) => (palette[code] = colour));
  else {
    const { scale } = colours;
    for (let code = 0; code < NO_COLOUR; code += 1) {
      // A few colours are enough for the eye, and each is drawn once and copied.
      const at = (Math.round(code / 8) / Math.round((NO_COLOUR - 1) / 8)) * (scale.length - 1);
      const low = Math.min(Math.floor(at), scale.length - 2);
      palette[code] = mixed(scale[low], scale[low + 1], at - low);
    }
  }
  return palette;
}

// What the colour of a point says, in words.
function colourWords(colours, code) {
  if (code === NO_COLOUR) return _("{label}: none", { label: colours.label });
  if (colours.kind === "categories") return _("{what}: {value}", { what: colours.label, value: colours.names[code] });
  const value = colours.low + ((colours.high - colours.low) * code) / (NO_COLOUR - 1);
  return _("{label}: about {value}", { label: colours.label, value: +value.toPrecision(3) });
}
