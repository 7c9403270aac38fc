// Asks the server for the next look after a while, and not before somebody can see the page.

const SILENCE_MS = 15000; // an answer that was lost must not end the watching

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
