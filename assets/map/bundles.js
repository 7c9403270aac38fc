// Bundles of bytes that arrived, by their id. Part of both components: one brings bundles, the other draws them.

const ARRAY_TYPES = { uint8: Uint8Array, uint16: Uint16Array };

// Both components are modules of their own; what they share hangs on the window.
const shelf = (window.mapBundles ??= { ready: new Map(), holders: new Map(), waiting: new Set() });

// A line of JSON whose length stands before it, then the arrays that it lists.
function decodeBundle(bytes) {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const start = 4 + view.getUint32(0, true);
  const bundle = JSON.parse(new TextDecoder().decode(bytes.subarray(4, start)));
  for (const [name, { type, start: at, length }] of Object.entries(bundle.arrays)) {
    const kind = ARRAY_TYPES[type];
    // A copy, since an array of two-byte numbers has to start at an even place.
    const part = bytes.slice(start + at, start + at + length * kind.BYTES_PER_ELEMENT);
    bundle[name] = new kind(part.buffer, 0, length);
  }
  return bundle;
}

// `holder` is the node that brought the bundle: it stays as long as one of its holders does.
function keepBundle(id, bytes, holder) {
  if (!shelf.ready.has(id)) shelf.ready.set(id, decodeBundle(bytes));
  if (!shelf.holders.has(id)) shelf.holders.set(id, new Set());
  shelf.holders.get(id).add(holder);
  for (const call of [...shelf.waiting]) call();
}

function releaseBundle(id, holder) {
  const holders = shelf.holders.get(id);
  holders?.delete(holder);
  if (holders?.size) return;
  shelf.holders.delete(id);
  shelf.ready.delete(id);
}
