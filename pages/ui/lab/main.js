// Streamlit calls this again for every change of the data, on the same node.

export default function ({ data: sent, parentElement, setStateValue }) {
  const data = sent?.[0];
  const node = parentElement.querySelector(".lab-view");
  if (!node || !data) return;
  node.lab ??= new Lab(node);
  node.lab.update(data, (question) => setStateValue("asked", question));
  return () => {
    node.lab?.close();
    node.lab = undefined;
  };
}
