// What scripts say. English is in the code and is the key of every translation, as in core/messages.py.

let catalogue = {};

// From now on in this language: English messages with their translations, none for English.
function speak(messages) {
  catalogue = messages ?? {};
}

// A message in the language that is spoken, its places such as {name} filled; English where it is not translated.
function _(message, values = {}) {
  const text = Object.hasOwn(catalogue, message) ? catalogue[message] : message;
  return text.replace(/\{(\w+)\}/g, (place, name) => (Object.hasOwn(values, name) ? String(values[name]) : place));
}

// Mark a message that is given to `_` where it is shown.
const N_ = (message) => message;

// Of two messages, the one for a number.
const byCount = (count, one, many) => (count === 1 ? one : many);
