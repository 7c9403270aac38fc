// Streamlit calls the default export for every change of the data, on the same node.

export default function ({ data: sent, parentElement, setStateValue }) {
  const node = parentElement.querySelector(".map-view");
  if (!node || !sent?.[0]) return;
  const { words, ...data } = sent[0];
  speak(words);
  try {
    node.map ??= new MapView(node);
    node.map.update(data, (reports) => setStateValue("reports", reports));
  } catch (error) {
    node.textContent = _("The map could not be drawn: {reason}.", { reason: error.message });
    node.map = undefined;
  }
  return () => {
    node.map?.close();
    node.map = undefined;
  };
}
