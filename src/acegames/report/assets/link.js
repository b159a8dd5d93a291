// A link to a situation: its time, its state and its cumulative costs are in the address, after #.
const SETTLED = 400; // milliseconds without a move after which a situation becomes a step of the history
let settling = null;

const address = () => `#t=${open.t}&s=${open.record[STATE]}${M ? `&c=${open.record[SPENT].join(",")}` : ""}`;

/* Open the situation that the address names, or the nearest one with its time and state; returns whether there is one. */
function openNamed() {
  const found = /^#t=(\d+)&s=(\d+)(?:&c=([-+0-9.e,]+))?$/.exec(location.hash);
  if (!found) return false;
  const t = Number(found[1]), state = Number(found[2]), spent = (found[3] || "").split(",").filter((x) => x).map(Number);
  const known = t < H && groups[t].has(state) && spent.length === M && spent.every(Number.isFinite);
  if (known) openNearest(t, state, spent);
  if (!known || location.hash !== address()) fill("here-link", linkButton(), el("span", { class: "hint", id: "not-here" }, known ? " The situation of the link is not in this page; the nearest one is shown." : " The situation of the link is not in this page."));
  return known;
}

/* Put the open situation into the address, once it has stayed open for a while. A page inside another one leaves the history alone. */
function remember() {
  clearTimeout(settling);
  if (window !== window.top) return;
  settling = setTimeout(() => { if (location.hash !== address()) location.hash = address(); }, SETTLED);
}

addEventListener("hashchange", () => {
  if (location.hash === address()) return;
  clearTimeout(settling);
  if (openNamed()) { clearTimeout(settling); byId("situation").scrollIntoView(); }
});

function linkButton() {
  return copyButton(() => `${location.href.split("#")[0]}${address()}`, "Copy a link to this situation", "copy-link");
}
