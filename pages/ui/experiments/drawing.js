// An SVG drawn by the server, in the colours of the page.

export default function ({ data, parentElement }) {
  const node = parentElement.querySelector(".drawing");
  if (!node || !data) return;
  node.setAttribute("aria-label", data.label);
  if (node.drawn === data.svg) return;
  node.replaceChildren(document.importNode(new DOMParser().parseFromString(data.svg, "image/svg+xml").documentElement, true));
  node.drawn = data.svg;
}
