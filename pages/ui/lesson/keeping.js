// Keeps the answers of the lessons in this browser. What it holds that the session does not know of, from before a
// reload or from another tab, is given to the session first.

const NAME = "scl-playground.lessons";

export default function ({ data: sent, setStateValue }) {
  const { text, known } = sent?.[0] ?? {};
  if (text === undefined) return;
  try {
    const kept = localStorage.getItem(NAME) ?? "";
    if (!known.includes(kept)) setStateValue("kept", kept);
    else if (text) localStorage.setItem(NAME, text);
    else localStorage.removeItem(NAME);
  } catch {
    // A browser may keep nothing for a page: the answers then last as long as the session.
  }
}
