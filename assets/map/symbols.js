// Marks as SVG paths, shared by the canvas and the exported SVG.

const polygon = (points) => `M${points.map(([x, y]) => `${+x.toFixed(2)} ${+y.toFixed(2)}`).join("L")}Z`;

const plus = (r) => {
  const [a, b] = [r, r * 0.36];
  return [[-b, -a], [b, -a], [b, -b], [a, -b], [a, b], [b, b], [b, a], [-b, a], [-b, b], [-a, b], [-a, -b], [-b, -b]];
};

const turned = (points) => points.map(([x, y]) => [(x - y) * Math.SQRT1_2, (x + y) * Math.SQRT1_2]);

const star = (r) =>
  Array.from({ length: 10 }, (_, i) => {
    const [angle, reach] = [(i * Math.PI) / 5 - Math.PI / 2, i % 2 ? r * 0.45 : r];
    return [Math.cos(angle) * reach, Math.sin(angle) * reach];
  });

// All marks look about as large as a circle of radius r.
const SYMBOLS = {
  circle: (r) => `M${-r} 0A${r} ${r} 0 1 1 ${r} 0A${r} ${r} 0 1 1 ${-r} 0Z`,
  diamond: (r) => polygon([[0, -1.3 * r], [1.15 * r, 0], [0, 1.3 * r], [-1.15 * r, 0]]),
  square: (r) => polygon([[-0.9 * r, -0.9 * r], [0.9 * r, -0.9 * r], [0.9 * r, 0.9 * r], [-0.9 * r, 0.9 * r]]),
  "triangle-up": (r) => polygon([[0, -1.25 * r], [1.2 * r, 0.9 * r], [-1.2 * r, 0.9 * r]]),
  cross: (r) => polygon(plus(1.25 * r)),
  x: (r) => polygon(turned(plus(1.3 * r))),
  "triangle-down": (r) => polygon([[0, 1.25 * r], [1.2 * r, -0.9 * r], [-1.2 * r, -0.9 * r]]),
  star: (r) => polygon(star(1.6 * r)),
};

const symbolPath = (name, r) => (SYMBOLS[name] ?? SYMBOLS.circle)(r);

const SVG_SPACE = "http://www.w3.org/2000/svg";

function svgNode(name, attributes = {}, ...children) {
  const node = document.createElementNS(SVG_SPACE, name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  node.append(...children);
  return node;
}
