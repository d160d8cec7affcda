(function () {
  const box = document.getElementById("filter");
  const told = document.getElementById("filtered");
  const rows = [...document.querySelectorAll(".card, table:not(.trace) tr:has(td)")];
  const texts = rows.map((row) =>
    (row.textContent + " " + (row.dataset.words || "")).toLowerCase());
  const folds = [...document.querySelectorAll("details:not(.card details)")];
  const opened = folds.map((fold) => fold.open);
  function filter() {
    const words = box.value.toLowerCase().split(" ").filter((word) => word);
    rows.forEach((row, n) => {
      row.hidden = !words.every((word) => texts[n].includes(word));
    });
    folds.forEach((fold, n) => {
      const holds = fold.querySelector("tr:has(td):not([hidden])") !== null;
      fold.open = words.length ? holds : opened[n];
    });
    const shown = rows.filter((row) => !row.hidden).length;
    told.textContent = words.length ? `${shown} of ${rows.length}` : "";
  }
  box.addEventListener("input", filter);
  box.parentElement.hidden = false;
  filter();
})();
