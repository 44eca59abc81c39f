/**
 * The link past the head of the page. Where it leads is focused rather than gone to: the address
 * holds the view.
 */

/**
 * @param {HTMLAnchorElement} link
 * @param {HTMLElement} instead takes the focus while there is nothing to skip to
 */
export function createSkip(link, instead) {
  const target = document.querySelector(link.getAttribute('href'));
  link.addEventListener('click', (event) => {
    event.preventDefault();
    (target.hidden ? instead : target).focus();
  });
}
