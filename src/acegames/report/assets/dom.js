// Small helpers. Text from the game enters the page as text nodes and attribute values only, never as markup.
const DATA = JSON.parse(document.getElementById("data").textContent);
const N = DATA.players.length, M = DATA.constraints.length, H = DATA.horizon;

const byId = (id) => document.getElementById(id);

function el(tag, attributes, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (name === "on") for (const [event, listener] of Object.entries(value)) node.addEventListener(event, listener);
    else if (value !== null && value !== undefined && value !== false) node.setAttribute(name, value === true ? "" : String(value));
  }
  node.append(...children.flat(2).filter((child) => child !== null && child !== undefined && child !== ""));
  return node;
}

function fill(id, ...children) {
  byId(id).replaceChildren(...children.flat(2).filter((child) => child !== null && child !== undefined));
}

/* The largest of numbers in lists of lists, without signs. */
const largest = (x) => (Array.isArray(x) ? x.reduce((most, part) => Math.max(most, largest(part)), 0) : Math.abs(x || 0));
const ROUNDING = 1e-9; // what is smaller than this share of the numbers of its kind is a rounding error
const WORTH = largest([DATA.summary.values, DATA.summary.without, DATA.episodes.map((e) => e.reward), DATA.situations.flat().map((record) => record[2])]);
const SIZES = DATA.constraints.map((_, m) => largest([DATA.budgets.map((row) => row[m]), DATA.episodes.map((e) => e.spent.map((row) => row[m])), DATA.situations.flat().map((record) => record[1][m])]));

/* A number for people: six digits, but all of those left of the point and then two more; zero for rounding errors. A larger one never reads smaller. */
function written(x, size) {
  if (x === null || x === undefined) return "–";
  if (x === 0 || Math.abs(x) < ROUNDING * size) return "0";
  const whole = Math.abs(x) >= 1e4 && Math.abs(x) < 1e15;
  const text = whole ? x.toLocaleString("en", { maximumFractionDigits: Math.abs(x) < 1e5 ? 1 : 2 }) : String(Math.abs(x) < 1e4 ? Number(x.toPrecision(6)) : x);
  return text.replaceAll("-", "−");
}
const number = (x) => written(x, WORTH); // rewards and values
const amount = (x, m) => written(x, SIZES[m]); // costs and budgets
/* So many digits, or all of those left of the point. */
const rounded = (x, digits) => (Math.abs(x) >= 10 ** digits ? Math.round(x) : Number(x.toPrecision(digits)));

function percent(p) {
  if (p > 0 && p < 0.001) return "<\u00a00.1\u00a0%"; // blanks at which no line breaks
  if (p < 1 && p > 0.999) return ">\u00a099.9\u00a0%";
  return `${Number((100 * p).toFixed(1))}\u00a0%`;
}

const times = (n, word) => `${n.toLocaleString("en")} ${word}${n === 1 ? "" : "s"}`;
const joint = (row) => row.map((a, i) => DATA.actions[i][a]).join(", ");

/* A reservoir (a battery, a tank) is shown by its level: what is missing to the capacity counts as spent. */
const stored = (m) => DATA.capacities[m] !== null;
/* What is shown for what is spent, and the other way round: the level of a reservoir, else what is spent. */
const level = (c, m) => (stored(m) ? DATA.capacities[m] - c : c);
const reserveAt = (t, m) => DATA.capacities[m] - DATA.budgets[t][m];
const ofWhole = (c, m) => `${amount(level(c, m), m)} of ${amount(DATA.capacities[m], m)} left`;
const budgetOf = (m) => (stored(m) ? `capacity of ${DATA.constraints[m]}` : `budget of ${DATA.constraints[m]}`);
const levelOf = (m) => (stored(m) ? `level of ${DATA.constraints[m]}` : `cumulative cost of ${DATA.constraints[m]}`);
/* The amounts of plain budgets and the levels of reservoirs, in one phrase; `word` is said once before the amounts, if it is given. */
function holding(spent, word) {
  const all = DATA.constraints.map((_, m) => m), plain = all.filter((m) => !stored(m));
  const costs = plain.map((m) => `${DATA.constraints[m]} ${amount(spent[m], m)}`).join(", ");
  const levels = all.filter(stored).map((m) => `${DATA.constraints[m]} at ${amount(level(spent[m], m), m)} of ${amount(DATA.capacities[m], m)}`).join(", ");
  return [word && costs ? `${word}: ${costs}` : costs, levels].filter((part) => part).join("; ");
}

/* A battery with its level and its reserve. */
function battery(c, m, reserve) {
  const share = (x) => `${DATA.capacities[m] > 0 ? 100 * Math.max(0, Math.min(1, x / DATA.capacities[m])) : 0}%`;
  const said = reserve > 0 ? `, reserve ${amount(reserve, m)}` : "";
  return el("div", { class: "battery", role: "img", "data-constraint": m, "aria-label": `${DATA.constraints[m]}: ${ofWhole(c, m)}${said}` },
    el("span", { class: "level", style: `width:${share(level(c, m))}` }), reserve > 0 ? el("span", { class: "reserve", style: `left:${share(reserve)}` }) : null);
}
const budgetAt = (t, m) => (DATA.budgets[t][m] === null ? "no limit" : amount(DATA.budgets[t][m], m));

/* A table from headings and rows. A cell is text or a node; headings that end the column's numbers to the right are marked. */
function table(caption, headings, rows, numeric = []) {
  const cell = (tag, content, k) => el(tag, { class: numeric.includes(k) ? "number" : null, scope: tag === "th" ? "row" : null }, content);
  const head = headings.map((text, k) => el("th", { scope: "col", class: numeric.includes(k) ? "number" : null }, text));
  const body = rows.map((row) => el("tr", {}, row.map((content, k) => cell(k === 0 ? "th" : "td", content, k))));
  return el("table", {}, caption ? el("caption", {}, caption) : null, el("thead", {}, el("tr", {}, head)), el("tbody", {}, body));
}

/* A button that copies a text. Pages opened from disk may not have the clipboard: then a selected text is copied. If the browser refuses that too, the text is shown, selected, to be copied by hand. */
function copyButton(text, label, id) {
  const said = label || "Copy";
  const byHand = el("input", { class: "by-hand", readonly: true, hidden: true, "aria-label": "Text to copy by hand" });
  const button = el("button", { type: "button", class: "copy", id, on: { click: () => copyText(text()).then((done) => {
    button.textContent = done ? "Copied" : "Not copied: copy the selected text by hand";
    byHand.hidden = done;
    if (!done) { byHand.value = text(); byHand.focus(); byHand.select(); }
    setTimeout(() => { button.textContent = said; }, done ? 1500 : 6000);
  }) } }, said);
  return [button, byHand];
}
async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const field = el("textarea", { class: "aside", "aria-hidden": "true" });
    field.value = text;
    document.body.append(field);
    field.select();
    const done = document.execCommand("copy");
    field.remove();
    return done;
  }
}

/* A sentence, with the command that it ends in, if any. */
const noted = (kind) => ([words, command]) => el("p", { class: kind }, words, command ? [" ", el("code", {}, command), " ", copyButton(() => command)] : null);

const scrolling = (node) => el("div", { class: "scroll" }, node);

let numbered = 0;
/* A labelled slider: `show(index)` gives the text beside it, `moved(index)` is called as it moves. */
function slider(label, last, index, show, moved, id) {
  const name = id || `slider-${++numbered}`;
  const output = el("output", { for: name }, show(index));
  const input = el("input", { type: "range", id: name, min: 0, max: last, step: 1, value: index, "aria-valuetext": show(index), disabled: last === 0 });
  const set = (k) => {
    input.value = k;
    output.textContent = show(k);
    input.setAttribute("aria-valuetext", show(k));
  };
  input.addEventListener("input", () => { set(Number(input.value)); moved(Number(input.value)); });
  return { node: el("div", { class: "control" }, el("label", { for: name }, label, output), input), set, input };
}

function chooser(label, options, index, moved, id) {
  const name = id || `chooser-${++numbered}`;
  const input = el("select", { id: name }, options.map((text, k) => el("option", { value: k }, text)));
  input.value = index;
  input.addEventListener("change", () => moved(Number(input.value)));
  return { node: el("div", { class: "control" }, el("label", { for: name }, label), input), input };
}
