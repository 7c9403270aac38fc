// Scrolls an element into view once for each reason, when the page has drawn it, and keeps it there while the page
// grows, until the visitor scrolls, presses or types.

const WAIT_MS = 10_000;
const LOOK_MS = 100;
const HEADER_PX = 60;
const HANDS = ["wheel", "touchmove", "pointerdown", "keydown"];

export default function ({ data: sent, parentElement }) {
  const { target, reason } = sent?.[0] ?? {};
  if (!target || parentElement.shownFor === reason) return;
  parentElement.shownFor = reason;
  const behavior = matchMedia("(prefers-reduced-motion: reduce)").matches ? "auto" : "smooth";
  let found;
  const sizes = new ResizeObserver(() => show(found, behavior));
  const look = setInterval(() => {
    found = document.querySelector(target);
    if (!found) return;
    clearInterval(look);
    for (const node of [found, document.querySelector("[data-testid=stMainBlockContainer]")]) sizes.observe(node);
  }, LOOK_MS);
  const stop = () => {
    clearInterval(look);
    clearTimeout(end);
    sizes.disconnect();
    for (const hand of HANDS) removeEventListener(hand, stop, true);
  };
  const end = setTimeout(stop, WAIT_MS);
  for (const hand of HANDS) addEventListener(hand, stop, { capture: true, passive: true });
  return stop;
}

// Scroll only if the node is not fully visible.
function show(node, behavior) {
  const { top, bottom, height } = node.getBoundingClientRect();
  if (top >= HEADER_PX && bottom <= innerHeight) return;
  node.style.scrollMarginTop = `${HEADER_PX}px`;
  node.scrollIntoView({ block: height > innerHeight - HEADER_PX ? "start" : "center", behavior });
}
