// Brings one bundle. The node's key is made from the bundle's id, so a node holds the same bundle all its life.

export default function ({ data, parentElement }) {
  const node = parentElement.querySelector(".map-data");
  if (!node || !data || !data.length) return;
  const start = 1 + data[0]; // the id's length and the id stand before the bundle
  const id = new TextDecoder().decode(data.subarray(1, start));
  if (node.held !== id) {
    node.held = id;
    keepBundle(id, data.subarray(start), node);
  }
  return () => releaseBundle(id, node);
}
