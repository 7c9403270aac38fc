// DOM nodes, for any component. Untrusted text is only set as textContent.

function make(tag, { className, text, ...attributes } = {}, ...children) {
  const node = document.createElement(tag);
  if (className) node.className = className;
  if (text !== undefined) node.textContent = text;
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children);
  return node;
}

// Set a node's text only if it differs, because setting it always triggers a layout.
function write(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

// Position of an event in the coordinates of a node.
function placeIn(node, event) {
  const box = node.getBoundingClientRect();
  return [event.clientX - box.left, event.clientY - box.top];
}
