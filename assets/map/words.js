// Messages of the scripts. The English text in the code is the key of every translation, as in core/messages.py.

let catalogue = {};

// Set the language by its catalogue, from English messages to translations; null for English.
function speak(messages) {
  catalogue = messages ?? {};
}

// Translate a message and fill its placeholders, such as {name}. An untranslated message stays in English.
function _(message, values = {}) {
  const text = Object.hasOwn(catalogue, message) ? catalogue[message] : message;
  return text.replace(/\{(\w+)\}/g, (place, name) => (Object.hasOwn(values, name) ? String(values[name]) : place));
}

// Mark a message that is translated when it is shown.
const N_ = (message) => message;

// Choose the singular or plural message for a number.
const byCount = (count, one, many) => (count === 1 ? one : many);
