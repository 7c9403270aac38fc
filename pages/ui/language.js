// The language switch. It sets the page's `lang` attribute, for screen readers and fonts. Another language reloads the
// page, because Streamlit identifies choices by their labels, which must all be in one language.

export default function ({ data: sent, parentElement }) {
  const node = parentElement.querySelector(".language");
  const { name, languages, spoken, label } = sent?.[0] ?? {};
  if (!node || !languages) return;
  document.documentElement.lang = spoken;
  if (!node.firstChild) {
    const select = document.createElement("select");
    for (const [code, called] of Object.entries(languages)) {
      const option = new Option(called, code);
      option.lang = code;
      select.append(option);
    }
    select.addEventListener("change", () => {
      const address = new URL(location.href);
      address.searchParams.set(name, select.value);
      location.assign(address);
    });
    node.append(select);
  }
  const select = node.firstChild;
  select.setAttribute("aria-label", label);
  select.value = spoken;
}
