/** Events that views handle; `morph` copies their handlers to the element that stays. */
const HANDLERS = /** @type {const} */ (['onclick', 'onchange', 'onsubmit', 'onkeydown', 'oninput']);

/** Marks the place of a value; no template contains it. */
const HOLE = '\0';
const TOKEN = /<\/[\w-]+>|<([\w-]+)((?:\s+[^\s=>]+(?:=(?:"[^"]*"|[^\s>]+))?)*)\s*>|[^<]+/g;
const ATTRIBUTE = /([^\s=]+)(?:=(?:"([^"]*)"|(\S+)))?/g;

/** @typedef {{ tag?: string, attributes: [name: string, value: string][], text: string, isEnd: boolean }} Token */
/** Each template is parsed once. @type {WeakMap<TemplateStringsArray, Token[]>} */
const known = new WeakMap();

/** @param {TemplateStringsArray} strings @returns {Token[]} */
function tokensOf(strings) {
  const tokens = [...strings.join(HOLE).matchAll(TOKEN)].map(([all, tag, attributes = '']) => ({
    ...(tag && { tag }),
    attributes: [...attributes.matchAll(ATTRIBUTE)].map(
      ([, name = '', quoted, bare]) => /** @type {[string, string]} */ ([name, quoted ?? bare ?? '']),
    ),
    text: all,
    isEnd: all.startsWith('</'),
  }));
  known.set(strings, tokens);
  return tokens;
}

/**
 * An element, written as HTML. Values become nodes, text, attributes or handlers, and are never parsed as markup; null and false are
 * omitted. `vars` are CSS variables, set through the object model because the content security policy forbids style attributes.
 * @param {TemplateStringsArray} strings
 * @param {...unknown} values
 * @returns {any}
 */
export function html(strings, ...values) {
  let next = 0;
  const open = /** @type {(Element | DocumentFragment)[]} */ ([new DocumentFragment()]);
  for (const { tag, attributes, text, isEnd } of known.get(strings) ?? tokensOf(strings)) {
    const parent = /** @type {Element} */ (open.at(-1));
    if (isEnd) open.pop();
    else if (tag) {
      const element = document.createElement(tag);
      for (const [name, value] of attributes)
        set(element, name, value === HOLE ? values[next++] : value.replaceAll(HOLE, () => String(values[next++])));
      parent.append(element);
      if (tag !== 'input') open.push(element);
    } else
      text.split(HOLE).forEach((part, i) => {
        if (i > 0) add(parent, values[next++]);
        // Line breaks in a template only format the code.
        add(parent, part.replace(/^\s*\n\s*|\s*\n\s*$/g, ''));
      });
  }
  if (open.length !== 1) throw new Error(`a template does not close what it opens: ${strings.join('…')}`);
  return open[0]?.firstElementChild;
}

/** @param {HTMLElement} element @param {string} name @param {unknown} value */
function set(element, name, value) {
  if (value === null || value === undefined || value === false) return;
  if (name === 'vars') for (const [key, each] of Object.entries(value)) element.style.setProperty(key, String(each));
  else if (typeof value === 'function') Object.assign(element, { [name]: value });
  else element.setAttribute(name, value === true ? '' : String(value));
}

/** @param {Element} parent @param {unknown} child */
function add(parent, child) {
  if (Array.isArray(child)) for (const each of child) add(parent, each);
  else if (child instanceof Node) parent.append(child);
  else if (child !== null && child !== undefined && child !== false && child !== '') parent.append(String(child));
}

/**
 * Updates the page to match the new drawing without touching equal nodes, so that focus, scroll position, selected
 * text and opened details survive a live update. Children with a `data-key` are matched wherever they moved to; an element
 * with `data-keep` is never changed.
 * @param {Element} parent
 * @param {unknown[]} drawn
 */
export function morphChildren(parent, drawn) {
  const fresh = drawn.flat().filter((node) => node instanceof Node);
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
