// Requests the next update after a delay, and only while the page is visible.

const SILENCE_MS = 15000; // repeat the request then, in case the answer was lost

export default function (component) {
  const { data, parentElement, setTriggerValue } = component;
  const node = parentElement.querySelector(".beat");
  if (!node || !data) return;
  clearTimeout(node.timer);

  const ask = () => {
    if (document.hidden) {
      document.addEventListener("visibilitychange", ask, { once: true });
      return;
    }
    setTriggerValue("beat", data.number);
    node.timer = setTimeout(ask, SILENCE_MS);
  };
  node.timer = setTimeout(ask, data.after_ms);

  return () => {
    clearTimeout(node.timer);
    document.removeEventListener("visibilitychange", ask);
  };
}
