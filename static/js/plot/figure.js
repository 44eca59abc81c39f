/**
 * The types of views and figures. Axes count cells (0, 1, 2 …) and carry labels as ticks: on a category
 * axis Plotly would merge tokens that occur twice and read "2024" as a number.
 */

export {};

/**
 * @import { Answer } from '../api/answers.js'
 * @import { Field } from '../state/state.js'
 * @import { Term } from '../ui/formula.js'
 */

/** A kind of parts of the map of the model. @typedef {'embedding'|'layer'|'head'|'expert'|'network'|'stream'|'bridge'|'logits'|'loop'|'model'} Kind */

/** @typedef {Record<string, any>} PlotlyTrace */

/** @typedef {{width: number, height: number, margin: {l: number, r: number, t: number, b: number}} & Record<string, any>} Layout of Plotly */

/** @typedef {{data: PlotlyTrace[], layout: Layout, labelled?: string}} Drawing `labelled`: a sentence if not every token has its label */

/** @typedef {{theme: 'light'|'dark', font: string, surface: string, sunken: string, ink: string, muted: string, line: string, query: string, key: string, beam: string}} Palette colours as `rgb(…)` */

/**
 * @typedef {Object} Figure
 * @property {string} title
 * @property {string} [summary] one sentence for screen readers
 * @property {PlotlyTrace[]} [data] Plotly's traces
 * @property {Layout} [layout] Plotly's layout
 * @property {Grid} [grid]
 * @property {string} [notice] replaces the drawing, if there is nothing to draw
 * @property {boolean} [isWaiting] the notice is temporary: the previous drawing may stay, dimmed
 * @property {string} [help] one sentence under the title
 * @property {Term[]} [formula] its lines, above the help
 * @property {string[][]} [facts] pairs of a name and a number
 * @property {{ask: Ask, trace: Trace}[]} [held] the answers that a saved page of a long text takes as they are
 * @property {Control[]} [controls] switches below it, which change what is drawn
 * @property {{label: string, patch?: Patch, href?: string}[]} [actions] buttons below it, each a change of the state or a link
 */

/** @typedef {Figure & Drawing & {grid: Grid}} DrawnFigure a figure without a notice */

/**
 * The drawing context of a view: size, colours, answers and models.
 * @typedef {Object} Frame
 * @property {number} width pixels the drawing may take
 * @property {number} [pageWidth] of the page's own drawing, where this one is for paper
 * @property {number} height pixels it should not exceed
 * @property {number} [stretch] how much wider than high the cells of a square map may be
 * @property {Palette} palette
 * @property {boolean} [isSaved] the page is a file that no server answers
 * @property {number} layer
 * @property {number} head
 * @property {Record<string, Answer>} answers to the view's requests, by name
 * @property {Card[]} cards of all models, in short
 */

/**
 * The input of a view: the page's state, the view's own fields, and the frame.
 * @typedef {State & Frame & Record<string, any>} ViewState
 */

/** @typedef {State & Omit<Frame, 'width'|'layer'|'head'> & Record<string, any>} PageState what the page draws a view from */

/**
 * Layout of several figures. `pair`: two side by side; `triple`: three side by side, the rest
 * below; `many`: as many as fit; `led`: the first in its own row, the rest as `many`; `steps`: one
 * below the other, each next to its text.
 * @typedef {'pair'|'triple'|'many'|'led'|'steps'|''} Arrangement
 */

/** @typedef {{element: HTMLElement, isFirst?: boolean, show: (trace: Trace, state: ViewState) => void, state?: () => {generation: Writing}, leave?: () => void}} Overview */

/**
 * A view as the page knows it before it is opened.
 * @typedef {Object} ViewEntry
 * @property {string} id
 * @property {string} title
 * @property {(card: Card) => string} [titleFor] if it depends on the model
 * @property {Kind} of the parts of the map that open it
 * @property {(card: Card) => boolean} [isOffered] only for models that have what it shows; absent: for all
 * @property {(trace: Trace) => boolean} [isListed] only for texts that it adds something to; absent: for all
 * @property {boolean} [isMore] true: listed behind a button
 * @property {string[]} [needs] globs over sites that every model has, or `analyses.<id>.<array>`
 * @property {(card: Card) => string[]} [also] globs over sites that only some models have
 * @property {Record<string, Field<any>>} [fields] its own part of the state
 * @property {'heads'|'maps'|'generation'|'atlas'} [overview] the part of the view that is not a figure
 */

/**
 * @typedef {Object} ViewCode
 * @property {string} help one sentence
 * @property {Record<string, string>} terms the meaning of each word
 * @property {(trace: Trace, state: ViewState) => {help?: string, terms?: Record<string, string>, answer?: string[]}} [wording] texts that depend on the model; `answer`: sentences above the drawings, the first a headline
 * @property {(trace: Trace, state: ViewState) => {id: string, title: string}[]} [places] the attentions or stacks to choose from, if there are several
 * @property {(trace: Trace, state: ViewState) => string|undefined} [place] the open one
 * @property {(trace: Trace, state: ViewState) => Record<string, Ask>} [asks] bodies of the other requests that this state needs, by name
 * @property {(trace: Trace, state: ViewState) => Promise<void>|undefined} [prepare] loads modules that only some states need; undefined: nothing is left to load
 * @property {(trace: Trace, state: ViewState) => Control[]} [controls] its switches
 * @property {(handlers: Handlers) => Overview} [createOverview] builds that part
 * @property {(trace: Trace, state: ViewState, by: number) => Patch|null} [walk] a step on or back, by the arrow keys of the page; null: there is none
 * @property {() => Promise<(handlers: Handlers) => Overview>} [loadOverview] loads what builds it, after the first drawing
 * @property {Arrangement | ((trace: Trace, state: ViewState) => Arrangement)} [arrangement] of several figures; absent: one below the other
 * @property {(trace: Trace, state: ViewState) => {id: string, state: Patch, isWide?: boolean}[]} [panels] several figures, each with its own state; `isWide`: over all columns
 * @property {(trace: Trace, state: ViewState) => Figure} figure
 */

/** @typedef {ViewEntry & ViewCode} View */

/**
 * Typography of the labels of an axis.
 * @typedef {Object} Lettering
 * @property {number} size of the type, in pixels
 * @property {number} letters after which a label is cut
 * @property {number} space pixels a label needs along its axis
 */
