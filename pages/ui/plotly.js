// Plotly in the browser: loaded once from this server, in the page's theme, without buttons that upload data.

let loading = null; // promise of Plotly

// Remove Plotly's cloud upload and the link to its site, so that nothing leaves the machine. The labels of its tools
// are translated; their keys are Plotly's English texts.
const localOnly = () => ({
  displaylogo: false,
  showSendToCloud: false,
  plotlyServerURL: "",
  locales: {
    "en-US": {
      dictionary: {
        "Download plot as a PNG": _("Download plot as a PNG"),
        Zoom: _("Zoom"),
        Pan: _("Pan"),
        "Zoom in": _("Zoom in"),
        "Zoom out": _("Zoom out"),
        "Reset axes": _("Reset axes"),
        "Double-click to zoom back out": _("Double-click to zoom back out"),
        "Double-click on legend to isolate one trace": _("Double-click on legend to isolate one trace"),
        "Preparing image - this may take a few seconds": _("Preparing image - this may take a few seconds"),
        "Image download succeeded": _("Image download succeeded"),
      },
    },
  },
});
// Names of the upload buttons in older and newer releases.
const CLOUD_BUTTONS = ["sendChartToCloud", "sendDataToCloud", "editInChartStudio"];

function loadPlotly(url) {
  if (window.Plotly) return Promise.resolve(window.Plotly);
  loading ??= new Promise((resolve, reject) => {
    const script = document.createElement("script");
    script.src = url;
    script.onload = () => resolve(window.Plotly);
    script.onerror = () => {
      loading = null;
      reject(new Error(_("{address} could not be loaded", { address: url })));
    };
    document.head.appendChild(script);
  });
  return loading;
}

// Average width of a letter. A title that is too wide loses the note beside its name.
const LETTER_PX = 5.8;
const wide = (text) => LETTER_PX * text.replace(/<[^>]*>/g, "").length;
const fitted = (note, room) => (wide(note.text) <= room ? note : { ...note, text: note.text.replace(/<span> .*<\/span>/, "") });

// Apply the page's colours for text, grid and accent.
function themed(figure, element) {
  const style = getComputedStyle(element);
  const read = (name, fallback) => style.getPropertyValue(name).trim() || fallback;
  const text = read("--st-text-color", "#1f2933");
  const line = read("--st-border-color", "#d9e0e6");
  const background = read("--st-secondary-background-color", "#f4f6f8");
  const layout = {
    ...figure.layout,
    font: { ...figure.layout.font, color: text, family: read("--st-font", "sans-serif") },
    hoverlabel: { ...figure.layout.hoverlabel, bgcolor: background, bordercolor: line, font: { color: text } },
    modebar: { bgcolor: "rgba(0,0,0,0)", color: line, activecolor: text },
  };
  const room = element.clientWidth - (figure.layout.margin?.l ?? 0);
  layout.annotations = (figure.layout.annotations || []).map((note) => fitted(note, room));
  for (const [name, axis] of Object.entries(figure.layout)) {
    if (/^[xy]axis\d*$/.test(name)) layout[name] = { gridcolor: line, linecolor: line, ...axis };
  }
  return layout;
}
