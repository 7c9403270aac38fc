// Softmax probabilities as bars from 0 to 1. Changes are animated, to show the effect of the temperature.

function drawBars(node, bars) {
  while (node.children.length > bars.length) node.lastChild.remove();
  while (node.children.length < bars.length) node.append(document.createElement("i"));
  bars.forEach(({ share, positive, title }, place) => {
    const bar = node.children[place];
    bar.style.height = `${(100 * share).toFixed(2)}%`;
    bar.classList.toggle("positive", positive);
    bar.title = title;
  });
}
