/** @typedef {Node | string | number | null | undefined | false} Child */
/** @typedef {Record<string, unknown>} Props */

/** Events that views handle; `morph` moves their handlers to the element that stays. */
export const HANDLERS = /** @type {const} */ (['onclick', 'onchange', 'onsubmit', 'onkeydown']);

/**
 * An HTML element. Children are nodes or text, so data is never parsed as markup. `vars` are CSS
 * variables, set through the object model because the content security policy forbids style attributes.
 * @param {string} tag
 * @param {Props} [props]
 * @param {...(Child | Child[])} children
 * @returns {HTMLElement}
 */
export function h(tag, props = {}, ...children) {
  return fill(document.createElement(tag), props, children);
}

/**
 * @param {HTMLElement} element
 * @param {Props} props
 * @param {(Child | Child[])[]} children
 * @returns {HTMLElement}
 */
function fill(element, props, children) {
  for (const [name, value] of Object.entries(props)) {
    if (value === null || value === undefined || value === false) continue;
    if (name === 'vars') {
      for (const [key, each] of Object.entries(/** @type {object} */ (value))) element.style.setProperty(key, each);
    } else if (typeof value === 'function') Object.assign(element, { [name]: value });
    else element.setAttribute(name, value === true ? '' : String(value));
  }
  for (const child of children.flat()) {
    if (child !== null && child !== undefined && child !== false) {
      element.append(child instanceof Node ? child : String(child));
    }
  }
  return element;
}

/**
 * Updates the page to match the new drawing and leaves alone what is the same: focus, scroll position, selected
 * text and opened details survive a live update. Children with a `data-key` are matched wherever they moved to; an element
 * with `data-keep` is left alone.
 * @param {Element} parent
 * @param {Node[]} fresh
 */
export function morphChildren(parent, fresh) {
  const keys = new Set(fresh.map(keyOf));
  const keyed = new Map();
  for (const child of [...parent.children]) {
    const key = keyOf(child);
    // Removals first: then later elements need not be moved, and a moved element loses its focus.
    if (key && !keys.has(key)) child.remove();
    else if (key) keyed.set(key, child);
  }
  /** @type {ChildNode | null} */
  let next = parent.firstChild;
  for (const node of fresh) {
    const key = keyOf(node);
    const old = key ? keyed.get(key) : next && !keyOf(next) ? next : undefined;
    if (old && isSameKind(old, node)) {
      if (old === next) next = old.nextSibling;
      else parent.insertBefore(old, next);
      morph(old, node);
    } else parent.insertBefore(node, next);
  }
  while (next) {
    const gone = next;
    next = next.nextSibling;
    gone.remove();
  }
}

/** @param {Node} node */
const keyOf = (node) => (node instanceof Element ? node.getAttribute('data-key') : null);

/** @param {Node} a @param {Node} b */
const isSameKind = (a, b) => a.nodeName === b.nodeName && keyOf(a) === keyOf(b);

/** @param {Node} old @param {Node} fresh */
function morph(old, fresh) {
  if (old instanceof Element && fresh instanceof Element) {
    if (old.hasAttribute('data-keep')) return;
    morphAttributes(old, fresh);
    for (const name of HANDLERS) Object.assign(old, { [name]: Reflect.get(fresh, name) ?? null });
    if (old.localName.includes('-')) return; // A custom element draws itself from its attributes.
    morphChildren(old, [...fresh.childNodes]);
  } else if (old.nodeValue !== fresh.nodeValue) old.nodeValue = fresh.nodeValue;
}

/** @param {Element} old @param {Element} fresh */
function morphAttributes(old, fresh) {
  // By name: `attributes` would create and keep a node for each.
  for (const name of old.getAttributeNames()) {
    // The user opens and closes details; styles are set through the object model below.
    if (!fresh.hasAttribute(name) && name !== 'open' && name !== 'style') old.removeAttribute(name);
  }
  for (const name of fresh.getAttributeNames()) {
    const value = fresh.getAttribute(name) ?? '';
    if (name !== 'style' && old.getAttribute(name) !== value) old.setAttribute(name, value);
  }
  const [was, is] = [old, fresh].map((element) => /** @type {HTMLElement} */ (element).style);
  if (was && is && was.cssText !== is.cssText) was.cssText = is.cssText;
}
