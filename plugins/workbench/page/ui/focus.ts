/** Where keys go after a view was left together with what had the focus. */

/** Whether keys go nowhere: to the page itself, or to the view as a whole. */
export function isFocusFree(): boolean {
  const now = document.activeElement;
  return !now || now === document.body || now.id === "main";
}
