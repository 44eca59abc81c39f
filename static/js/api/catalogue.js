/**
 * The models that the server offers.
 */

import { fetchPositional, fetchTrace, Problem } from './api.js';
import { choosingModel } from '../state/state.js';

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
 * What a model is called in a sentence, as the menu calls it.
 * @param {Object|undefined} card
 * @param {string} [id] where there may be no card
 * @returns {string}
 */
export function modelName(card, id = card?.id ?? '') {
  return card?.title || id;
}

/**
 * Why a model cannot be had, and which can be had instead.
 * @param {Catalogue} catalogue
 * @param {string} id
 * @returns {Problem & {offer?: {label: string, patch: Object}}}
 */
export function refusalOf(catalogue, id) {
  const standard = cardOf(catalogue, '');
  const offer = standard && {
    label: `Read it with ${modelName(standard)}`,
    patch: choosingModel(''),
  };
  return Object.assign(reasonOf(catalogue, id), { offer });
}

function reasonOf({ models, unavailable = [] }, id) {
  const damaged = unavailable.find((model) => model.id === id);
  if (damaged)
    return new Problem({
      title: 'Damaged model',
      detail: `The model “${id}” is damaged: ${damaged.reason}`,
      status: 404,
    });
  if (models.length === 0)
    return new Problem({
      title: 'No model is here',
      detail: 'The server offers none.',
      status: 500,
    });
  const known = models.map((card) => card.id).join(', ');
  return new Problem({
    title: 'Unknown model',
    detail: `There is no model “${id}” here; there are: ${known}.`,
    status: 404,
  });
}

/**
 * A trace with the card of the model that made it; or, where that is what is asked for, an encoding
 * of positions.
 * @param {Catalogue} catalogue
 * @param {Object} body
 * @param {AbortSignal} signal
 * @returns {Promise<import('../data/trace.js').Trace>}
 */
export async function fetchAnswer(catalogue, body, signal) {
  if (body.positional) return fetchPositional(body.positional, signal);
  const { model, text, target } = body;
  const trace = await fetchTrace(body, signal);
  return {
    ...trace,
    card: cardOf(catalogue, model),
    asked: { model, text, ...(target !== undefined && { target }) },
  };
}
