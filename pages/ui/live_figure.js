// One Plotly figure in one DOM node. Streamlit calls the default export for every change of the data.

const NARROW_PX = 480;

export default function (component) {
  const { parentElement } = component;
  const data = component.data?.[0];
  const node = parentElement.querySelector(".live-figure");
  if (!node || !data) return;
  speak(data.words);
  node.latest = data; // while plotly.min.js loads, only the newest figure counts
  node.style.height = `${data.height}px`;
  node.setAttribute("aria-label", data.description);

  const draw = (Plotly) => {
    if (!node.latest) return;
    const theme = getComputedStyle(node).getPropertyValue("--st-text-color");
    const stamp = node.latest.version && `${node.latest.version} ${theme} ${node.latest.height}`;
    if (stamp && stamp === node.stamp) return; // this figure is already drawn
    node.stamp = stamp;
    const figure = JSON.parse(node.latest.figure);
    const config = {
      ...localOnly(),
      responsive: true,
      modeBarButtonsToRemove: ["select2d", "lasso2d", "autoScale2d", ...CLOUD_BUTTONS],
      toImageButtonOptions: { scale: 2 },
    };
    // Plotly keeps the user's zoom and tool while `uirevision` is unchanged.
    const layout = themed(figure, node);
    if (node.clientWidth < NARROW_PX) layout.modebar.orientation = "v"; // in one row, the buttons would cover the legend
    Plotly.react(node, figure.data, layout, config).then(() => {
      node.updates = (node.updates || 0) + 1;
      node.dataset.updates = String(node.updates);
    });
  };
  loadPlotly(data.plotly)
    .then(draw)
    .catch((error) => {
      node.textContent = _("The figure could not be drawn: {reason}.", { reason: error.message });
    });

  return () => {
    node.latest = null;
    node.stamp = "";
    if (window.Plotly) window.Plotly.purge(node);
  };
}
