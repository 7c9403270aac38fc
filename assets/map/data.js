// Delivers one bundle. The node's key is derived from the bundle's id, so a node never changes its bundle.

export default function ({ data, parentElement }) {
  const node = parentElement.querySelector(".map-data");
  if (!node || !data || !data.length) return;
  const start = 1 + data[0]; // the bundle follows the id and the id's length
  const id = new TextDecoder().decode(data.subarray(1, start));
  if (node.held !== id) {
    node.held = id;
    keepBundle(id, data.subarray(start), node);
  }
  return () => releaseBundle(id, node);
}
