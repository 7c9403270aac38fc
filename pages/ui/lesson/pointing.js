// Brings what a part of a lesson points at into view, once, as soon as the page has drawn it.

const WAIT_MS = 10_000;
const LOOK_MS = 100;

export default function ({ data: sent, parentElement }) {
  const { target, part } = sent?.[0] ?? {};
  if (!target || parentElement.pointedAt === part) return;
  parentElement.pointedAt = part;
  const calm = matchMedia("(prefers-reduced-motion: reduce)").matches;
  const until = performance.now() + WAIT_MS;
  const look = setInterval(() => {
    const found = document.querySelector(target);
    if (found) found.scrollIntoView({ block: "nearest", behavior: calm ? "auto" : "smooth" });
    if (found || performance.now() > until) clearInterval(look);
  }, LOOK_MS);
  return () => clearInterval(look);
}
