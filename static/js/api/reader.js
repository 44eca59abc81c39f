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
import { readIn } from '../state/conversation.js';
import { bodyOf, createRequestCache } from './answers.js';
import * as server from './answers.js';
import { joined, layerAsk, layerFirst, withAllLayers } from '../trace/layered.js';

/** @import { Problem } from './calls.js' */

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

/** Reads the text that the state names; it knows nothing of the page. */
export class Reader {
  #by;
  catalogue = NO_MODELS;
  /** The card of the model in use, in short. @type {Card|null} */
  card = null;
  /** @type {Trace|null} */
  trace = null;
  /** True: the trace is of an earlier text, because the server did not respond. */
  #isBehind = false;
  #isReading = false;
  #controller = new AbortController();
  /** The text of the last file; if it is too long for the other views, the overview opens. */
  #fileText = '';
  #isCardWanted = false;
  /** @type {Record<string, Ask>} */
  #lastBodies = {};
  /** The layer whose weights are awaited. @type {Ask|null} */
  #layer = null;
  #answers;

  /**
   * @param {Object} by
   * @param {Store} by.store
   * @param {{whole: (card: Card) => Ask, overview: (card: Card) => Ask}} by.asks what all views need, and what the view of long texts needs
   * @param {{after: (problem: Problem) => boolean, stop: () => void}} by.retrier calls `start` again
   * @param {Told} by.told
   * @param {Pick<typeof server, 'fetchModels'|'fetchAnswer'|'fittingText'|'readyModel'>} [by.from]
   */
  constructor({ store, asks, retrier, told, from = server }) {
    this.#by = { store, asks, retrier, told, from };
    this.#answers = createRequestCache({
      fetch: (body, signal) =>
        this.#by.from.fetchAnswer(this.catalogue, body, signal, this.#by.told.onProgress),
      onArrival: () => {
        this.#joinLayer();
        this.#by.told.onAnswer();
      },
    });
  }

  /** Cancel all pending requests. */
  #newSignal() {
    this.#controller.abort();
    this.#by.told.onStart();
    this.#controller = new AbortController();
    return this.#controller.signal;
  }

  /** @param {boolean} isBusy */
  #tellReading(isBusy) {
    this.#isReading = isBusy;
    this.#by.told.onReading(isBusy);
  }

  /** Fetch the models, then the trace; a restarted server may have other models. */
  async start() {
    const signal = this.#newSignal();
    this.#tellReading(true);
    try {
      await this.#fetchCatalogue(signal);
      if (signal.aborted) return;
      if (this.catalogue.models.length === 0)
        throw refusalOf(this.catalogue, this.#by.store.state.model);
      await this.read();
    } catch (error) {
      if (!signal.aborted) this.#fail(error);
    }
  }

  /** @param {AbortSignal} signal */
  async #fetchCatalogue(signal) {
    const models = await this.#by.from.fetchModels(signal);
    if (signal.aborted) return;
    this.catalogue = models;
    this.#by.told.onCatalogue(this.catalogue);
  }

  /** Request the trace of the text; a pending request is cancelled. */
  async read() {
    if (this.catalogue.models.length === 0) {
      await this.start();
      return;
    }
    const signal = this.#newSignal();
    const wanted = cardOf(this.catalogue, this.#by.store.state.model);
    this.card = wanted ?? cardOf(this.catalogue, '') ?? this.catalogue.models[0];
    this.#by.store.begin(this.card);
    this.#by.told.onModel(this.card, wanted !== undefined);
    if (!wanted) {
      this.#fail(refusalOf(this.catalogue, this.#by.store.state.model));
      return;
    }
    const said = readIn(this.#by.store.state);
    // White space has tokens in most models, but not in those of this project.
    const isOwn = (this.card.architecture ?? 'headlight') === 'headlight';
    if (
      'messages' in said
        ? said.messages.length === 0
        : (isOwn ? said.text.trim() : said.text) === ''
    ) {
      this.#drop();
      this.#by.retrier.stop();
      this.#by.told.onEmpty();
      return;
    }
    this.#tellReading(true);
    try {
      await this.#fetchTrace(wanted, signal);
    } catch (error) {
      if (!signal.aborted) this.#fail(error);
    }
  }

  /** @param {Card} wanted in short @param {AbortSignal} signal */
  async #fetchTrace(wanted, signal) {
    const { target } = this.#by.store.state;
    const ready = await this.#by.from.readyModel(wanted, signal, this.#by.told.onLoading);
    if (signal.aborted) return;
    this.card = ready;
    // A foreign model's short card is complete once it is loaded.
    if (this.card !== wanted && wanted.state !== 'loaded') await this.#fetchCatalogue(signal);
    if (signal.aborted) return;
    this.#by.told.onModel(this.card, true);
    const said = readIn(this.#by.store.state);
    const asked = { model: this.card.id, ...said, ...(target !== null && { target }) };
    const answer = await this.#fetchWhole(asked, this.card, signal);
    if (signal.aborted) return;
    this.#answers.retry();
    this.#layer = null;
    this.trace = { ...answer, asked };
    this.#isBehind = false;
    this.#tellReading(false);
    this.#by.retrier.stop();
    this.#by.store.fit();
    this.#by.told.onTrace(this.trace);
  }

  /**
   * Return the trace of a text; of one that is too long for the other views, what the overview shows.
   * @param {Ask} asked
   * @param {Card} of
   * @param {AbortSignal} signal
   * @returns {Promise<Trace>}
   */
  async #fetchWhole(asked, of, signal) {
    const whole = { ...asked, ...this.#by.asks.whole(of) };
    try {
      return await this.#by.from.fetchAnswer(this.catalogue, whole, signal);
    } catch (error) {
      const trace = await this.#fetchLayered(whole, of, asProblem(error), signal);
      if (trace) return trace;
      if (!isForOverview(asProblem(error), of) || signal.aborted) throw error;
      if (asked.text !== undefined && asked.text === this.#fileText) this.#by.store.openLong();
      if (this.#by.store.state.view !== LONG_VIEW) throw error;
      const body = { ...asked, ...this.#by.asks.overview(of) };
      return await this.#by.from.fetchAnswer(
        this.catalogue,
        body,
        signal,
        this.#by.told.onProgress,
      );
    }
  }

  /**
   * Return the trace of a text whose weights are too many for one answer, with those of one layer;
   * null: that is too much, too, or the overview is open.
   * @param {Ask} whole
   * @param {Card} of
   * @param {Problem} problem
   * @param {AbortSignal} signal
   * @returns {Promise<Trace|null>}
   */
  async #fetchLayered(whole, of, { type }, signal) {
    const { view, layer } = this.#by.store.state;
    const ask = layerFirst(whole, of, layer);
    if (!type?.endsWith(':too-many-cells') || !ask || view === LONG_VIEW) return null;
    try {
      const trace = await this.#by.from.fetchAnswer(this.catalogue, ask, signal);
      return withAllLayers(trace, of);
    } catch (error) {
      if (!asProblem(error).type?.endsWith(':too-many-cells')) throw error;
      return null;
    }
  }

  /** Request the weights of a layer, which join the trace when they arrive. @param {number} layer @returns {server.Answer} */
  wantLayer(layer) {
    const trace = /** @type {Trace & {card: Card}} */ (this.trace);
    this.#layer = bodyOf(layerAsk(trace.card, layer), trace);
    this.#want({});
    return this.#answers.find(this.#layer);
  }

  #joinLayer() {
    const answer = this.#layer && this.#answers.find(this.#layer).trace;
    if (!answer || !this.trace) return;
    this.#layer = null;
    this.trace = joined(this.trace, answer);
  }

  /** Drop the trace and all pending requests. */
  #drop() {
    this.trace = null;
    this.#isBehind = false;
    this.#want({});
    this.#by.told.onDrop();
    this.#tellReading(false);
  }

  /** Tell of a problem; after a failed connection the earlier trace stays. @param {unknown} error */
  #fail(error) {
    const { target, view } = this.#by.store.state;
    const problem = this.card ? inTokens(asProblem(error), this.card) : asProblem(error);
    if (target !== null) problem.texts = 'the text or your translation';
    this.#isBehind = this.trace !== null && (isWorthRetrying(problem) || isTooLong(problem));
    if (this.#isBehind) this.#tellReading(false);
    else this.#drop();
    const reads = target === null ? this.card : null;
    if (reads && view !== LONG_VIEW && isForOverview(problem, reads))
      problem.further = { label: 'Show an overview of the whole text', patch: { view: LONG_VIEW } };
    this.#by.told.onProblem(problem, this.#by.retrier.after(problem), this.#isBehind);
    const isText = 'text' in readIn(this.#by.store.state);
    if (reads && isText && isTooLong(problem)) this.#offerBeginning(problem, reads);
  }

  /**
   * Tell what of the text fits, and offer to read that.
   * @param {Problem} problem
   * @param {Card} of
   */
  async #offerBeginning(problem, of) {
    const { text } = this.#by.store.state;
    const { signal } = this.#controller;
    try {
      const fits = await this.#by.from.fittingText({ card: of, text: text ?? '' }, problem, signal);
      if (signal.aborted || this.#by.store.state.text !== text) return;
      this.#by.told.onBeginning(fits.text.length);
      const isOfPair = fits.text === text; // the second sentence is what is too long
      const patch = this.#by.store.withStandards(isOfPair ? { pair: '' } : { text: fits.text });
      const label = `Read ${isOfPair ? 'without the second sentence' : fits.words}`;
      this.#by.told.onProblem(
        Object.assign(problem, { offer: { label, patch } }),
        false,
        this.#isBehind,
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
  #want(bodies) {
    this.#lastBodies = bodies;
    const {
      ofPage: _,
      ofLayer: __,
      ...wanted
    } = this.#answers.want({
      ...bodies,
      ...(this.#layer && { ofLayer: this.#layer }),
      ...(this.card && this.#isCardWanted && { ofPage: { card: this.card.id } }),
    });
    return wanted;
  }

  /** Return true if the text has no trace: there is none, or only that of an earlier text. */
  get isBehind() {
    return this.trace === null || this.#isBehind;
  }

  /** Request the full card of the model in use from now on. */
  wantCard() {
    if (this.#isCardWanted) return;
    this.#isCardWanted = true;
    if (this.trace) this.#want(this.#lastBodies);
  }

  /**
   * Return the card of the model in use: in short until the full one is wanted and arrives. That
   * of a foreign model was read when it was loaded: an answer from before knows less.
   */
  fullCard() {
    if (!this.card || this.card.sites || !this.#isCardWanted) return this.card;
    return this.#answers.find({ card: this.card.id }).trace?.card ?? this.card;
  }

  /** Read the text unless that was done, or is being done. */
  readIfStopped() {
    if (this.trace === null || this.#isBehind || this.#controller.signal.aborted) this.read();
  }

  /** Keep in mind that a text is that of a file. @param {string} text */
  expectFile(text) {
    this.#fileText = text;
  }

  /**
   * Return the answers to the requests of a view.
   * @param {Record<string, Ask>} wanted by the view's names for them
   */
  answersTo(wanted) {
    const of = /** @type {Trace} */ (this.trace);
    const bodies = Object.entries(wanted).map(([name, ask]) => [name, bodyOf(ask, of)]);
    return this.#want(Object.fromEntries(bodies));
  }

  /** Request again what views were refused: the network is back. */
  retry() {
    this.#answers.retry();
    if (this.trace) this.#by.told.onAnswer();
  }

  /** Abandon the earlier text, because another one is being typed. */
  abandon() {
    this.#controller.abort();
    this.#by.retrier.stop();
  }

  /**
   * Cancel the pending requests; the server stops working on them.
   * @returns {boolean} was the text being read?
   */
  cancel() {
    if (!this.#isReading) {
      this.#answers.cancel();
      return false;
    }
    this.#controller.abort();
    this.#tellReading(false);
    return true;
  }
}
