// Brings what a part of a lesson points at into view, once, as soon as the page has drawn it.

const WAIT_MS = 10_000;
const LOOK_MS = 100;
const SETTLED_MS = 900;
const HEADER_PX = 60;

export default function ({ data: sent, parentElement }) {
  const { target, part } = sent?.[0] ?? {};
  if (!target || parentElement.pointedAt === part) return;
  parentElement.pointedAt = part;
  const behavior = matchMedia("(prefers-reduced-motion: reduce)").matches ? "auto" : "smooth";
  const until = performance.now() + WAIT_MS;
  let settled;
  const look = setInterval(() => {
    const found = document.querySelector(target);
    if (!found && performance.now() < until) return;
    clearInterval(look);
    // Once more when what is above it has its size.
    for (const wait of found ? [0, SETTLED_MS] : []) settled = setTimeout(() => show(found, behavior), wait);
  }, LOOK_MS);
  return () => {
    clearInterval(look);
    clearTimeout(settled);
  };
}

// Scrolls no more than it takes: what is in sight stays where it is.
function show(node, behavior) {
  const { top, bottom, height } = node.getBoundingClientRect();
  if (top >= HEADER_PX && bottom <= innerHeight) return;
  node.style.scrollMarginTop = `${HEADER_PX}px`;
  node.scrollIntoView({ block: height > innerHeight - HEADER_PX ? "start" : "center", behavior });
}
