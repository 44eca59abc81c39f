/**
 * Building DOM. Text always goes in as text, never as markup.
 */

/**
 * @param {string} tag
 * @param {Record<string, any>} [attributes] `class`, `data-…`, `aria-…`, or `on…` listeners; null, undefined and false are left out
 * @param {...(Node|string|null)} children
 * @returns {HTMLElement}
 */
export function element(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith('on')) node.addEventListener(name.slice(2), value);
    else if (value !== null && value !== undefined && value !== false)
      node.setAttribute(name, value === true ? '' : value);
  }
  node.append(...children.filter((child) => child !== null));
  return node;
}
