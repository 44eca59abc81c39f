// The requests and answers of the API as the page's types; `make openapi` makes them.

/** A request with some of its members, of which none is null. */
export type Given<Form> = { [Name in keyof Form]?: NonNullable<Form[Name]> };

/** All members that some form of a union has, of which none is null. */
export type Merged<Forms> = {
  [Name in Forms extends any ? keyof Forms : never]?: Forms extends any
    ? Name extends keyof Forms
      ? NonNullable<Forms[Name]>
      : never
    : never;
};

/** The parts of the page's state that all views share, as a chapter may open them. */
export interface SharedState {
  /** The text that it reads. */
  text: string;
  /** The decoder's text in an encoder–decoder. */
  target: string;
  /** The words behind the masks of the text. */
  words: string;
  /** The model; if omitted, the default one. */
  model: string;
  /** The id of a view. */
  view: string;
  /** The stack, or the attention between both. */
  where: '' | 'encoder' | 'decoder' | 'cross';
  /** From 0. */
  layer: number | null;
  /** From 0. */
  head: number | null;
  /** The row: the number of a token, from 0. */
  query: number | null;
  /** A token of the source. */
  source: number | null;
  /** The column. */
  key: number | null;
  /** Where the colours end. */
  range: 'one' | 'head';
  /** The prediction that is asked about, by its id. */
  token: number | null;
  /** The token it is compared with, by its id. */
  against: number | null;
  /** The head that is switched off, as in a link. */
  off: string;
  /** It writes this then. */
  off_to: 'zero' | 'mean' | 'resample';
  /** The chosen cell is set to it. */
  weight: number | null;
  /** The rest of its row stays as it is. */
  weight_fixed: boolean;
  /** What the colours of the map show: a head's effect, its share of what is written, or the share of its attention on a role of a conversation. */
  map: 'effect' | 'writes' | 'template' | 'system' | 'user' | 'assistant' | 'tool';
}

export interface AddRequest {
  site: string;
  heads?: number[] | null;
  positions?: number[] | null;
  kind: 'add';
  value: any[] | number;
}

export interface AlignerAnswer {
  layer: number;
  head: number;
  shift: number;
}

export interface Alternative {
  id: number;
  text: string;
  probability: number;
  model_probability: number;
}

export interface AtlasAnswer {
  text: string[];
  sentences: number;
  tokens: number;
  edges: number;
  threshold: number;
  attentions: Record<string, AtlasAttentionAnswer>;
  tags: string[];
  no_search: string | null;
}

export interface AtlasAttentionAnswer {
  n_heads: number;
  n_edges: number;
}

export interface AtlasDecileAnswer {
  low: number;
  high: number;
  sentence: AtlasSentenceAnswer;
}

export interface AtlasDistanceAnswer {
  distance: number;
  count: number;
}

export interface AtlasHeadAnswer {
  edges: number;
  pairs: AtlasPairAnswer[];
  distances: AtlasDistanceAnswer[];
  tags: AtlasPairAnswer[];
  sentences: AtlasSentenceAnswer[];
}

export interface AtlasMatchAnswer {
  attention: string;
  head: number;
  other_attention: string;
  other_head: number;
  similarity: number;
  similar_by_chance: number;
  moved: number | null;
  by_chance: number | null;
}

export interface AtlasMatchesAnswer {
  other: string;
  matches: AtlasMatchAnswer[];
  n_texts: number;
  texts: AtlasPartedAnswer[];
}

export interface AtlasPairAnswer {
  query: string;
  key: string;
  count: number;
}

export interface AtlasPartedAnswer {
  text: string;
  moved: number;
  by_chance: number;
}

export interface AtlasPlaceAnswer {
  text: string;
  target: string;
  query: number;
  key: number;
  query_word: string;
  key_word: string;
  query_span: number[];
  key_span: number[];
  weight: number;
  attention: string;
  head: number;
  file: string;
  offset: number;
}

export interface AtlasRankedAnswer {
  attention: string;
  head: number;
  count: number;
  of: number;
  share: number;
  low: number;
  high: number;
  base: number | null;
  lift: number | null;
  lift_low: number | null;
  lift_high: number | null;
  held_out: number | null;
}

export interface AtlasSearchAnswer {
  heads: AtlasRankedAnswer[];
  sentences: AtlasPlaceAnswer[];
}

export interface AtlasSentenceAnswer {
  text: string;
  target: string;
  query: number;
  key: number;
  query_word: string;
  key_word: string;
  query_span: number[];
  key_span: number[];
  weight: number;
}

export interface AtlasSpreadAnswer {
  sentences: number;
  silent: number;
  deciles: AtlasDecileAnswer[];
  queries: AtlasWordAnswer[];
  keys: AtlasWordAnswer[];
}

export interface AtlasWordAnswer {
  word: string;
  tag: string;
  share: number;
  base: number;
}

export interface AttentionRow {
  axes: ['layer', 'head', 'key'];
  layers: number[];
  heads: number[];
  data: number[][][];
}

export interface CandidateAnswer {
  text: string;
  score: number;
}

export interface Chapter {
  id: string;
  title: string;
  about: string;
  order: number;
  sources: Source[];
  next: string | null;
  finds: 'induction' | 'riddles' | 'word' | null;
  texts: Record<string, Record<string, any>>;
  steps: Step[];
}

export interface ChapterSummary {
  id: string;
  title: string;
  about: string;
  n_steps: number;
  n_questions: number;
  is_for_any: boolean;
}

export interface ChaptersAnswer {
  chapters: ChapterSummary[];
  unavailable: Record<string, string>;
}

export interface Choice {
  value: number | string;
  label: string;
  number: number | null;
}

export interface CircuitAnswer {
  model: string;
  revision: string;
  request: CircuitSettings;
  n_edges: number;
  tokens: string[];
  target_tokens: string[] | null;
  writers: NodeAnswer[];
  readers: NodeAnswer[];
  reasons: string[];
  edges: EdgeAnswer[];
  ranking: EdgeAnswer[];
  chosen: FaithfulnessAnswer;
  held_out: FaithfulnessAnswer | null;
  curve: CurvePointAnswer[];
  complement: number;
  pairs: PairRequest[];
  skipped: string[];
}

export interface CircuitRequest {
  task?: string | null;
  n_pairs?: number;
  score?: 'eap' | 'eap_ig' | 'noising' | 'denoising' | 'exact';
  steps?: number;
  rule?: 'top' | 'greedy' | 'pruned';
  baseline?: 'corrupted' | 'zero' | 'mean';
  n_edges?: number | null;
  faithfulness?: number | null;
  holds_out?: boolean;
  by_position?: boolean;
  by_expert?: boolean;
  pairs?: PairRequest[];
  edges?: string[] | null;
}

export interface CircuitSettings {
  task?: string | null;
  n_pairs?: number;
  score?: 'eap' | 'eap_ig' | 'noising' | 'denoising' | 'exact';
  steps?: number;
  rule?: 'top' | 'greedy' | 'pruned';
  baseline?: 'corrupted' | 'zero' | 'mean';
  n_edges?: number | null;
  faithfulness?: number | null;
  holds_out?: boolean;
  by_position?: boolean;
  by_expert?: boolean;
}

export interface Claim {
  rule: Compare | Many | NextToken | OfExperiment | Probability | StrongestCell | StrongestExpert | StrongestHead | StrongestKey | StrongestPart | Weight;
  says: number | string | null;
  above: number | null;
  below: number | null;
}

export interface ClaimAnswer {
  claim: string;
  measure: string;
  score: number;
  against: string;
  control: number;
  sentences: number;
}

export interface Compare {
  of: 'compare';
  first: OfExperiment | Probability | Weight;
  second: OfExperiment | Probability | Weight;
  same_within: number;
}

export interface CorpusMeanRequest {
  site: string;
  heads?: number[] | null;
  positions?: number[] | null;
  texts?: string[] | null;
  targets?: string[] | null;
  kind: 'corpus_mean';
}

export interface CurveAnswer {
  name: string;
  steps: number[];
  values: number[];
}

export interface CurvePointAnswer {
  n_edges: number;
  n_on_paths: number;
  faithfulness: number;
  right: number;
}

export interface CurvesAnswer {
  title: string;
  unit: string;
  lines: CurveAnswer[];
}

export interface CutRequest {
  kind: 'cut';
  edges: string[];
  text?: string | null;
  target?: string | null;
  positions?: number[] | null;
}

export interface EdgeAnswer {
  name: string;
  writer: number;
  reader: number;
  position: number | null;
  score: number | null;
  loss: number;
}

export interface Ended {
  reason: 'length' | 'end_of_text' | 'stop' | 'max_tokens' | 'server_stopping';
  n_tokens: number;
  text: string;
}

export interface ExampleAnswer {
  title: string;
  text: string;
  claim: ClaimAnswer | null;
  opens: Record<string, number | string>;
}

export interface ExperimentAnswer {
  id: string;
  title: string;
  is_streamed: boolean;
  see: string;
  field: string;
  sources: SourceAnswer[];
  parameters: Record<string, any>;
  arrays: Record<string, QuantityAnswer>;
  growing: string[];
}

export interface ExpertTakesAnswer {
  share: number;
  kinds: Record<string, number>;
  tokens: ExpertTokenAnswer[];
}

export interface ExpertTokenAnswer {
  text: string;
  share: number;
  count: number;
}

export interface ExpertTokensAnswer {
  text: string[];
  tokens: number;
  least_count: number;
  kinds: Record<string, number>;
  layers: Record<string, ExpertTakesAnswer[]>;
}

export interface ExpertsAnswer {
  n_experts: number;
  top_k: number;
  layers: number[];
}

export interface ExpertsChosen {
  layer: number;
  experts: number[];
  weights: number[];
  probabilities: number[];
}

export interface ExpertsOffRequest {
  layer?: number | null;
  kind: 'experts_off';
  experts: number[];
  where?: 'encoder' | 'decoder' | null;
}

export interface FaithfulnessAnswer {
  value: number;
  interval: [number, number];
  clean: number;
  corrupted: number;
  circuit: number;
  clean_right: number;
  corrupted_right: number;
  circuit_right: number;
  n_pairs: number;
}

export interface FeederAnswer {
  name: string;
  share: number;
  control: number;
}

export interface FeedersAnswer {
  queries: FeederAnswer[];
  keys: FeederAnswer[];
  values: FeederAnswer[];
}

export interface GenerateRequest {
  step?: number | null;
  ids?: number[] | null;
  messages?: MessageRequest[] | null;
  text?: string | null;
  text_pair?: string | null;
  model?: string | null;
  special_tokens?: boolean;
  read_special_tokens?: boolean;
  forced?: number[];
  skip?: number;
  n_tokens: number;
  temperature?: number;
  top_k?: number | null;
  top_p?: number | null;
  repetition_penalty?: number;
  stop?: string[];
  beams?: number;
  length_penalty?: number;
  best_of?: number;
  reward?: string | null;
  seed?: number;
  n_alternatives?: number;
  layers?: number[] | null;
  heads?: number[] | null;
  capture?: string[] | null;
  edits?: (AddRequest | CorpusMeanRequest | CutRequest | ExpertsOffRequest | HeadsOffRequest | KnockOutRequest | MeanRequest | NoScalingRequest | PatchRequest | QuantizeRequest | ResampleRequest | ScaleRequest | SetRequest | TemperatureRequest)[] | null;
}

export interface HeadProfileAnswer {
  labels: string[];
  scores: Record<string, HeadScoreAnswer>;
  entropy: number;
  distance: number;
  cost?: number | null;
  strongest: StrongestAnswer[];
}

export interface HeadProfilesAnswer {
  text: string[];
  sentences: number;
  tokens: number;
  bits_per_byte?: number | null;
  ablated_in?: number | null;
  controlled: Record<string, number>;
  attentions: Record<string, HeadProfileAnswer[]>;
  examples: SentenceAnswer[];
  feeders?: Record<string, FeedersAnswer[]> | null;
}

export interface HeadScoreAnswer {
  score: number;
  control: number;
}

export interface HeadsOffRequest {
  layer?: number | null;
  where?: 'encoder' | 'decoder' | 'cross' | null;
  kind: 'heads_off';
  heads: number[];
}

export interface Highlight {
  query: number | null;
  key: number | null;
}

export interface KnockOutRequest {
  layer?: number | null;
  where?: 'encoder' | 'decoder' | 'cross' | null;
  kind: 'knock_out';
  queries: number[];
  keys: number[];
  heads?: number[] | null;
  renormalised?: boolean;
}

export interface LinkAnswer {
  id: string;
  path: string;
  expires: string;
  local: boolean;
}

export interface LogitDifferenceRequest {
  position?: number | null;
  token?: number | string | null;
  against?: number | string | null;
}

export interface Many {
  of: 'many';
  number: string;
  texts: string | null;
  text: string;
  next: string;
  than: string;
  words: Record<string, string | string[]>;
  rows: 'problems' | 'sentences' | null;
  n_texts: number;
  model: string | null;
  off: Record<string, any>[];
  bits: number | null;
  cut: string[];
  part: string;
  layer: number | null;
  expert: number | null;
  head: number | null;
  query: number | string | null;
  key: number | string | null;
}

export interface MeanRequest {
  site: string;
  heads?: number[] | null;
  positions?: number[] | null;
  kind: 'mean';
  over?: 'positions' | 'heads';
}

export interface MessageRequest {
  role: 'system' | 'user' | 'assistant' | 'tool';
  content: string;
}

export interface ModelAnswer {
  id: string;
  title: string;
  kind: string;
  n_layers: number;
  n_heads: number;
  d_model: number;
  d_ff: number;
  vocab_size: number;
  max_tokens: number;
  trained_tokens: number;
  longest_text: number;
  is_endless: boolean;
  positional: string;
  n_kv_heads: number;
  norm: string;
  norm_place: string;
  activation: string;
  predicts: 'token' | 'label' | 'labels' | 'token_label' | 'score' | 'answer' | 'vector';
  labels: string[];
  pooling: PoolingAnswer | null;
  has_mask: boolean;
  moe: ExpertsAnswer | null;
  parameters: number;
  memory_bytes: number;
  state: 'loaded' | 'loading' | 'not_loaded';
  progress: number;
  architecture: string;
  is_checked: boolean;
  revision: string;
  licence: string;
  learned: string;
  normalization: NormalizationAnswer;
  analyses: string[];
  has_atlas?: boolean;
  head_labels: Record<string, Record<string, number>[]>;
  aligner: AlignerAnswer | null;
  examples: ExampleAnswer[];
  steps: StepAnswer[];
  trained_on: string[];
  began_from: string | null;
  attribution: string[];
  corpus: Record<string, any>;
  metrics: Record<string, any>;
  expert_tokens: ExpertTokensAnswer | null;
  heads: HeadProfilesAnswer | null;
  curves: CurvesAnswer[];
  sites: SiteAnswer[];
  attentions: SoftmaxAnswer[];
  rotation: RotationAnswer | null;
  features: string[];
  checks: Record<string, number>;
  omitted: Record<string, string>;
}

export interface ModelSummary {
  id: string;
  title: string;
  kind: string;
  n_layers: number;
  n_heads: number;
  d_model: number;
  d_ff: number;
  vocab_size: number;
  max_tokens: number;
  trained_tokens: number;
  longest_text: number;
  is_endless: boolean;
  positional: string;
  n_kv_heads: number;
  norm: string;
  norm_place: string;
  activation: string;
  predicts: 'token' | 'label' | 'labels' | 'token_label' | 'score' | 'answer' | 'vector';
  labels: string[];
  pooling: PoolingAnswer | null;
  has_mask: boolean;
  moe: ExpertsAnswer | null;
  parameters: number;
  memory_bytes: number;
  state: 'loaded' | 'loading' | 'not_loaded';
  progress: number;
  architecture: string;
  is_checked: boolean;
  revision: string;
  licence: string;
  learned: string;
  normalization: NormalizationAnswer;
  analyses: string[];
  has_atlas?: boolean;
  head_labels: Record<string, Record<string, number>[]>;
  aligner: AlignerAnswer | null;
  examples: ExampleAnswer[];
  steps: StepAnswer[];
}

export interface ModelsAnswer {
  default: string;
  models: ModelSummary[];
  unavailable: UnavailableModel[];
  memory_bytes: number | null;
}

export interface NextToken {
  model: string | null;
  text: string | null;
  target: string | null;
  off: Record<string, any> | null;
  bits: number | null;
  cut: string[];
  at: number | string | null;
  temperature: number | null;
  top_k: number | null;
  top_p: number | null;
  of: 'next_token';
  among: number;
}

export interface NoScalingRequest {
  layer?: number | null;
  where?: 'encoder' | 'decoder' | 'cross' | null;
  kind: 'no_scaling';
}

export interface NodeAnswer {
  name: string;
  kind: string;
  stack: 'encoder' | 'decoder';
  layer: number | null;
  heads: number[];
  path: string;
}

export interface NormalizationAnswer {
  replacements: ReplacementAnswer[];
  lowers_capitals: boolean;
}

export interface OfExperiment {
  of: 'experiment';
  experiment: string | null;
  knobs: Record<string, any>;
  array: string;
  at: Record<string, number | string>;
  pick: 'value' | 'greatest' | 'least' | 'where_greatest' | 'where_least' | 'last';
}

export interface Opens {
  text: string | null;
  target: string | null;
  words: string | null;
  model: string | null;
  view: string;
  where: 'encoder' | 'decoder' | 'cross' | null;
  layer: number | null;
  head: number | null;
  query: number | null;
  source: number | null;
  key: number | null;
  range: 'one' | 'head';
  token: number | null;
  against: number | null;
  off: string | null;
  off_to: 'zero' | 'mean' | 'resample';
  weight: number | null;
  weight_fixed: boolean;
  map: 'effect' | 'writes' | 'template' | 'system' | 'user' | 'assistant' | 'tool';
  more: Record<string, boolean | number | string>;
  experiment: string | null;
  knobs: Record<string, any>;
}

export interface Outcome {
  kind: 'choice' | 'number' | 'cell';
  right: number | number[] | string;
  label: string;
  number: number | null;
  unit: string;
  choices: Choice[];
  rows: string[];
  columns: string[];
  cells: number[][];
}

export interface PairRequest {
  clean: string;
  corrupted: string;
  right: string | string[];
  wrong: string | string[];
  target?: string | null;
  corrupted_target?: string | null;
}

export interface PatchRequest {
  site: string;
  heads?: number[] | null;
  positions?: number[] | null;
  kind: 'patch';
  from: SourceRequest;
}

export interface PatchingRequest {
  text: string;
  target?: string | null;
  parts?: string[];
}

export interface PoolingAnswer {
  mode: string;
  is_normalized: boolean;
  max_tokens: number | null;
}

export interface PositionalAnswer {
  scheme: 'sinusoidal' | 'learned' | 'rotary' | 'alibi' | 'relative';
  model: string | null;
  length: number;
  width: number | null;
  heads: number | null;
  tensors: Record<string, TensorAnswer>;
}

export interface PredictionsRequest {
  top?: number;
  tokens?: (number | string)[];
  following?: boolean;
  temperature?: number | null;
  top_k?: number | null;
  top_p?: number | null;
}

export interface Probability {
  model: string | null;
  text: string | null;
  target: string | null;
  off: Record<string, any> | null;
  bits: number | null;
  cut: string[];
  at: number | string | null;
  temperature: number | null;
  top_k: number | null;
  top_p: number | null;
  of: 'probability';
  token: string | null;
}

export interface QuantityAnswer {
  axes: string[];
  unit: string;
  help: string;
}

export interface QuantizeRequest {
  kind: 'quantize';
  bits: number;
  parts?: string[] | null;
  per?: 'channel' | 'tensor';
}

export interface Question {
  asks: string;
  by: 'token' | 'cell' | 'bar' | 'number' | 'one';
  answer: Compare | NextToken | OfExperiment | Probability | StrongestCell | StrongestExpert | StrongestHead | StrongestKey | StrongestPart | Weight;
  choices: Record<string, string>;
  within: number | null;
  because: string;
  covered: boolean;
  then: Record<string, any>;
}

export interface ReplacementAnswer {
  characters: string;
  text: string;
}

export interface ResampleRequest {
  site: string;
  heads?: number[] | null;
  positions?: number[] | null;
  texts?: string[] | null;
  targets?: string[] | null;
  kind: 'resample';
  seed?: number;
}

export interface RotationAnswer {
  first: number[];
  second: number[];
  speeds: number[];
  factor: number;
  base: number | null;
  scaling: Record<string, boolean | number | string>;
  n_tokens: number;
}

export interface ScaleRequest {
  site: string;
  heads?: number[] | null;
  positions?: number[] | null;
  kind: 'scale';
  value: any[] | number;
}

export interface ScoreAttributionRequest {
  attention: string;
  head: number;
  query: number;
  key: number;
  rival?: number | null;
  split?: string | null;
}

export interface SentenceAnswer {
  text: string;
  target: string;
}

export interface SetRequest {
  site: string;
  heads?: number[] | null;
  positions?: number[] | null;
  kind: 'set';
  value?: any[] | number | null;
  from?: SourceRequest | null;
}

export interface SimilarityRequest {
  text: string;
  heads?: boolean;
}

export interface SiteAnswer {
  name: string;
  axes: string[];
}

export interface SoftmaxAnswer {
  path: string;
  is_causal: boolean;
  scale: number | null;
  softcap: number | null;
  window: number | null;
  chunk: number | null;
  has_bias: boolean;
  has_sink: boolean;
  sinks: number[] | null;
  is_exact: boolean;
}

export interface Source {
  title: string;
  url: string;
}

export interface SourceAnswer {
  title: string;
  url: string;
}

export interface SourceRequest {
  text?: string | null;
  target?: string | null;
  trace?: string | null;
  positions?: number[] | null;
}

export interface Step {
  title: string;
  text: string;
  html: string;
  opens: Opens;
  link: string;
  marks: string;
  picture: string;
  highlights: Highlight[];
  question: Question | null;
  then: Opens | null;
  then_link: string | null;
  claims: Claim[];
  line: number;
  question_line: number;
  claim_lines: number[];
}

export interface StepAnswer {
  step: number;
  tokens?: number | null;
  previous?: number[][] | null;
  induction?: number[][] | null;
  repeat_gain?: number | null;
  early_loss?: number | null;
  late_loss?: number | null;
  head_labels: Record<string, Record<string, number>[]>;
}

export interface StrongestAnswer {
  sentence: number;
  query: number;
  key: number;
  weight: number;
  query_span: number[];
  key_span: number[];
}

export interface StrongestCell {
  model: string | null;
  text: string | null;
  target: string | null;
  off: Record<string, any> | null;
  bits: number | null;
  cut: string[];
  where: 'encoder' | 'decoder' | 'cross' | null;
  layer: number | null;
  head: number | null;
  query: number | string | null;
  of: 'strongest_cell';
  not_first: boolean;
}

export interface StrongestExpert {
  model: string | null;
  text: string | null;
  target: string | null;
  off: Record<string, any> | null;
  bits: number | null;
  cut: string[];
  of: 'strongest_expert';
  layer: number | null;
  query: number | string | null;
}

export interface StrongestHead {
  model: string | null;
  text: string | null;
  target: string | null;
  off: Record<string, any> | null;
  bits: number | null;
  cut: string[];
  where: 'encoder' | 'decoder' | 'cross' | null;
  layer: number | null;
  head: number | null;
  query: number | string | null;
  key: number | string | null;
  of: 'strongest_head';
}

export interface StrongestKey {
  model: string | null;
  text: string | null;
  target: string | null;
  off: Record<string, any> | null;
  bits: number | null;
  cut: string[];
  where: 'encoder' | 'decoder' | 'cross' | null;
  layer: number | null;
  head: number | null;
  query: number | string | null;
  of: 'strongest_key';
  not_first: boolean;
}

export interface StrongestPart {
  model: string | null;
  text: string | null;
  target: string | null;
  off: Record<string, any> | null;
  bits: number | null;
  cut: string[];
  where: 'encoder' | 'decoder' | 'cross' | null;
  layer: number | null;
  head: number | null;
  query: number | string | null;
  key: number | string | null;
  of: 'strongest_part';
  side: 'query' | 'key';
  among: number;
}

export interface TaskAnswer {
  name: string;
  rule: string;
  lacks?: string | null;
}

export interface TasksAnswer {
  tasks: TaskAnswer[];
}

export interface TemperatureRequest {
  layer?: number | null;
  where?: 'encoder' | 'decoder' | 'cross' | null;
  kind: 'temperature';
  value: number;
}

export interface TensorAnswer {
  axes: string[];
  shape: number[];
  dtype: 'float32' | 'int32' | 'uint16';
  scale?: number | null;
  packed?: 'lower-triangle' | null;
  fill?: number | null;
  data: any[];
}

export interface TokenAnswer {
  id: number;
  text: string;
  start: number;
  end: number;
  word: number | null;
  is_special: boolean;
  role?: string | null;
}

export interface TokenWritten {
  index: number;
  position: number;
  id: number;
  text: string;
  is_special: boolean;
  probability: number;
  model_probability: number;
  rank: number;
  is_forced: boolean;
  alternatives: Alternative[];
  attention: AttentionRow;
  experts: ExpertsChosen[] | null;
  tensors?: Record<string, TensorAnswer>;
}

export interface TraceRequest {
  step?: number | null;
  ids?: number[] | null;
  messages?: MessageRequest[] | null;
  text?: string | null;
  text_pair?: string | null;
  model?: string | null;
  special_tokens?: boolean;
  read_special_tokens?: boolean;
  logit_difference?: LogitDifferenceRequest | null;
  predictions?: PredictionsRequest | null;
  patching?: PatchingRequest | null;
  score_attribution?: ScoreAttributionRequest | null;
  similarity?: SimilarityRequest | null;
  capture?: string[] | null;
  layers?: number[] | null;
  heads?: number[] | null;
  analyses?: string[] | null;
  edits?: (AddRequest | CorpusMeanRequest | CutRequest | ExpertsOffRequest | HeadsOffRequest | KnockOutRequest | MeanRequest | NoScalingRequest | PatchRequest | QuantizeRequest | ResampleRequest | ScaleRequest | SetRequest | TemperatureRequest)[] | null;
  resolution?: number | null;
  queries?: number[] | null;
  dtype?: 'float32' | 'uint16';
  triangle?: boolean;
  target?: string | null;
}

export interface UnavailableModel {
  id: string;
  reason: string;
}

export interface Weight {
  model: string | null;
  text: string | null;
  target: string | null;
  off: Record<string, any> | null;
  bits: number | null;
  cut: string[];
  where: 'encoder' | 'decoder' | 'cross' | null;
  layer: number | null;
  head: number | null;
  query: number | string | null;
  key: number | string | null;
  of: 'weight';
}
