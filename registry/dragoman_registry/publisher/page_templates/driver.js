"use strict";
for (const command of document.querySelectorAll(".command")) {
  const button = Object.assign(document.createElement("button"), { type: "button", className: "plain", textContent: "Copy" });
  const text = command.querySelector("code").textContent;
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text);
    } catch { // no secure context, as over plain HTTP: the old way
      getSelection().selectAllChildren(command.querySelector("code"));
      if (!document.execCommand("copy")) return "Press Ctrl+C";
    }
    return "Copied";
  };
  button.addEventListener("click", async () => {
    button.textContent = await copy();
    setTimeout(() => { button.textContent = "Copy"; }, 2000);
  });
  button.setAttribute("aria-live", "polite");
  command.append(button);
}
