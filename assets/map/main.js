// Streamlit calls this again for every change of the data, on the same node.

export default function ({ data: sent, parentElement, setStateValue }) {
  const data = sent?.[0];
  const node = parentElement.querySelector(".map-view");
  if (!node || !data) return;
  try {
    node.map ??= new MapView(node);
    node.map.update(data, (reports) => setStateValue("reports", reports));
  } catch (error) {
    node.textContent = `The map cannot be drawn: ${error.message}.`;
    node.map = undefined;
  }
  return () => {
    node.map?.close();
    node.map = undefined;
  };
}
