// Keeps the answers of the lessons in this browser. A session that does not have them yet is given them first.

const NAME = "scl-playground.lessons";

export default function ({ data: sent, parentElement, setStateValue }) {
  const { text, taken } = sent?.[0] ?? {};
  if (text === undefined) return;
  try {
    if (!taken) {
      if (!parentElement.asked) setStateValue("kept", localStorage.getItem(NAME) ?? "");
      parentElement.asked = true;
    } else if (text) localStorage.setItem(NAME, text);
    else localStorage.removeItem(NAME);
  } catch {
    // A browser may keep nothing for a page: the answers then last as long as the session.
  }
}
