// Streamlit calls the default export for every change of the data, on the same node.

export default function ({ data: sent, parentElement, setStateValue }) {
  const node = parentElement.querySelector(".lab-view");
  if (!node || !sent?.[0]) return;
  const { words, ...data } = sent[0];
  speak(words);
  node.setAttribute("aria-label", _("Loss lab"));
  node.lab ??= new Lab(node);
  node.lab.update(data, (question) => setStateValue("asked", question));
  return () => {
    node.lab?.close();
    node.lab = undefined;
  };
}
