// Draws a scene on a canvas. Each appearance of a mark is drawn once and then copied.

const sprites = new Map(); // appearance of a mark → { image, reach }
const MOST_SPRITES = 4000;
const SMOOTH_POINTS = 4000;

const OPEN_WIDTH = 1.5;

function spriteOf(mark, ratio) {
  const key = `${mark.symbol}|${mark.r}|${mark.colour}|${mark.open}|${mark.edge}|${ratio}`;
  let sprite = sprites.get(key);
  if (sprite) return sprite;
  if (sprites.size > MOST_SPRITES) sprites.clear();
  const pixels = Math.ceil(2 * (mark.r * 1.7 + 3) * ratio);
  const canvas = new OffscreenCanvas(pixels, pixels);
  const pen = canvas.getContext("2d");
  pen.setTransform(ratio, 0, 0, ratio, pixels / 2, pixels / 2);
  drawMark(pen, mark);
  sprite = { image: canvas.transferToImageBitmap(), reach: pixels / ratio / 2 };
  sprites.set(key, sprite);
  return sprite;
}

function drawMark(pen, mark) {
  const path = new Path2D(symbolPath(mark.symbol, mark.open ? mark.r - OPEN_WIDTH / 3 : mark.r));
  pen.lineJoin = "round";
  pen.lineWidth = mark.open ? OPEN_WIDTH : 0.8;
  pen.fillStyle = mark.open ? mark.edge : mark.colour;
  pen.strokeStyle = mark.open ? mark.colour : mark.edge;
  pen.fill(path);
  pen.stroke(path);
}

const PAINTERS = {
  mark(pen, mark, { ratio, width, height, crisp }) {
    const { image, reach } = spriteOf(mark, ratio);
    if (mark.x < -reach || mark.y < -reach || mark.x > width + reach || mark.y > height + reach) return;
    const place = (value) => (crisp ? Math.round(value * ratio) / ratio : value);
    pen.globalAlpha = mark.alpha;
    pen.drawImage(image, place(mark.x - reach), place(mark.y - reach), 2 * reach, 2 * reach);
  },
  ring(pen, { x, y, r, colour, width }) {
    pen.globalAlpha = 1;
    pen.setLineDash([]);
    pen.strokeStyle = colour;
    pen.lineWidth = width;
    pen.beginPath();
    pen.arc(x, y, r, 0, 2 * Math.PI);
    pen.stroke();
  },
  line(pen, { points, colour, width, alpha, dash, fill }) {
    pen.globalAlpha = alpha;
    pen.setLineDash(dash);
    pen.strokeStyle = colour;
    pen.lineWidth = width;
    pen.lineJoin = "round";
    pen.beginPath();
    points.forEach(([x, y], i) => (i ? pen.lineTo(x, y) : pen.moveTo(x, y)));
    if (fill) {
      pen.closePath();
      pen.fillStyle = fill;
      pen.fill();
    }
    pen.stroke();
  },
  text(pen, { x, y, text, colour, size, halo, anchor }, { font }) {
    pen.globalAlpha = 1;
    pen.setLineDash([]);
    pen.textAlign = anchor;
    pen.font = `600 ${size}px ${font}`;
    pen.lineWidth = 3;
    pen.lineJoin = "round";
    pen.strokeStyle = halo;
    pen.strokeText(text, x, y);
    pen.fillStyle = colour;
    pen.fillText(text, x, y);
  },
};

const pixelRatio = () => Math.min(window.devicePixelRatio || 1, 2);

function paint(panel, view) {
  const { canvas, width, height } = panel;
  const ratio = pixelRatio();
  const [w, h] = [Math.round(width * ratio), Math.round(height * ratio)];
  if (canvas.width !== w || canvas.height !== h) [canvas.width, canvas.height] = [w, h];
  const pen = canvas.getContext("2d");
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  pen.clearRect(0, 0, width, height);
  // With many marks, align copies to whole pixels, which is faster than interpolating.
  const crisp = view.panels.reduce((sum, one) => sum + one.places.points, 0) > SMOOTH_POINTS;
  pen.imageSmoothingEnabled = !crisp;
  const look = { ratio, width, height, crisp, font: view.theme.font };
  for (const item of sceneOf(panel, view)) PAINTERS[item.kind](pen, item, look);
  if (panel.drawn) drawRegion(pen, panel.drawn, view.theme);
}

// Draw rings around the selected points, without redrawing the map.
function paintRings(panel, view) {
  if (view.chosen.size > MOST_RINGS) return;
  const pen = panel.canvas.getContext("2d");
  const ratio = pixelRatio();
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  for (const id of view.chosen) if (screenOf(panel, id)) PAINTERS.ring(pen, ringOf(emphasisedMark(panel, view, panel.rowOf.get(id)), view));
}

// Draw the unfinished box or lasso.
function drawRegion(pen, points, theme) {
  PAINTERS.line(pen, { points: [...points, points[0]], colour: theme.accent, width: 1.5, alpha: 1, dash: [4, 3] });
  pen.globalAlpha = 0.1;
  pen.fillStyle = theme.accent;
  pen.fill();
}
