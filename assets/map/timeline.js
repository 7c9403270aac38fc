// The frame of each panel at each step, with the positions and colours of its points.

const PLACE_STEPS = 65534; // the next number marks a point without a position
const NO_COLOUR = 255;

// All steps of all panels in order, and the playable ones, at which a panel has a new map.
function makeTimeline(panels) {
  const known = new Map();
  for (const panel of panels) {
    const present = new Set(panel.places.present);
    panel.steps.forEach((step, frame) => known.set(step, known.get(step) || present.has(frame)));
  }
  const steps = [...known.keys()].sort((a, b) => a - b);
  // Latest frame of a panel up to each step that has a map; -1 if there is none.
  for (const panel of panels) panel.frameAt = steps.map((step) => panel.places.present.findLast((frame) => panel.steps[frame] <= step) ?? -1);
  return { steps, playable: steps.flatMap((step, index) => (known.get(step) ? [index] : [])) };
}

// Position in `playable` of the index nearest to `index`. On a tie, `forwards` chooses the later one.
function nearestPlayable(playable, index, forwards) {
  let best = 0;
  playable.forEach((candidate, at) => {
    const gain = Math.abs(playable[best] - index) - Math.abs(candidate - index);
    if (gain > 0 || (gain === 0 && forwards)) best = at;
  });
  return best;
}

// Frames of a panel around position `at` of the timeline: { from, to, share }, with the fraction of the way to `to`.
function momentOf(panel, timeline, at) {
  const [low, high] = [Math.floor(at), Math.min(Math.ceil(at), timeline.playable.length - 1)];
  const [from, to] = [panel.frameAt[timeline.playable[low]], panel.frameAt[timeline.playable[high]]];
  return { from, to, share: from < 0 || from === to ? 0 : at - low };
}

// Call `take(x, y, z)` with the position of a point in map units, if it has one.
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

// Colour of every code in a colour bundle.
function paletteOf(colours) {
  const palette = new Array(256).fill(colours.none);
  if (colours.kind === "categories") colours.colours.forEach((colour, code) => (palette[code] = colour));
  else {
    const { scale } = colours;
    for (let code = 0; code < NO_COLOUR; code += 1) {
      // A few colours suffice, so that sprites can be reused.
      const at = (Math.round(code / 8) / Math.round((NO_COLOUR - 1) / 8)) * (scale.length - 1);
      const low = Math.min(Math.floor(at), scale.length - 2);
      palette[code] = mixed(scale[low], scale[low + 1], at - low);
    }
  }
  return palette;
}

// Describe the colour of a point.
function colourWords(colours, code) {
  if (code === NO_COLOUR) return _("{label}: none", { label: colours.label });
  if (colours.kind === "categories") return _("{what}: {value}", { what: colours.label, value: colours.names[code] });
  const value = colours.low + ((colours.high - colours.low) * code) / (NO_COLOUR - 1);
  return _("{label}: about {value}", { label: colours.label, value: +value.toPrecision(3) });
}
