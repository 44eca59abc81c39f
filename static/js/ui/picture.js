/** A part of the page as a picture. Loaded when one is saved. */

import { element, palette, save } from './dom.js';

/** Pixels of a saved picture for one of the page, and the margin around it. */
const PICTURE = { scale: 2, margin: 8 };

/**
 * Save a part of the page as a PNG: its canvases, and words as they appear on it.
 * @param {HTMLElement} part
 * @param {string} words a selector
 * @param {string} name of the file
 * @param {(message: string) => void} announce
 */
export async function savePicture(part, words, name, announce) {
  try {
    announce(save(await pictureOf(part, words), name));
  } catch (error) {
    announce(`Export failed: ${/** @type {Error} */ (error).message}.`);
  }
}

/** @param {HTMLElement} part @param {string} words @returns {Promise<Blob>} */
function pictureOf(part, words) {
  const { scale, margin } = PICTURE;
  const box = part.getBoundingClientRect();
  const [width, height] = [box.width, box.height].map((side) =>
    Math.ceil((side + 2 * margin) * scale),
  );
  const picture = element('canvas', { width, height });
  const context = picture.getContext('2d');
  if (!context) throw new Error('this browser paints no pictures');
  context.fillStyle = palette().surface;
  context.fillRect(0, 0, width, height);
  context.scale(scale, scale);
  context.translate(margin - box.left, margin - box.top);
  context.imageSmoothingEnabled = false;
  for (const canvas of part.querySelectorAll('canvas')) {
    const place = canvas.getBoundingClientRect();
    if (place.width > 0)
      context.drawImage(canvas, place.left, place.top, place.width, place.height);
  }
  for (const node of part.querySelectorAll(words)) write(context, node);
  return new Promise((resolve, reject) => {
    const tooLarge = 'the picture is too large for this browser; save a single head instead';
    picture.toBlob((blob) => (blob ? resolve(blob) : reject(new Error(tooLarge))));
  });
}

/** Write a word as it appears on the page. @param {CanvasRenderingContext2D} context @param {Element} node */
function write(context, node) {
  const words = node.textContent.trim();
  const range = document.createRange();
  range.selectNodeContents(node);
  const { left, top, width, height } = range.getBoundingClientRect();
  if (words === '' || width === 0) return;
  const { color, fontSize, fontWeight, fontFamily } = getComputedStyle(node);
  context.fillStyle = color;
  context.font = `${fontWeight} ${fontSize} ${fontFamily}`;
  context.textBaseline = 'middle';
  context.fillText(words, left, top + height / 2);
}
