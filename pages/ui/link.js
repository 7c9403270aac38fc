// Copies the address of the current view. The link is also shown: to copy by hand where the browser forbids a page to
// copy (plain http), and to read from a projector.

const THIS_MACHINE = ["localhost", "127.0.0.1", "[::1]"];

function linkTo({ address, name, version }) {
  const link = new URL(location.href);
  link.searchParams.set(name, version);
  if (!address) return link.href;
  return address.replace(/\/$/, "") + link.pathname + link.search;
}

function makeLink(node) {
  const look = { type: "button", className: "copy-link-button", "aria-expanded": "false" };
  const button = make("button", look, _("Copy link"));
  const field = make("input", { readonly: "", "aria-label": _("Link to this view") });
  const said = make("p", { role: "status" });
  const box = make("div", { className: "copy-link-box", hidden: "" }, field, said);
  node.replaceChildren(button, box);

  const show = (open) => {
    box.hidden = !open;
    button.setAttribute("aria-expanded", String(open));
  };
  button.addEventListener("click", async () => {
    if (!box.hidden) return show(false);
    field.value = linkTo(node.known);
    show(true);
    let copied = true;
    try {
      await navigator.clipboard.writeText(field.value);
    } catch {
      copied = false;
      field.focus();
    }
    field.select();
    const here = !node.known.address && THIS_MACHINE.includes(location.hostname);
    said.textContent = [
      copied ? _("Copied.") : _("Press Ctrl + C to copy it."),
      here ? _("It opens on this machine only. Set SCL_ADDRESS to an address that others can reach.") : "",
    ]
      .filter(Boolean)
      .join(" ");
    return undefined;
  });
  node.onkeydown = (event) => {
    if (event.key !== "Escape" || box.hidden) return;
    show(false);
    button.focus();
  };
  document.removeEventListener("pointerdown", node.outside);
  node.outside = (event) => node.contains(event.target) || show(false);
  document.addEventListener("pointerdown", node.outside);
}

export default function ({ data, parentElement }) {
  const node = parentElement.querySelector(".copy-link");
  if (!node || !data?.[0]) return;
  const { words, ...known } = data[0];
  speak(words);
  node.known = known;
  if (!node.firstChild) makeLink(node);
  return () => document.removeEventListener("pointerdown", node.outside);
}
