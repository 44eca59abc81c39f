/**
 * The reading of a text: the model and text that are requested, and the answers to what views
 * request. Another text cancels a request; a failed connection repeats it. It knows nothing of the
 * page, which is told of each turn.
 */

import { LONG_VIEW } from '../state/store.js';
import {
  asProblem,
  cardOf,
  inTokens,
  isForOverview,
  isTooLong,
  isWorthRetrying,
  NO_MODELS,
  refusalOf,
} from './calls.js';
import { bodyOf, createRequestCache } from './answers.js';
import * as server from './answers.js';

/**
 * @import { Ask, Trace } from '../trace/trace.js'
 * @import { Card } from '../trace/card.js'
 * @import { Store } from '../state/store.js'
 * @import { Catalogue, Problem } from './calls.js'
 */

/**
 * @typedef {Object} Told what the page is told
 * @property {() => void} onStart all pending requests were cancelled
 * @property {(catalogue: Catalogue) => void} onCatalogue
 * @property {(card: Card, isKnown: boolean) => void} onModel that reads the text; `isKnown`: it is in the catalogue
 * @property {(isReading: boolean) => void} onReading
 * @property {(card: Card) => void} onLoading progress of a model that the server loads
 * @property {(progress: server.Progress, body: Ask) => void} onProgress of a long text that is read
 * @property {(trace: Trace) => void} onTrace
 * @property {() => void} onEmpty there is no text to read
 * @property {() => void} onDrop there is no trace any more
 * @property {(problem: Problem, goesOn: boolean, isBehind: boolean) => void} onProblem `goesOn`: it is requested again; `isBehind`: the trace of an earlier text stays
 * @property {(length: number) => void} onBeginning the characters of a text that was too long which fit
 * @property {() => void} onAnswer to a request of a view, or the full card
 */

/** @typedef {ReturnType<typeof createReader>} Reader */

/**
 * @param {Object} by
 * @param {Store} by.store
 * @param {{whole: (card: Card) => Ask, overview: (card: Card) => Ask}} by.asks what all views need, and what the view of long texts needs
 * @param {{after: (problem: Problem) => boolean, stop: () => void}} by.retrier calls `start` again
 * @param {Told} by.told
 * @param {Pick<typeof server, 'fetchModels'|'fetchAnswer'|'fittingText'|'readyModel'>} [by.from]
 */
export function createReader({ store, asks, retrier, told, from = server }) {
  let catalogue = NO_MODELS;
  /** The card of the model in use, in short. @type {Card|null} */
  let card = null;
  /** @type {Trace|null} */
  let trace = null;
  /** True: the trace is of an earlier text, because the server did not respond. */
  let isBehind = false;
  let isReading = false;
  let controller = new AbortController();
  /** The text of the last file; if it is too long for the other views, the overview opens. */
  let fileText = '';
  let isCardWanted = false;
  /** @type {Record<string, Ask>} */
  let lastBodies = {};
  const answers = createRequestCache({
    fetch: (body, signal) => from.fetchAnswer(catalogue, body, signal, told.onProgress),
    onArrival: told.onAnswer,
  });

  /** Cancel all pending requests. */
  function newSignal() {
    controller.abort();
    told.onStart();
    controller = new AbortController();
    return controller.signal;
  }

  /** @param {boolean} isBusy */
  function tellReading(isBusy) {
    isReading = isBusy;
    told.onReading(isBusy);
  }

  /** Fetch the models, then the trace; a restarted server may have other models. */
  async function start() {
    const signal = newSignal();
    tellReading(true);
    try {
      await fetchCatalogue(signal);
      if (signal.aborted) return;
      if (catalogue.models.length === 0) throw refusalOf(catalogue, store.state.model);
      await read();
    } catch (error) {
      if (!signal.aborted) fail(error);
    }
  }

  /** @param {AbortSignal} signal */
  async function fetchCatalogue(signal) {
    const models = await from.fetchModels(signal);
    if (signal.aborted) return;
    catalogue = models;
    told.onCatalogue(catalogue);
  }

  /** Request the trace of the text; a pending request is cancelled. */
  async function read() {
    if (catalogue.models.length === 0) {
      await start();
      return;
    }
    const signal = newSignal();
    const wanted = cardOf(catalogue, store.state.model);
    card = wanted ?? cardOf(catalogue, '') ?? catalogue.models[0];
    store.begin(card);
    told.onModel(card, wanted !== undefined);
    if (!wanted) {
      fail(refusalOf(catalogue, store.state.model));
      return;
    }
    if (store.state.text?.trim() === '') {
      drop();
      retrier.stop();
      told.onEmpty();
      return;
    }
    tellReading(true);
    try {
      await fetchTrace(wanted, signal);
    } catch (error) {
      if (!signal.aborted) fail(error);
    }
  }

  /** @param {Card} wanted in short @param {AbortSignal} signal */
  async function fetchTrace(wanted, signal) {
    const { target } = store.state;
    const text = store.state.text ?? '';
    const ready = await from.readyModel(wanted, signal, told.onLoading);
    if (signal.aborted) return;
    card = ready;
    // A foreign model's short card is complete once it is loaded.
    if (card !== wanted && wanted.state !== 'loaded') await fetchCatalogue(signal);
    if (signal.aborted) return;
    told.onModel(card, true);
    const asked = { model: card.id, text, ...(target !== null && { target }) };
    const answer = await fetchWhole(asked, card, signal);
    if (signal.aborted) return;
    answers.retry();
    trace = { ...answer, asked };
    isBehind = false;
    tellReading(false);
    retrier.stop();
    store.fit();
    told.onTrace(trace);
  }

  /**
   * Return the trace of a text; of one that is too long for the other views, what the overview shows.
   * @param {Ask} asked
   * @param {Card} of
   * @param {AbortSignal} signal
   * @returns {Promise<Trace>}
   */
  async function fetchWhole(asked, of, signal) {
    try {
      return await from.fetchAnswer(catalogue, { ...asked, ...asks.whole(of) }, signal);
    } catch (error) {
      if (!isForOverview(asProblem(error), of) || signal.aborted) throw error;
      if (asked.text === fileText) store.openLong();
      if (store.state.view !== LONG_VIEW) throw error;
      const body = { ...asked, ...asks.overview(of) };
      return await from.fetchAnswer(catalogue, body, signal, told.onProgress);
    }
  }

  /** Drop the trace and all pending requests. */
  function drop() {
    trace = null;
    isBehind = false;
    want({});
    told.onDrop();
    tellReading(false);
  }

  /** Tell of a problem; after a failed connection the earlier trace stays. @param {unknown} error */
  function fail(error) {
    const { target, view } = store.state;
    const problem = card ? inTokens(asProblem(error), card) : asProblem(error);
    if (target !== null) problem.texts = 'the text or your translation';
    isBehind = trace !== null && (isWorthRetrying(problem) || isTooLong(problem));
    if (isBehind) tellReading(false);
    else drop();
    const reads = target === null ? card : null;
    if (reads && view !== LONG_VIEW && isForOverview(problem, reads))
      problem.further = { label: 'Show an overview of the whole text', patch: { view: LONG_VIEW } };
    told.onProblem(problem, retrier.after(problem), isBehind);
    if (reads && isTooLong(problem)) offerBeginning(problem, reads);
  }

  /**
   * Tell what of the text fits, and offer to read that.
   * @param {Problem} problem
   * @param {Card} of
   */
  async function offerBeginning(problem, of) {
    const { text } = store.state;
    const { signal } = controller;
    try {
      const fits = await from.fittingText({ card: of, text: text ?? '' }, problem, signal);
      if (signal.aborted || store.state.text !== text) return;
      told.onBeginning(fits.text.length);
      const patch = store.withStandards({ text: fits.text });
      told.onProblem(
        Object.assign(problem, { offer: { label: `Read ${fits.words}`, patch } }),
        false,
        isBehind,
      );
    } catch {
      // The problem itself is told already.
    }
  }

  /**
   * Return answers by name. Once the full card of the model in use is wanted, it stays so, but
   * nothing is held up for it.
   * @param {Record<string, Ask>} bodies
   */
  function want(bodies) {
    lastBodies = bodies;
    const { ofPage: _, ...wanted } = answers.want({
      ...bodies,
      ...(card && isCardWanted && { ofPage: { card: card.id } }),
    });
    return wanted;
  }

  return {
    start,
    read,

    get catalogue() {
      return catalogue;
    },

    get card() {
      return card;
    },

    /** Return the trace that is shown: that of the text, or of an earlier one. */
    get trace() {
      return trace;
    },

    /** Return true if the text has no trace: there is none, or only that of an earlier text. */
    get isBehind() {
      return trace === null || isBehind;
    },

    /** Request the full card of the model in use from now on. */
    wantCard() {
      if (isCardWanted) return;
      isCardWanted = true;
      if (trace) want(lastBodies);
    },

    /**
     * Return the card of the model in use: in short until the full one is wanted and arrives. That
     * of a foreign model was read when it was loaded: an answer from before knows less.
     */
    fullCard() {
      if (!card || card.sites || !isCardWanted) return card;
      return answers.find({ card: card.id }).trace?.card ?? card;
    },

    /** Read the text unless that was done, or is being done. */
    readIfStopped() {
      if (trace === null || isBehind || controller.signal.aborted) read();
    },

    /** Keep in mind that a text is that of a file. @param {string} text */
    expectFile(text) {
      fileText = text;
    },

    /**
     * Return the answers to the requests of a view.
     * @param {Record<string, Ask>} wanted by the view's names for them
     */
    answersTo(wanted) {
      const of = /** @type {Trace} */ (trace);
      const bodies = Object.entries(wanted).map(([name, ask]) => [name, bodyOf(ask, of)]);
      return want(Object.fromEntries(bodies));
    },

    /** Request again what views were refused: the network is back. */
    retry() {
      answers.retry();
      if (trace) told.onAnswer();
    },

    /** Abandon the earlier text, because another one is being typed. */
    abandon() {
      controller.abort();
      retrier.stop();
    },

    /**
     * Cancel the pending requests; the server stops working on them.
     * @returns {boolean} was the text being read?
     */
    cancel() {
      if (!isReading) {
        answers.cancel();
        return false;
      }
      controller.abort();
      tellReading(false);
      return true;
    },
  };
}
