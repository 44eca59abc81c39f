/**
 * The models that the server offers.
 */

import { Problem } from './api.js';

/** @typedef {{default: string, models: Object[], unavailable?: {id: string, reason: string}[]}} Catalogue */

/** @type {Catalogue} before the server was asked */
export const NO_MODELS = Object.freeze({ default: '', models: [] });

/**
 * @param {Catalogue} catalogue
 * @param {string} id '' is the server's default
 * @returns {Object|undefined} the model's card
 */
export function cardOf({ models, default: standard }, id) {
  return models.find((card) => card.id === (id || standard));
}

/**
 * Why a model cannot be had.
 * @param {Catalogue} catalogue
 * @param {string} id
 * @returns {Problem}
 */
export function refusalOf({ models, unavailable = [] }, id) {
  const damaged = unavailable.find((model) => model.id === id);
  if (damaged) return new Problem({ title: 'Damaged model', detail: `The model “${id}” is damaged: ${damaged.reason}`, status: 404 });
  if (models.length === 0) return new Problem({ title: 'No model is here', detail: 'The server offers none.', status: 500 });
  const known = models.map((card) => card.id).join(', ');
  return new Problem({ title: 'Unknown model', detail: `There is no model “${id}” here; there are: ${known}.`, status: 404 });
}
