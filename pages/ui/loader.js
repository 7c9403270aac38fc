// Loads the script of a component from the server's static files, and passes every change of the data to it.

const address = new URL("ADDRESS", document.baseURI).href;
const newest = new WeakMap(); // element → the last change of its data, until the element is removed
const closing = new WeakMap(); // element → what its script does when it is removed
let script = null;
let failures = 0;

function load() {
  // Browsers remember a failed import under its address.
  script ??= import(failures ? `${address}?${failures}` : address).catch((error) => {
    script = null;
    failures += 1;
    throw error;
  });
  return script;
}

function drawn(element, draw, component) {
  element.querySelector(":scope > [role=alert]")?.remove();
  if (newest.get(element) === component) closing.set(element, draw(component));
}

function failed(element, error) {
  const alert = element.querySelector(":scope > [role=alert]") ?? element.appendChild(document.createElement("p"));
  alert.role = "alert";
  alert.textContent = error.message;
}

export default function (component) {
  const element = component.parentElement;
  newest.set(element, component);
  load().then(
    ({ default: draw }) => drawn(element, draw, component),
    (error) => failed(element, error),
  );
  return () => {
    newest.delete(element);
    closing.get(element)?.();
  };
}
