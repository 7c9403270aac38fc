// A standalone page of one run or of two side by side: the app's map, with texts, words and curves beside it.

const FOUND_MAX = 30;
const TEXTS_MAX = 12;
const RGB = "74, 144, 194"; // colour of attention, as on the Tokens page
const OPACITY_MAX = 0.5;

const bytesOf = (text) => Uint8Array.from(atob(text), (sign) => sign.charCodeAt(0));

async function unpacked(text) {
  const stream = new Blob([bytesOf(text)]).stream().pipeThrough(new DecompressionStream("gzip"));
  return JSON.parse(await new Response(stream).text());
}

class Page {
  constructor(known) {
    this.known = known;
    speak(known.words);
    this.node = document.querySelector(".map-view");
    this.colour = known.colourings[0].name;
    this.selected = [];
    this.lit = null;
    this.hits = new Map(); // id of a found text → node of its predictions
    this.numbers = { selected: 0, frame: 0, clicked: 0, view: 0 };
    this.rows = known.runs.map((run) => new Map(run.ids.map((id, row) => [id, row])));
    for (const [id, bundle] of Object.entries(known.bundles)) keepBundle(id, bytesOf(bundle), this.node);
    this.map = new MapView(this.node);
    this.draw();
    // The map writes the current step to its node.
    new MutationObserver(() => this.stepped()).observe(this.node, { attributes: true, attributeFilter: ["data-step"] });
    window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.map.show());
    const search = document.getElementById("search");
    search.addEventListener("input", () => this.search(search.value));
    const colour = document.getElementById("colour");
    colour.addEventListener("change", () => {
      this.colour = colour.value;
      this.draw();
    });
    this.showTexts();
  }

  draw() {
    const { known, numbers, selected, lit } = this;
    const colouring = known.colourings.find((one) => one.name === this.colour);
    const panels = known.panels.map((panel, at) => ({ ...panel, colours: colouring.bundles[at] }));
    const rest = { height: known.height, description: known.description, name: known.name, unit: "step", empty: "" };
    const look = { trails: true, play: true, follow: false, frame: null, view: "" };
    this.map.update({ panels, lit, selected, numbers: { ...numbers }, ...rest, ...look }, (reports) => this.heard(reports));
  }

  heard(reports) {
    if (!reports.selected || reports.selected.number === this.heardNumber) return;
    this.heardNumber = reports.selected.number;
    this.selected = reports.selected.value;
    this.showTexts();
  }

  select(ids) {
    this.selected = ids;
    this.numbers.selected += 1;
    this.draw();
    this.showTexts();
  }

  // Find the texts that contain all words.
  search(asked) {
    const words = asked.toLowerCase().split(/\s+/).filter(Boolean);
    const found = new Map();
    if (words.length) {
      for (const run of this.known.runs) {
        run.texts.forEach((text, row) => {
          const read = text.toLowerCase();
          if (words.every((word) => read.includes(word))) found.set(run.ids[row], text);
        });
      }
    }
    this.lit = words.length ? [...found.keys()] : null;
    this.found = found;
    document.getElementById("count").textContent = words.length ? _("{count} found", { count: found.size }) : "";
    this.select([]);
  }

  stepped() {
    this.step = Number(this.node.dataset.step);
    for (const svg of document.querySelectorAll("figure svg")) {
      const { x0, x1, left, right } = svg.dataset;
      const at = Math.min(Number(x1), Math.max(Number(x0), this.step));
      const place = String(Number(left) + ((at - x0) / (x1 - x0)) * (right - left));
      const cursor = svg.querySelector(".cursor");
      cursor.setAttribute("x1", place);
      cursor.setAttribute("x2", place);
      cursor.setAttribute("visibility", "visible");
    }
    if (this.selected.length) this.showTexts();
    // Keep the buttons, so that no click is lost between two steps.
    else for (const [id, node] of this.hits) this.say(id, node);
  }

  showTexts() {
    const place = document.getElementById("texts");
    this.hits = new Map();
    place.replaceChildren(...this.nodes());
    const recorded = this.known.runs.some((run) => run.words);
    const note = document.getElementById("attention-note");
    note.hidden = recorded ? !place.querySelector(".words span") : !this.selected.length;
  }

  nodes() {
    if (this.selected.length) {
      const shown = this.selected.slice(0, TEXTS_MAX).map((id) => this.textNode(id));
      const more = this.selected.length - TEXTS_MAX;
      const others = byCount(more, _("1 more is selected."), _("{count} more are selected.", { count: more }));
      if (more > 0) shown.push(make("p", { className: "quiet" }, others));
      return shown;
    }
    if (this.lit) {
      const found = [...this.found].slice(0, FOUND_MAX).map(([id, text]) => this.hitNode(id, text));
      return found.length ? found : [make("p", { className: "quiet" }, _("No text contains these words."))];
    }
    const how = _("Click a point, or drag a box or lasso around several, to read their texts. Esc clears the selection.");
    return [make("p", { className: "quiet" }, how)];
  }

  hitNode(id, text) {
    const said = make("span", { className: "quiet" });
    const button = make("button", { className: "found", type: "button" }, text, said);
    button.addEventListener("click", () => this.select([id]));
    this.hits.set(id, said);
    this.say(id, said);
    return button;
  }

  // Write one line per run, as spans, because the node may not contain paragraphs.
  say(id, node) {
    node.replaceChildren(...this.linesOf(id).map((line) => make("span", {}, line)));
  }

  textNode(id) {
    const at = this.rows.findIndex((rows) => rows.has(id));
    const run = this.known.runs[at];
    const words = this.wordsNode(run, this.rows[at].get(id), Math.max(0, this.frameOf(run)));
    return make("div", { className: "text" }, words, ...this.linesOf(id).map((line) => make("p", { className: "quiet" }, line)));
  }

  // Last frame up to the current step, -1 if there is none.
  frameOf(run) {
    return run.steps.findLastIndex((step) => step <= (this.step ?? run.steps.at(-1)));
  }

  // Predictions of each run for a text at the current step.
  linesOf(id) {
    return this.known.runs.flatMap((run, at) => {
      const [row, frame] = [this.rows[at].get(id), this.frameOf(run)];
      if (row === undefined || frame < 0) return [];
      const [guess, share] = [run.classes[run.predicted[frame][row]], run.confidence[frame][row] / 10];
      const said = [
        _("label {name}", { name: run.classes[run.labels[row]] }),
        _("predicted {name}, {share}%", { name: guess, share: share.toFixed(1) }),
        ...(run.predicted[frame][row] !== run.labels[row] ? [_("wrong")] : []),
      ];
      const line = said.join(" · ");
      return [this.known.runs.length > 1 ? _("{what}: {value}", { what: run.title, value: line }) : line];
    });
  }

  // The text as the encoder reads it, shaded by the attention of [CLS] to each word if that was stored.
  wordsNode(run, row, frame) {
    const line = make("p", { className: "words" });
    const read = run.words?.[row];
    if (!read) {
      line.append(run.texts[row]);
      return line;
    }
    run.shares ??= bytesOf(run.attention);
    const first = run.places[row] + frame * read.spans.length;
    let at = [0, 0];
    const sides = read.sides.map((side) => Array.from(side)); // split by code points, as in Python
    const upTo = (side, end) => {
      while (at[0] < side) {
        line.append(sides[at[0]].slice(at[1]).join(""), " ¦ ");
        at = [at[0] + 1, 0];
      }
      line.append(sides[side].slice(at[1], end).join(""));
      at = [side, end];
    };
    read.spans.forEach(([side, start, end], word) => {
      upTo(side, start);
      const share = run.shares[first + word] / 255;
      const span = make("span", { title: _("{share}% of the attention of [CLS]", { share: ((100 * share * read.most) / 1000).toFixed(1) }) });
      span.textContent = sides[side].slice(start, end).join("");
      span.style.background = `rgba(${RGB}, ${(OPACITY_MAX * share).toFixed(3)})`;
      line.append(span);
      at = [side, end];
    });
    upTo(sides.length - 1, Infinity);
    return line;
  }
}

unpacked(document.getElementById("run-data").textContent.trim())
  .then((known) => (window.runPage = new Page(known)))
  .catch((error) => {
    const why = _("This page cannot be shown ({reason}). Use a browser from 2023 or later.", { reason: error.message });
    document.querySelector(".map-view").textContent = why;
  });
