/**
 * The chips of a long text in blocks, of which only those near the visible part are on the page.
 */

import { element } from './dom.js';

const BLOCK = 128;
/** Guessed pixels of a chip with its gap, until a block was seen. */
const CHIP = { width: 52, height: 31 };
/** Pixels before and after the visible part that are filled too. */
const AHEAD = 300;

/**
 * @param {HTMLElement} host scrolls
 * @param {Object} of
 * @param {number} of.count chips
 * @param {(first: number, last: number) => HTMLElement[]} of.build the nodes of a block
 * @param {(first: number, last: number) => void} of.drop the block left the page
 */
export function createBlocks(host, { count, build, drop }) {
  const perLine = Math.max(1, Math.floor(host.clientWidth / CHIP.width));
  const blocks = Array.from({ length: Math.ceil(count / BLOCK) }, (_, at) => {
    const [first, last] = [at * BLOCK, Math.min(count, (at + 1) * BLOCK)];
    const node = element('div.chip-block', { role: 'presentation' });
    node.style.minHeight = `${Math.ceil((last - first) / perLine) * CHIP.height}px`;
    return { node, first, last, isFull: false };
  });

  /** @param {typeof blocks[number]} block */
  function fill(block) {
    if (block.isFull) return;
    block.isFull = true;
    block.node.replaceChildren(...build(block.first, block.last));
    block.node.style.minHeight = '';
  }

  /** @param {typeof blocks[number]} block */
  function empty(block) {
    if (!block.isFull || block.node.contains(document.activeElement)) return;
    block.isFull = false;
    block.node.style.minHeight = `${block.node.offsetHeight}px`;
    block.node.replaceChildren();
    drop(block.first, block.last);
  }

  const sight = new IntersectionObserver(
    (entries) => {
      for (const { target, isIntersecting } of entries) {
        const block = blocks.find(({ node }) => node === target);
        if (block) (isIntersecting ? fill : empty)(block);
      }
    },
    { root: host, rootMargin: `${AHEAD}px 0px` },
  );
  host.replaceChildren(...blocks.map(({ node }) => node));
  fill(blocks[0]);
  for (const { node } of blocks) sight.observe(node);

  return {
    /** @param {number} index of a chip that is needed now */
    need: (index) => fill(blocks[Math.floor(index / BLOCK)]),
    destroy: () => sight.disconnect(),
  };
}
