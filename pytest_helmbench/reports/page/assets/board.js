// A run that is pointed at, or focused, stands out in the plots of its board; a click keeps it.
for (const board of document.querySelectorAll(".board")) {
  let kept = null;
  const light = (number) => {
    board.classList.toggle("lit", number !== null);
    for (const one of board.querySelectorAll("[data-n], [data-n] use")) one.classList.toggle("on", one.closest("[data-n]").dataset.n === number);
  };
  const of = (event) => event.target.closest?.("[data-n]")?.dataset.n ?? null;
  board.onpointerover = board.onfocusin = (event) => light(of(event) ?? kept);
  board.onpointerleave = () => light(kept);
  board.onclick = (event) => { const found = of(event); if (found) light(kept = kept === found ? null : found); };
}
