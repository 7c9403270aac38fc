// Received data bundles by id, shared by two components: one delivers the bundles, the other draws them.

const ARRAY_TYPES = { uint8: Uint8Array, uint16: Uint16Array };

// The components are separate modules, so their shared state is on `window`.
const shelf = (window.mapBundles ??= { ready: new Map(), waiting: new Set() });

// Decode a bundle: the length of a JSON header, the header, and the arrays that it lists.
function decodeBundle(bytes) {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const start = 4 + view.getUint32(0, true);
  const bundle = JSON.parse(new TextDecoder().decode(bytes.subarray(4, start)));
  for (const [name, { type, start: at, length }] of Object.entries(bundle.arrays)) {
    const kind = ARRAY_TYPES[type];
    // Copied, because a Uint16Array must start at an even offset.
    const part = bytes.slice(start + at, start + at + length * kind.BYTES_PER_ELEMENT);
    bundle[name] = new kind(part.buffer, 0, length);
  }
  return bundle;
}

// Store a bundle. `holder` is the node that delivered it; the bundle is dropped with its last holder.
function keepBundle(id, bytes, holder) {
  if (!shelf.ready.has(id)) shelf.ready.set(id, { ...decodeBundle(bytes), holders: new Set() });
  shelf.ready.get(id).holders.add(holder);
  for (const call of [...shelf.waiting]) call();
}

function releaseBundle(id, holder) {
  const holders = shelf.ready.get(id)?.holders;
  holders?.delete(holder);
  if (!holders?.size) shelf.ready.delete(id);
}
