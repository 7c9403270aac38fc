export default function ({ data: sent, parentElement }) {
  const node = parentElement.querySelector(".softmax-bars");
  if (!node || !sent?.[0]) return;
  node.setAttribute("aria-label", sent[0].label);
  drawBars(node, sent[0].bars);
}
