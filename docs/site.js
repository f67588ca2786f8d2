// What the theme leaves out for keys, screen readers and the clipboard.
addEventListener("load", () => {
  for (const table of document.querySelectorAll(".md-typeset__scrollwrap")) {
    if (table.scrollWidth > table.clientWidth) table.tabIndex = 0; // it scrolls, so a key must reach it
  }
  for (const buttons of document.querySelectorAll(".md-code__nav")) buttons.setAttribute("role", "none");
  for (const block of document.querySelectorAll(".language-console")) {
    const typed = block.querySelector("code").cloneNode(true);
    for (const shown of typed.querySelectorAll(".gp, .go")) shown.remove(); // prompts and output are not copied
    const commands = typed.textContent.split("\n").filter((line) => line.trim());
    block.querySelector("[data-clipboard-target]")?.setAttribute("data-clipboard-text", commands.join("\n"));
  }
});
