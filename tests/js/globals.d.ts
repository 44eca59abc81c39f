/** Plotly, as far as the page uses it; its script sets a global. https://plotly.com/javascript/plotlyjs-function-reference/ */
interface PlotlyApi {
  react(drawing: HTMLElement, data: unknown, layout: unknown, config: unknown): Promise<unknown>;
  purge(drawing: HTMLElement): void;
  relayout(drawing: HTMLElement, update: Record<string, unknown>): Promise<unknown>;
  toImage(
    figure: { data: unknown; layout: unknown; config: unknown },
    options: { format: string; width: number; height: number; scale: number },
  ): Promise<string>;
}

/** A `div` that Plotly has extended; before the first drawing it has none of this. */
interface PlotlyElement extends HTMLDivElement {
  data?: any;
  layout?: Record<string, any>;
  on?(event: 'plotly_relayout', listener: (change: Record<string, unknown>) => void): void;
}

interface Window {
  Plotly: PlotlyApi;
}
