/** What is done again and again while somebody looks. */

/**
 * Do something every so many milliseconds, until the returned function is called. The next time counts from the end of
 * the time before, so that nothing piles up; a hidden document rests, and goes on as soon as it is seen.
 */
export function repeat(milliseconds: number, run: () => Promise<void>, page: Pick<Document, "hidden" | "addEventListener" | "removeEventListener">): () => void {
  let [timer, rests, ended]: [ReturnType<typeof setTimeout> | undefined, boolean, boolean] = [undefined, false, false];
  const later = () => {
    if (!ended) timer = setTimeout(turn, milliseconds);
  };
  const turn = () => {
    rests = page.hidden;
    if (!rests) void run().then(later, later);
  };
  const seen = () => {
    if (rests) turn();
  };
  page.addEventListener("visibilitychange", seen);
  later();
  return () => {
    ended = true;
    clearTimeout(timer);
    page.removeEventListener("visibilitychange", seen);
  };
}
