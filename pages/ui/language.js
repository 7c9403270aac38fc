// The language switch. It sets the page's `lang` attribute, for screen readers and fonts. Another language reloads the
// page, because Streamlit identifies choices by their labels, which must all be in one language.

// Close the menu of a narrow window after a choice. Streamlit closes it on phones only.
function closeMenu({ target }) {
  const collapse = document.querySelector('[data-testid="stSidebar"][data-collapsed="false"] [data-testid="stSidebarCollapseButton"] button');
  if (target.closest('[data-testid="stSidebarNavLink"]')) collapse?.click();
}

export default function ({ data: sent, parentElement }) {
  const node = parentElement.querySelector(".language");
  const { name, languages, spoken, label } = sent?.[0] ?? {};
  if (!node || !languages) return;
  document.documentElement.lang = spoken;
  document.addEventListener("click", closeMenu);
  if (!node.firstChild) {
    const options = Object.entries(languages).map(([code, text]) => make("option", { value: code, lang: code, text }));
    const select = make("select", {}, ...options);
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
