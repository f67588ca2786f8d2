"""What automatic checks of accessibility can find, as script for a page: names, contrast, headings, keyboard."""

FAULTS = r"""
const faults = [], say = (e, what) => faults.push(`${e.tagName} ${what}: ${(e.outerHTML || '').slice(0, 80)}`);
const visible = (e) => e.offsetParent !== null && getComputedStyle(e).visibility !== 'hidden';
if (!document.documentElement.lang) faults.push('the page has no language');
if (!document.title) faults.push('the page has no title');
if (document.querySelectorAll('h1').length !== 1) faults.push('not one h1');
if (document.querySelectorAll('main').length !== 1) faults.push('not one main');

let last = 0;
for (const e of document.querySelectorAll('h1, h2, h3, h4, h5, h6')) {
  const level = Number(e.tagName[1]);
  if (level > last + 1 && !e.closest('.text')) say(e, 'skips a level of headings');
  last = level;
}
const ids = [...document.querySelectorAll('[id]')].map((e) => e.id);
for (const id of ids) if (ids.indexOf(id) !== ids.lastIndexOf(id)) faults.push(`id ${id} is there twice`);

const named = 'input, select, textarea, button, a[href], summary, [role=region], section';
for (const e of document.querySelectorAll(named)) {
  const by = (e.getAttribute('aria-labelledby') || '').split(' ').map((id) => document.getElementById(id)?.innerText);
  const name = [e.getAttribute('aria-label'), ...by, ...[...(e.labels || [])].map((l) => l.innerText),
    /^(A|BUTTON|SUMMARY)$/.test(e.tagName) ? e.textContent : ''].join('').trim();
  if (!name) say(e, 'has no name');
  if (e.tabIndex > 0) say(e, 'changes the order of focus');
}
for (const e of document.querySelectorAll('img:not([alt])')) say(e, 'is a picture without words');
for (const e of document.querySelectorAll('fieldset')) if (!e.querySelector('legend')) say(e, 'has no legend');

const channels = (text) => (text.match(/[\d.]+/g) || []).map(Number);
const linear = (c) => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
const shine = (colour) => colour.slice(0, 3).map((c) => linear(c / 255))
  .reduce((sum, c, at) => sum + c * [0.2126, 0.7152, 0.0722][at], 0);
const behind = (e) => {
  for (let at = e; at; at = at.parentElement) {
    const found = channels(getComputedStyle(at).backgroundColor);
    if (found.length && (found.length < 4 || found[3] > 0)) return found;
  }
  return [255, 255, 255];
};
const contrast = (one, other) => {
  const [high, low] = [shine(one), shine(other)].sort((a, b) => b - a);
  return (high + 0.05) / (low + 0.05);
};
for (const e of document.querySelectorAll('body *')) {
  const own = [...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim());
  if (!own || !visible(e) || /^(SCRIPT|STYLE|TEMPLATE|OPTION)$/.test(e.tagName)) continue;
  const style = getComputedStyle(e), size = parseFloat(style.fontSize);
  const large = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 600);
  const ratio = contrast(channels(style.color), behind(e));
  if (ratio < (large ? 3 : 4.5)) say(e, `has a contrast of ${ratio.toFixed(2)}`);
}
for (const e of document.querySelectorAll('[placeholder]')) {
  const ratio = contrast(channels(getComputedStyle(e, '::placeholder').color), behind(e));
  if (ratio < 4.5) say(e, `has a placeholder with a contrast of ${ratio.toFixed(2)}`);
}
for (const e of document.querySelectorAll('body *')) {
  const scrolls = e.scrollWidth > e.clientWidth + 1 && /auto|scroll/.test(getComputedStyle(e).overflowX);
  if (scrolls && visible(e) && e.tabIndex < 0) say(e, 'scrolls, and not by keyboard');
}
return faults;
"""
