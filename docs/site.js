// What the theme leaves out for keys and screen readers.
addEventListener("load", () => {
  for (const table of document.querySelectorAll(".md-typeset__scrollwrap")) {
    if (table.scrollWidth > table.clientWidth) table.tabIndex = 0; // it scrolls, so a key must reach it
  }
  for (const buttons of document.querySelectorAll(".md-code__nav")) buttons.setAttribute("role", "none");
});
