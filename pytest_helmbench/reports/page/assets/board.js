// A run that is pointed at, or focused, stands out in the table and the plots of its benchmark; a click keeps it.
const lit = new Map();
for (const board of document.querySelectorAll(".board")) {
  const id = board.dataset.board;
  const light = (number) => {
    for (const part of document.querySelectorAll(`[data-board="${id}"]`)) {
      part.classList.toggle("lit", number !== null);
      for (const one of part.querySelectorAll("[data-n], [data-n] use")) one.classList.toggle("on", one.closest("[data-n]").dataset.n === number);
    }
  };
  const of = (event) => event.target.closest?.("[data-n]")?.dataset.n ?? null, kept = () => lit.get(id) ?? null;
  board.onpointerover = board.onfocusin = (event) => light(of(event) ?? kept());
  board.onpointerleave = () => light(kept());
  board.onclick = (event) => { const found = of(event); if (found) light(lit.set(id, kept() === found ? null : found).get(id)); };
}
