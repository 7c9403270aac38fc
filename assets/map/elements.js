// Icons, buttons and the theme of the components that draw points.

const clamp = (value, low, high) => Math.min(high, Math.max(low, value));

const ICONS = {
  play: "M7 4.5v15l12-7.5z",
  pause: "M6 5h4v14H6zM14 5h4v14h-4z",
  previous: "M6 5h2.5v14H6zM19 5v14L9.5 12z",
  next: "M15.5 5H18v14h-2.5zM5 5l9.5 7L5 19z",
  move: "M12 2l3 3.5h-2V11h5.5V9l3.5 3-3.5 3v-2H13v5.5h2L12 22l-3-3.5h2V13H5.5v2L2 12l3.5-3v2H11V5.5H9z",
  box: "M3 3h4v2H5v2H3zm7 0h4v2h-4zm7 0h4v4h-2V5h-2zM3 10h2v4H3zm16 0h2v4h-2zM3 17h2v2h2v2H3zm16 0h2v4h-4v-2h2zm-9 2h4v2h-4z",
  lasso: "M12 3C6.5 3 2 6.1 2 10c0 2.4 1.7 4.5 4.3 5.8-.3 1.7.4 3.2 2.2 4.2l.9-1.7c-1-.5-1.3-1.1-1.2-1.8 1.2.3 2.5.5 3.8.5 5.5 0 10-3.1 10-7s-4.5-7-10-7zm0 2c4.6 0 8 2.4 8 5s-3.4 5-8 5c-1.1 0-2.2-.1-3.2-.4-.3-1-1.2-1.6-2.3-1.6-.4 0-.8.1-1.2.300C4.5 12.4 4 11.2 4 10c0-2.6 3.4-5 8-5z",
  in: "M11 5h2v6h6v2h-6v6h-2v-6H5v-2h6z",
  out: "M5 11h14v2H5z",
  whole: "M3 3h6v2H6.4l3.3 3.3-1.4 1.4L5 6.4V9H3zm12 0h6v6h-2V6.4l-3.3 3.3-1.4-1.4L17.6 5H15zM8.3 14.3l1.4 1.4L6.4 19H9v2H3v-6h2v2.6zm7.4 0L19 17.6V15h2v6h-6v-2h2.6l-3.3-3.3z",
};

function icon(name) {
  const path = svgNode("path", { d: ICONS[name], fill: "currentColor" });
  return svgNode("svg", { viewBox: "0 0 24 24", width: 18, height: 18, "aria-hidden": "true" }, path);
}

// Button with an icon or a text.
function labelledButton(content, label, act, className = "") {
  const button = make("button", { type: "button", className: `map-button ${className}`, title: label, "aria-label": label }, content);
  button.addEventListener("click", act);
  return button;
}

// Show on a button whether a press pauses or plays. Args: label: "Pause" or "Play", translated.
function showPlaying(button, playing, label) {
  if (button.title === label) return;
  button.replaceChildren(icon(playing ? "pause" : "play"));
  button.title = label;
  button.setAttribute("aria-label", label);
}

// Read the page's theme from Streamlit's CSS variables.
function readTheme(node) {
  const style = getComputedStyle(node);
  const read = (name, fallback) => style.getPropertyValue(name).trim() || fallback;
  return {
    text: read("--st-text-color", "#1f2933"),
    line: read("--st-border-color", "#d9e0e6"),
    background: read("--st-background-color", "#ffffff"),
    accent: read("--st-primary-color", "#2f6f9f"),
    font: read("--st-font", "sans-serif"),
  };
}
