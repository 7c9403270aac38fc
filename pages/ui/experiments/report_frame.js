// A report in an iframe of the report's height. The report has no scripts, and the sandbox allows none.

export default function ({ data, parentElement }) {
  const frame = parentElement.querySelector("iframe");
  const button = parentElement.querySelector("button");
  if (!frame || !data) return;
  const fit = () => {
    const page = frame.contentDocument?.documentElement;
    if (page) frame.style.height = `${page.scrollHeight + 8}px`;
  };
  frame.onload = fit;
  button.textContent = data.print;
  frame.title = data.title;
  button.onclick = () => frame.contentWindow.print();
  if (frame.shown !== data.html) {
    frame.srcdoc = data.html;
    frame.shown = data.html;
  }
}
