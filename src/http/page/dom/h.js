/** @typedef {Node | string | number | null | undefined | false} Child */
/** @typedef {Record<string, unknown>} Props */

const SVG = 'http://www.w3.org/2000/svg';

/** Events that views answer; `morph` carries them over to the element that stays. */
export const HANDLERS = /** @type {const} */ (['onclick', 'onchange', 'onsubmit', 'onkeydown']);

/**
 * An HTML element. Children are nodes or text: nothing that came from the service is ever read as markup. `vars` are CSS
 * variables: the content policy forbids style attributes, and the object model is the way it leaves open.
 * @param {string} tag
 * @param {Props} [props]
 * @param {...(Child | Child[])} children
 * @returns {HTMLElement}
 */
export function h(tag, props = {}, ...children) {
  return fill(document.createElement(tag), props, children);
}

/**
 * The same for SVG.
 * @param {string} tag
 * @param {Props} [props]
 * @param {...(Child | Child[])} children
 * @returns {SVGElement}
 */
export function s(tag, props = {}, ...children) {
  return fill(/** @type {SVGElement} */ (document.createElementNS(SVG, tag)), props, children);
}

/**
 * @template {HTMLElement | SVGElement} E
 * @param {E} element
 * @param {Props} props
 * @param {(Child | Child[])[]} children
 * @returns {E}
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
