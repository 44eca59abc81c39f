/**
 * The maps of all heads as an image, with the words over them.
 */

import { palette, partOf } from './dom.js';

const SCALE = 2;
const MARGIN = 8;
const WORDS = '.heads-label:not(.is-corner), .heads-name > span';

/**
 * @param {HTMLElement} frame around a canvas and the words over it
 * @returns {Promise<Blob>} PNG
 */
export function headsImage(frame) {
  const box = frame.getBoundingClientRect();
  const picture = document.createElement('canvas');
  picture.width = Math.ceil((box.width + 2 * MARGIN) * SCALE);
  picture.height = Math.ceil((box.height + 2 * MARGIN) * SCALE);
  const context = picture.getContext('2d');
  if (!context) throw new Error('this browser paints no pictures');
  const { surface } = palette();
  context.fillStyle = surface;
  context.fillRect(0, 0, picture.width, picture.height);
  context.scale(SCALE, SCALE);
  context.translate(MARGIN, MARGIN);
  context.imageSmoothingEnabled = false;
  const maps = partOf(frame, 'canvas', HTMLCanvasElement);
  context.drawImage(maps, 0, 0, parseFloat(maps.style.width), parseFloat(maps.style.height));
  for (const node of frame.querySelectorAll(WORDS)) write(context, node, box);
  return new Promise((resolve, reject) => {
    picture.toBlob(
      (blob) =>
        blob
          ? resolve(blob)
          : reject(
              new Error('the picture is too large for this browser; save a single head instead'),
            ),
      'image/png',
    );
  });
}

/**
 * A word as it stands on the page.
 * @param {CanvasRenderingContext2D} context
 * @param {Element} node
 * @param {DOMRect} box
 */
function write(context, node, box) {
  const words = node.textContent.trim();
  const range = document.createRange();
  range.selectNodeContents(node);
  const place = range.getBoundingClientRect();
  if (words === '' || place.width === 0) return;
  const { color, fontSize, fontWeight, fontFamily } = getComputedStyle(node);
  context.fillStyle = color;
  context.font = `${fontWeight} ${fontSize} ${fontFamily}`;
  context.textBaseline = 'middle';
  context.fillText(words, place.left - box.left, place.top - box.top + place.height / 2);
}
