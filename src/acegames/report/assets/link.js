// A link to a situation: its time, its state and its cumulative costs are in the address, after #.
const SETTLED = 400; // milliseconds without a move after which a situation becomes a step of the history
let settling = null;

const address = () => `#t=${open.t}&s=${open.record[STATE]}${M ? `&c=${open.record[SPENT].join(",")}` : ""}`;

/* The situation that the address names, or null. */
function named() {
  const found = /^#t=(\d+)&s=(\d+)(?:&c=([-+0-9.e,]+))?$/.exec(location.hash);
  if (!found) return null;
  const t = Number(found[1]), state = Number(found[2]), spent = (found[3] || "").split(",").filter((x) => x).map(Number);
  return t < H && groups[t].has(state) && spent.length === M && spent.every(Number.isFinite) ? { t, state, spent } : null;
}

function openNamed() {
  const wanted = named();
  if (wanted === null) return false;
  openNearest(wanted.t, wanted.state, wanted.spent);
  return true;
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
