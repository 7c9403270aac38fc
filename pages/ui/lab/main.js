// Streamlit calls this again for every change of the data, on the same node. Another language gets another lab, which
// begins with what the page knows of the one before.

export default function ({ data: sent, parentElement, setStateValue }) {
  const node = parentElement.querySelector(".lab-view");
  if (!node || !sent?.[0]) return;
  const { words, language, ...data } = sent[0];
  speak(words);
  node.setAttribute("aria-label", _("Loss lab"));
  const before = node.language === language ? null : node.lab;
  if (before) {
    before.close();
    node.lab = undefined;
  }
  node.language = language;
  node.lab ??= new Lab(node, before?.numbers);
  node.lab.update(data, (question) => setStateValue("asked", question));
  return () => {
    node.lab?.close();
    node.lab = undefined;
  };
}
