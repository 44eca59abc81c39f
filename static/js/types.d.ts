// The types that most modules speak of, known in every module without an import.

export {};

declare global {
  type Chart = import('./plot/chart.js').Chart;
  type Theme = import('./plot/colour.js').Theme;
  type Drawing = import('./plot/figure.js').Drawing;
  type DrawnFigure = import('./plot/figure.js').DrawnFigure;
  type Figure = import('./plot/figure.js').Figure;
  type Frame = import('./plot/figure.js').Frame;
  type Overview = import('./plot/figure.js').Overview;
  type Palette = import('./plot/figure.js').Palette;
  type View = import('./plot/figure.js').View;
  type ViewCode = import('./plot/figure.js').ViewCode;
  type ViewState = import('./plot/figure.js').ViewState;
  type CellCursor = import('./plot/grid.js').CellCursor;
  type Grid = import('./plot/grid.js').Grid;
  type SentenceLink = import('./plot/grid.js').SentenceLink;
  type Hits = import('./plot/marks/mark.js').Hits;
  type Mark<D> = import('./plot/marks/mark.js').Mark<D>;
  type Meaning<D> = import('./plot/marks/mark.js').Meaning<D>;
  type Plan = import('./plot/marks/mark.js').Plan;
  type Ramp = import('./plot/scales.js').Ramp;
  type Outcome = import('./rules/chapter.js').Outcome;
  type Arrays = import('./rules/experiment.js').Arrays;
  type ExperimentView = import('./rules/experiment.js').ExperimentView;
  type Result = import('./rules/experiment.js').Result;
  type Switches = import('./state/attention_switches.js').Switches;
  type Patch = import('./state/state.js').Patch;
  type State = import('./state/state.js').State;
  type LabelledHead = import('./trace/attention.js').LabelledHead;
  type Card = import('./trace/card.js').Card;
  type Rotation = import('./trace/card.js').Rotation;
  type Ask = import('./trace/trace.js').Ask;
  type Matrix = import('./trace/trace.js').Matrix;
  type NamedArray = import('./trace/trace.js').NamedArray;
  type Token = import('./trace/trace.js').Token;
  type Trace = import('./trace/trace.js').Trace;
  type Unit = import('./trace/words.js').Unit;
  type Control = import('./ui/controls.js').Control;
  type Handlers = import('./ui/view_section.js').Handlers;
}
