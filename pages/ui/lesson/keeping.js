// Stores the answers to lessons in this browser. Answers unknown to the session, from before a reload or from another
// tab, are first sent to the session.

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
    // Without local storage, the answers last as long as the session.
  }
}
