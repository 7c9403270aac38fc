// Says that the page is on the screen: what was there before is gone then, with all that its controls held.

export default function ({ data: sent, parentElement, setTriggerValue }) {
  const part = sent?.[0];
  if (!part || parentElement.openedPart === part) return;
  parentElement.openedPart = part;
  setTriggerValue("shown", part);
}
