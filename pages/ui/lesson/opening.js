// Reports that the page is on the screen. The previous page and the values of its controls are then gone.

export default function ({ data: sent, parentElement, setTriggerValue }) {
  const part = sent?.[0];
  if (!part || parentElement.openedPart === part) return;
  parentElement.openedPart = part;
  setTriggerValue("shown", part);
}
