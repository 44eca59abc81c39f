/**
 * The API call behind a drawing, as a command for a shell and as a Python script that computes the
 * drawn numbers from the answer.
 */

import { quotedLine } from '../words/text.js';
import { SELECTING, STREAMED } from './routes.js';
import { withoutNulls } from '../trace/trace.js';

/**
 * @import { Grid } from '../plot/grid.js'
 * @import { Ask, Edit, Trace } from '../trace/trace.js'
 * @import { Card } from '../trace/card.js'
 * @import { Unit } from '../trace/words.js'
 */

/**
 * @typedef {Object} Call
 * @property {string} path `/api/v1/trace`
 * @property {(Ask & Record<string, unknown>)|null} [body] of a POST; none: the call is a GET
 * @property {{label: string, help: string, type: string, ending: string}[]} [files] other media types in which the API answers it, to save
 * @property {Call} [changed] the call behind what the words say of a change, such as a cut
 */

const TRACE = '/api/v1/trace';
const EXPERIMENTS = '/api/v1/experiments/';

/**
 * @param {Trace} trace the page's
 * @param {Pick<Grid, 'request'|'call'>} grid of a drawing; what it asks for goes before what the page asked for
 * @returns {Call}
 */
export function callOf({ asked }, { request = {}, call }) {
  if (call) return { body: null, ...call };
  // Numbers as they are, not in 16 bits.
  return { path: TRACE, body: withoutNulls({ ...asked, ...request, dtype: null }) };
}

/**
 * @param {Trace} trace the page's
 * @param {Grid} grid of a drawing
 * @returns {Call[]} the call, and after it that of a change, or of the pass it is compared with
 */
export function callsOf(trace, grid) {
  const call = callOf(trace, grid);
  return [
    call,
    ...(call.changed ? [call.changed] : []),
    ...(grid.before ? [callOf(trace, { request: grid.before })] : []),
  ];
}

/** @typedef {{model?: string, revision?: string, text: string, target?: string|null, edits?: Edit[], experiment?: string, parameters?: Record<string, unknown>}} Origin */

/**
 * Return the origin of the numbers of a drawing: model, texts, edits.
 * @param {Trace} trace
 * @param {Pick<Grid, 'request'|'call'>} grid
 * @param {Card[]} cards of all models: a drawing may be of another than the page's
 * @returns {Origin}
 */
export function originOf(trace, grid, cards = []) {
  const call = callOf(trace, grid);
  if (call.path.startsWith(EXPERIMENTS))
    return {
      experiment: call.path.slice(EXPERIMENTS.length),
      parameters: call.body ?? {},
      text: trace.text,
    };
  if (!call.body) {
    const isOfTrace = Boolean(trace.id) && call.path.startsWith(`${TRACE}s/${trace.id}/`);
    const { model, revision } = trace;
    return { ...(isOfTrace ? { model, revision } : modelIn(call.path, cards)), text: trace.text };
  }
  const { body } = call;
  const model = body.model ?? trace.model;
  const text = body.text ?? trace.text;
  const isOwn = model === trace.model && text === trace.text;
  const target = body.target ?? (isOwn && trace.target_tokens ? trace.target : undefined);
  return {
    model,
    revision:
      model === trace.model
        ? trace.revision
        : (cards.find(({ id }) => id === model)?.revision ?? ''),
    text,
    ...(target !== undefined && { target }),
    ...(body.edits && body.edits.length > 0 && { edits: body.edits }),
  };
}

/** Members of a request that a caption says in words. */
const SAID = ['model', 'text', 'target', 'edits', 'patching', 'logit_difference'];

/**
 * Return the facts that a caption needs beyond its title, so that the figure can be made again: the
 * model, the texts, the tokens that are compared, and everything that was changed.
 * @param {Trace} trace
 * @param {Pick<Grid, 'request'|'before'|'call'|'about'>} grid
 * @param {Card[]} cards of all models
 * @returns {string[]} sentences without their full stops
 */
export function madeOf(trace, grid, cards) {
  const origin = originOf(trace, grid, cards);
  const before = grid.before ? originOf(trace, { request: grid.before }, cards) : null;
  const { body } = callOf(trace, grid);
  const { request = {} } = grid;
  const others = Object.entries(body ?? {}).filter(
    ([name]) => !SELECTING.includes(name) && !SAID.includes(name),
  );
  const model = [origin.model, origin.revision && `revision ${origin.revision}`];
  return [
    model.filter(Boolean).join(', '),
    textsIn(origin),
    request.patching ? `Second sentence: ${quotedLine(request.patching.text)}` : '',
    grid.about ?? differenceIn(request),
    changesIn(origin),
    ...(origin.experiment ? [`Parameters: ${JSON.stringify(origin.parameters)}`] : []),
    ...(!origin.experiment && others.length > 0 && !(grid.call && grid.about)
      ? [`Asked for: ${JSON.stringify(Object.fromEntries(others))}`]
      : []),
    before ? `Compared with ${differing(before, origin)}` : '',
  ].filter(Boolean);
}

/** @param {Origin} origin */
function textsIn({ text, target }) {
  return [text, target].flatMap((each) => (each ? [quotedLine(each)] : [])).join(' → ');
}

/** @param {Origin} origin */
function changesIn({ edits }) {
  return edits ? `Changed: ${JSON.stringify(edits)}` : '';
}

/** @param {Pick<Grid, 'request'>['request']} request */
function differenceIn({ logit_difference: difference } = {}) {
  if (!difference) return '';
  const { position, token, against } = difference;
  const tokens = [
    token === undefined ? '' : `, vocabulary entry ${token}`,
    against === undefined ? '' : ` against ${against}`,
  ];
  return `Prediction at token ${position}${tokens.join('')}`;
}

/**
 * Name the pass that another one is compared with, by what differs.
 * @param {Origin} before
 * @param {Origin} after
 */
function differing(before, after) {
  const isOtherModel = before.model !== after.model;
  const isOtherText = textsIn(before) !== textsIn(after);
  const differences = [
    isOtherModel ? [before.model, before.revision && `revision ${before.revision}`] : [],
    isOtherText ? [textsIn(before)] : [],
    before.edits ? [changesIn(before)] : [],
  ].flat();
  const named = differences.filter(Boolean).join(', ');
  return named || 'the same pass without a change';
}

/**
 * An encoding of positions has no text, and a model only if it is the model's own.
 * @param {string} path
 * @param {Card[]} cards
 */
function modelIn(path, cards) {
  const model = new URLSearchParams(path.split('?')[1]).get('model');
  return model ? { model, revision: cards.find(({ id }) => id === model)?.revision ?? '' } : {};
}

/**
 * @param {string} origin `http://127.0.0.1:8000`
 * @param {Call} call
 * @returns {string} safe to paste: whatever a text holds stays within its quotes
 */
export function curlOf(origin, { path, body }) {
  /** @param {string} text */
  const quoted = (text) => `'${text.replace(/'/g, String.raw`'\''`)}'`;
  const posted = body && [
    `--header ${quoted('Content-Type: application/json')}`,
    ...(STREAMED.includes(path) ? [] : [`--header ${quoted('Accept: application/json')}`]),
    `--data ${quoted(JSON.stringify(body))}`,
  ];
  return [`curl --silent ${quoted(origin + path)}`, ...(posted ?? [])].join(' ');
}

/**
 * @param {string} origin
 * @param {Call[]} calls
 * @param {Made} [made]
 * @returns {string} a line for each, and one that says what the page does with what they answer
 */
export function commandsOf(origin, calls, made) {
  return [...calls.map((call) => curlOf(origin, call)), ...(made ? [`# ${made.said}`] : [])].join(
    '\n',
  );
}

const WIDTH = 88;
const CONSTANTS = new Map([
  [true, 'True'],
  [false, 'False'],
  [null, 'None'],
]);

/**
 * @param {string} origin `http://127.0.0.1:8000`
 * @param {Call[]} calls the second is of a change, or of the pass that the first is compared with
 * @param {{quantity: string, made?: Made}} grid what the drawing shows
 * @returns {string} whatever a text holds stays within its quotes
 */
export function pythonOf(origin, calls, { quantity, made }) {
  const second = calls[0].changed ? 'changed' : 'before';
  const steps = made?.steps ?? (made?.map && mapSteps(made.map));
  const lead = steps ? '' : 'The answer behind: ';
  const answers = ['trace', second].slice(0, calls.length);
  const reading = steps ? [...steps, 'show(shown)'] : [...READING, ...answers.map(readingOf)];
  return [
    `# ${lead}${quantity.replace(/\s+/g, ' ')}`,
    ...(made ? [`# ${made.said}`] : []),
    'import json',
    'import urllib.request',
    '',
    ...(STREAMED.includes(calls[0].path)
      ? [...asking(origin, calls[0]), ...READING_EVENTS]
      : [
          ...answers.flatMap((answer, at) => [
            ...asking(origin, calls[at]),
            `    ${answer} = json.load(reply)`,
            '',
          ]),
          ...SHOW,
          ...reading,
        ]),
    '',
  ].join('\n');
}

/** @param {string} origin @param {Call} call */
function asking(origin, { path, body }) {
  const url = literal(origin + path);
  return [
    ...(body
      ? [
          `body = ${literal(body)}`,
          'request = urllib.request.Request(',
          `    ${url},`,
          '    json.dumps(body).encode(),',
          `    {"Content-Type": "application/json"${STREAMED.includes(path) ? '' : ', "Accept": "application/json"'}},`,
          ')',
        ]
      : [`request = ${url}`]),
    'with urllib.request.urlopen(request) as reply:',
  ];
}

/** Server-Sent Events: the data of each is one line of JSON, whose lists are many numbers. */
const READING_EVENTS = [
  '    for line in reply:',
  '        if line.startswith(b"data: "):',
  '            event = json.loads(line.removeprefix(b"data: "))',
  '            print({key: part for key, part in event.items() if not isinstance(part, (dict, list))})',
];

/** Numbers in rows, as many as a window has room for. */
const SHOW = [
  'def rows_of(data):',
  '    """The innermost lists, in order."""',
  '    if not any(isinstance(part, list) for part in data):',
  '        return [data]',
  '    return [row for part in data for row in rows_of(part)]',
  '',
  'def show(data, most=32):',
  '    """Print the first rows, and the first numbers of each."""',
  '    rows = rows_of(data)',
  '    for row in rows[:most]:',
  '        cells = [f"{cell:.4g}" if isinstance(cell, float) else str(cell) for cell in row[:most]]',
  '        print(*(cell.rjust(9) for cell in cells), *(["..."] if len(row) > most else []))',
  '    if len(rows) > most:',
  '        print(f"... and {len(rows) - most} rows more")',
  '',
];

/** Every array of an answer as nested lists, by its path; an answer without arrays as it is. */
const READING = [
  'def arrays_of(part, path=""):',
  '    if isinstance(part, dict) and "axes" in part and "data" in part:',
  '        return {path: part}',
  '    members = part.items() if isinstance(part, dict) else ()',
  '    arrays = [arrays_of(each, f"{path}.{name}") for name, each in members]',
  '    return {name: array for each in arrays for name, array in each.items()}',
  '',
  'def read(answer):',
  '    arrays = arrays_of(answer)',
  '    for name, array in arrays.items():',
  '        print(name.lstrip("."), array["axes"], array["shape"])',
  '        show(array["data"])',
  '    if not arrays:',
  '        print(json.dumps(answer, indent=1))',
  '',
];

/** @param {string} answer */
const readingOf = (answer) => `read(${answer})`;

/**
 * Return a plain value as a Python literal. Python reads the escapes of JSON in the same way.
 * @param {any} value
 * @param {string} [indent] of the line it is in
 * @returns {string}
 */
function literal(value, indent = '') {
  const constant = CONSTANTS.get(value);
  if (constant) return constant;
  if (typeof value !== 'object') return JSON.stringify(value);
  const [open, close] = Array.isArray(value) ? '[]' : '{}';
  const deeper = `${indent}    `;
  /** @param {string} inner */
  const parts = (inner) =>
    Array.isArray(value)
      ? value.map((each) => literal(each, inner))
      : Object.entries(value).map(
          ([key, each]) => `${JSON.stringify(key)}: ${literal(each, inner)}`,
        );
  const line = open + parts('').join(', ') + close;
  if (indent.length + line.length <= WIDTH && !line.includes('\n')) return line;
  return `${open}\n${parts(deeper)
    .map((part) => `${deeper}${part},\n`)
    .join('')}${indent}${close}`;
}

/**
 * @typedef {Object} Made
 * @property {string[]} [steps] Python that makes `shown`, rows of numbers, of the answers `trace` and `before`
 * @property {MadeMap} [map] the map that is drawn, in place of steps
 * @property {string} said what is done with the answer, in plain words that do no harm in a shell
 */

const MERGED = [
  'def merged(weights, rows, columns):',
  '    """Columns from first to last summed, rows averaged; hidden cells count as 0."""',
  '    def cell(top, bottom, left, right):',
  '        parts = [part or 0 for row in weights[top : bottom + 1] for part in row[left : right + 1]]',
  '        return sum(parts) / (bottom + 1 - top)',
  '    return [[cell(*row, *column) for column in columns] for row in rows]',
  '',
];

/**
 * Return units by their first and last token; tokens in a row need no list.
 * @param {Unit[]} units
 */
function spans(units) {
  const [{ first: start } = { first: 0 }] = units;
  const isRun = units.every(({ first, last }, index) => first === last && first === start + index);
  if (isRun) return `[[token, token] for token in range(${start}, ${start + units.length})]`;
  return literal(units.map(({ first, last }) => [first, last]));
}

/** @param {string[]} keys @param {string} [answer] @returns {string} the numbers of an array of an answer */
function dataAt(keys, answer = 'trace') {
  return `${answer}${keys.map((key) => `[${literal(key)}]`).join('')}["data"]`;
}

/**
 * An attention map made of the heads of one array of the answer.
 * @typedef {Object} MadeMap
 * @property {string[]} keys of the array
 * @property {number|null} layer of an array by layer; null: all of its maps, one for each head
 * @property {Unit[]} rows those that are shown
 * @property {Unit[]} columns
 * @property {boolean} isMax the largest of the heads, else their mean
 * @property {boolean} isRenormalised
 */

/** @param {MadeMap} map @returns {string[]} Python that makes `shown` */
export function mapSteps({ keys, layer, rows, columns, isMax, isRenormalised }) {
  const heads = layer === null ? dataAt(keys) : `[${dataAt(keys)}[${layer}]]`;
  return [
    ...MERGED,
    `rows = ${spans(rows)}  # first and last token of each`,
    `columns = ${spans(columns)}`,
    `heads = [merged(head, rows, columns) for head in ${heads}]`,
    `shown = [[${isMax ? 'max(cells)' : 'sum(cells) / len(cells)'} for cells in zip(*row)] for row in zip(*heads)]`,
    ...(isRenormalised
      ? ['shown = [[weight / (sum(row) or 1) for weight in row] for row in shown]']
      : []),
  ];
}

/**
 * @param {{site: string, rows: Unit[], columns: Unit[]}} a
 * @param {{site: string, rows: Unit[], columns: Unit[]}} b of as many rows and columns
 * @returns {Made}
 */
export function differenceMade(a, b) {
  /** @param {{site: string, rows: Unit[], columns: Unit[]}} of @param {string} answer */
  const map = ({ site, rows, columns }, answer) =>
    `merged(${dataAt(['tensors', site], answer)}[0], ${spans(rows)}, ${spans(columns)})`;
  return {
    said: 'The first answer is B, the second A: the drawing shows B less A for the tokens or words that both share',
    steps: [
      ...MERGED,
      `a = ${map(a, 'before')}`,
      `b = ${map(b, 'trace')}`,
      'shown = [[y - x for x, y in zip(*row)] for row in zip(a, b)]',
    ],
  };
}

/**
 * @param {string[]} sites by layer
 * @param {[number, number][]} rows
 * @param {[number, number][]} columns
 * @returns {Made}
 */
export function movedMade(sites, rows, columns) {
  return {
    said: 'The first answer is B, the second A: the drawing shows half the sum of absolute changes of a row, averaged over rows',
    steps: [
      `queries = ${literal(rows)}  # of A and of B`,
      `keys = ${literal(columns)}`,
      'def moved(a, b):',
      '    return sum(abs(b[j][l] - a[i][k]) for i, j in queries for k, l in keys) / 2 / (len(queries) or 1)',
      '',
      'shown = [',
      '    [moved(a, b) for a, b in zip(before["tensors"][site]["data"], trace["tensors"][site]["data"])]',
      `    for site in ${literal(sites)}`,
      ']',
    ],
  };
}

/**
 * @param {number} before the place in A
 * @param {number} after the place in B
 * @param {{isOneVocabulary: boolean, ofEach: number, most: number}} setting how many of each side’s likeliest, and in all
 * @returns {Made}
 */
export function expectedMade(before, after, { isOneVocabulary, ofEach, most }) {
  const softmax = [
    'def chances(answer, at):',
    `    logits = ${dataAt(['tensors', 'logits'], 'answer')}[at]`,
    '    top = max(logits)',
    '    powers = [math.exp(logit - top) for logit in logits]',
    '    total = sum(powers)',
    '    return [power / total for power in powers]',
  ];
  const listed = [
    'def chances(answer, at):',
    '    found = answer["analyses"]["next_token"]',
    '    return dict(zip(found["texts"][at], found["probabilities"]["data"][at]))',
  ];
  const key = isOneVocabulary ? 'found["ids"]["data"][at]' : 'found["texts"][at]';
  /** @param {string} name */
  const chance = (name) => (isOneVocabulary ? `${name}[token]` : `${name}.get(token, math.nan)`);
  return {
    said: 'The first answer is B, the second A: the drawing shows the softmax of both at the chosen token, and B less A',
    steps: [
      'import math',
      '',
      ...(isOneVocabulary ? softmax : listed),
      '',
      'texts = {}',
      `for answer, at in (before, ${before}), (trace, ${after}):`,
      '    found = answer["analyses"]["next_token"]',
      `    texts |= dict(list(zip(${key}, found["texts"][at]))[:${ofEach}])`,
      `a, b = chances(before, ${before}), chances(trace, ${after})`,
      `shown = [[text, ${chance('a')}, ${chance('b')}, ${chance('b')} - ${chance('a')}] for token, text in texts.items()]`,
      `shown = sorted(shown, key=lambda row: -max(chance for chance in row[1:3] if chance == chance))[:${most}]`,
    ],
  };
}
