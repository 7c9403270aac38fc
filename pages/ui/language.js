// The languages to choose from; the page is marked as being in the one that is spoken, for screen readers and fonts.

export default function ({ data: sent, parentElement, setTriggerValue }) {
  const node = parentElement.querySelector(".language");
  const { languages, spoken, label } = sent?.[0] ?? {};
  if (!node || !languages) return;
  document.documentElement.lang = spoken;
  if (!node.firstChild) {
    const select = document.createElement("select");
    for (const [code, name] of Object.entries(languages)) {
      const option = new Option(name, code);
      option.lang = code;
      select.append(option);
    }
    node.append(select);
  }
  const select = node.firstChild;
  select.setAttribute("aria-label", label);
  select.value = spoken;
  select.onchange = () => setTriggerValue("chosen", select.value);
}
