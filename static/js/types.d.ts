// The types that most modules speak of, known in every module without an import. Those of views and
// figures are defined here; axes count cells (0, 1, 2 …) and carry labels as ticks: on a category axis
// Plotly would merge tokens that occur twice and read "2024" as a number.

import { Answer } from './api/answers.js';
import { Field } from './state/state.js';
import { Term } from './ui/formula.js';

declare global {
  /** A kind of parts of the map of the model. */
  type Kind =
    | 'embedding'
    | 'layer'
    | 'head'
    | 'expert'
    | 'network'
    | 'stream'
    | 'bridge'
    | 'logits'
    | 'loop'
    | 'model';
  type PlotlyTrace = Record<string, any>;
  /** Of Plotly. */
  type Layout = Record<string, any> & {
    width: number;
    height: number;
    margin: { l: number; r: number; t: number; b: number };
  };
  /** `labelled`: a sentence if not every token has its label. */
  type Drawing = { data: PlotlyTrace[]; layout: Layout; labelled?: string };
  /** Colours as `rgb(…)`. */
  type Palette = { theme: 'light' | 'dark'; font: string } & Record<
    'surface' | 'sunken' | 'ink' | 'muted' | 'line' | 'query' | 'key' | 'beam',
    string
  >;
  interface Figure {
    title: string;
    summary?: string; // one sentence for screen readers
    data?: PlotlyTrace[];
    layout?: Layout;
    grid?: Grid;
    notice?: string; // replaces the drawing, if there is nothing to draw
    isWaiting?: boolean; // the notice is temporary: the previous drawing may stay, dimmed
    help?: string; // one sentence under the title
    formula?: Term[]; // its lines, above the help
    facts?: string[][]; // pairs of a name and a number
    held?: { ask: Ask; trace: Trace }[]; // the answers that a saved page of a long text takes as they are
    controls?: Control[]; // switches below it, which change what is drawn
    actions?: { label: string; patch?: Patch; href?: string; file?: string }[]; // buttons below it
  }
  /** A figure without a notice. */
  type DrawnFigure = Figure & Drawing & { grid: Grid };
  /** The drawing context of a view: size, colours, answers and models. */
  interface Frame {
    width: number; // pixels the drawing may take
    pageWidth?: number; // of the page's own drawing, where this one is for paper
    height: number; // pixels it should not exceed
    stretch?: number; // how much wider than high the cells of a square map may be
    palette: Palette;
    isSaved?: boolean; // the page is a file that no server answers
    layer: number;
    head: number;
    answers: Record<string, Answer>; // to the view's requests, by name
    cards: Card[]; // of all models, in short
  }
  /** The input of a view: the page's state, the view's own fields, and the frame. */
  type ViewState = State & Frame & Record<string, any>;
  /** What the page draws a view from. */
  type PageState = State & Omit<Frame, 'width' | 'layer' | 'head'> & Record<string, any>;
  /**
   * Layout of several figures. `pair`: two side by side; `triple`: three side by side, the rest below;
   * `many`: as many as fit; `led`: the first in its own row, the rest as `many`; `steps`: one below the
   * other, each next to its text.
   */
  type Arrangement = 'pair' | 'triple' | 'many' | 'led' | 'steps' | '';
  interface Overview {
    element: HTMLElement;
    isFirst?: boolean;
    show: (trace: Trace, state: ViewState) => void;
    state?: () => { generation: Writing };
    leave?: () => void;
  }
  type OfView<Part> = (trace: Trace, state: ViewState) => Part;
  /** A view as the page knows it before it is opened. */
  interface ViewEntry {
    id: string;
    title: string;
    titleFor?: (card: Card) => string; // if it depends on the model
    of: Kind; // the parts of the map that open it
    isOffered?: (card: Card) => boolean; // only for models that have what it shows; absent: for all
    isListed?: (trace: Trace) => boolean; // only for texts that it adds something to; absent: for all
    isMore?: boolean; // listed behind a button
    needs?: string[]; // globs over sites that every model has, or `analyses.<id>.<array>`
    also?: (card: Card) => string[]; // globs over sites that only some models have
    fields?: Record<string, Field<any>>; // its own part of the state
    overview?: 'heads' | 'maps' | 'generation' | 'atlas'; // the part of the view that is not a figure
  }
  interface ViewCode {
    help: string; // one sentence
    terms: Record<string, string>; // the meaning of each word
    /** Texts that depend on the model; `answer`: sentences above the drawings, the first a headline. */
    wording?: OfView<{ help?: string; terms?: Record<string, string>; answer?: string[] }>;
    places?: OfView<{ id: string; title: string }[]>; // attentions or stacks to choose from
    place?: OfView<string | undefined>; // the open one
    asks?: OfView<Record<string, Ask>>; // bodies of the other requests that this state needs, by name
    prepare?: OfView<Promise<void> | undefined>; // loads modules that only some states need
    controls?: OfView<Control[]>; // its switches
    createOverview?: (handlers: Handlers) => Overview; // builds that part
    walk?: (trace: Trace, state: ViewState, by: number) => Patch | null; // a step by the arrow keys
    loadOverview?: () => Promise<(handlers: Handlers) => Overview>; // after the first drawing
    arrangement?: Arrangement | OfView<Arrangement>; // of several figures; absent: one below the other
    panels?: OfView<{ id: string; state: Patch; isWide?: boolean }[]>; // `isWide`: over all columns
    figure: OfView<Figure>;
  }
  type View = ViewEntry & ViewCode;
  /** Type of the labels of an axis: its pixels, the letters after which one is cut, its space. */
  type Lettering = { size: number; letters: number; space: number };

  type Index = import('./api/archive.js').Index;
  type Catalogue = import('./api/calls.js').Catalogue;
  type Writing = import('./api/generation.js').Writing;
  type Manifest = import('./api/live_worker.js').Manifest;
  type Call = import('./api/request_code.js').Call;
  type Chapter = import('./api/schemas').Chapter;
  type ChaptersAnswer = import('./api/schemas').ChaptersAnswer;
  type EdgeAnswer = import('./api/schemas').EdgeAnswer;
  type MessageRequest = import('./api/schemas').MessageRequest;
  type NodeAnswer = import('./api/schemas').NodeAnswer;
  type Question = import('./api/schemas').Question;
  type Words = import('./plot/bars.js').Words;
  type Chart = import('./plot/chart.js').Chart;
  type Theme = import('./plot/colour.js').Theme;
  type CellCursor = import('./plot/grid.js').CellCursor;
  type Grid = import('./plot/grid.js').Grid;
  type NumberGrid = import('./plot/grid.js').NumberGrid;
  type PointedCell = import('./plot/grid.js').PointedCell;
  type SentenceLink = import('./plot/grid.js').SentenceLink;
  type Hits = import('./plot/marks/mark.js').Hits;
  type Mark<D> = import('./plot/marks/mark.js').Mark<D>;
  type Meaning<D> = import('./plot/marks/mark.js').Meaning<D>;
  type Plan = import('./plot/marks/mark.js').Plan;
  type Pane = import('./plot/panes.js').Pane;
  type Area = import('./plot/renderer.js').Area;
  type Pixels = import('./plot/renderer.js').Pixels;
  type Band = import('./plot/scales.js').Band;
  type Ramp = import('./plot/scales.js').Ramp;
  type Outcome = import('./rules/chapter.js').Outcome;
  type Arrays = import('./rules/experiment.js').Arrays;
  type Description = import('./rules/experiment.js').Description;
  type ExperimentView = import('./rules/experiment.js').ExperimentView;
  type Result = import('./rules/experiment.js').Result;
  type Values = import('./rules/experiment.js').Values;
  type Effects = import('./rules/prediction.js').Effects;
  type Cover = import('./rules/presentation.js').Cover;
  type Arc = import('./rules/scene.js').Arc;
  type Switches = import('./state/attention_switches.js').Switches;
  type Patch = import('./state/state.js').Patch;
  type State = import('./state/state.js').State;
  type Store = import('./state/store.js').Store;
  type AtlasAsk = import('./trace/atlas.js').AtlasAsk;
  type AtlasHead = import('./api/schemas').AtlasHeadAnswer;
  type LabelledHead = import('./trace/attention.js').LabelledHead;
  type Card = import('./trace/card.js').Card;
  type Example = import('./trace/card.js').Example;
  type HeadProfile = import('./trace/card.js').HeadProfile;
  type HeadProfiles = import('./trace/card.js').HeadProfiles;
  type Rotation = import('./trace/card.js').Rotation;
  type Ask = import('./trace/trace.js').Ask;
  type Edit = import('./trace/trace.js').Edit;
  type Encoding = import('./trace/trace.js').Encoding;
  type Matrix = import('./trace/trace.js').Matrix;
  type NamedArray = import('./trace/trace.js').NamedArray;
  type PositionalAsk = import('./trace/trace.js').PositionalAsk;
  type Token = import('./trace/trace.js').Token;
  type Trace = import('./trace/trace.js').Trace;
  type Unit = import('./trace/words.js').Unit;
  type Control = import('./ui/controls.js').Control;
  type Anatomy = import('./ui/model_map/parts.js').Anatomy;
  type Handlers = import('./ui/view_section.js').Handlers;
  type MappedSide = import('./views/compare/sides.js').MappedSide;
  type Derivation = import('./views/derivation/derivation.js').Derivation;
  type Attribution = import('./views/word/parts.js').Attribution;
}
