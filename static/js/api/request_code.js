/**
 * The API call behind a drawing, as a command for a shell and as a Python script that prints the
 * answer.
 */

import { quotedLine } from '../words/text.js';
import { SELECTING, STREAMED } from './routes.js';
import { withoutNulls } from '../trace/trace.js';

/**
 * @typedef {Object} Call
 * @property {string} path `/api/v1/trace`
 * @property {(Ask & Record<string, unknown>)|null} [body] of a POST; none: the call is a GET
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
const SAID = ['model', 'text', 'target', 'edits', 'logit_difference'];

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
 * @param {string} origin `http://127.0.0.1:8000`
 * @param {Call[]} calls the second is of a change, or of the pass that the first is compared with
 * @param {{quantity: string, made?: string}} grid what the drawing shows
 * @returns {string} whatever a text holds stays within its quotes
 */
export function pythonOf(origin, calls, { quantity, made }) {
  const names = ['trace', calls[0].changed ? 'changed' : 'before'];
  const isStreamed = STREAMED.includes(calls[0].path);
  return [
    `# The answer behind: ${quantity.replace(/\s+/g, ' ')}`,
    ...(made ? [`# ${made}`] : []),
    askingFor(isStreamed ? 'text/event-stream' : 'application/json'),
    isStreamed ? READING_EVENTS : READING,
    ...calls.flatMap((call, at) => [
      `${names[at]} = read(ask(${argumentsOf(origin, call)}))`,
      ...(isStreamed ? [] : [`show(${names[at]})`]),
    ]),
    '',
  ].join('\n');
}

/** @param {string} type of the answer */
const askingFor = (type) => `import json
import urllib.request

def ask(url, body=None):
    headers = {"Content-Type": "application/json", "Accept": "${type}"}
    data = body and body.encode()
    return urllib.request.urlopen(urllib.request.Request(url, data, headers))
`;

/** Server-Sent Events: the data of each is one line of JSON, whose lists are many numbers. */
const READING_EVENTS = `def read(reply):
    lines = [line.removeprefix(b"data: ") for line in reply if line.startswith(b"data: ")]
    for event in map(json.loads, lines):
        print({key: part for key, part in event.items() if not isinstance(part, (dict, list))})
`;

const READING = `read = json.load

def rows_of(data):
    """Return the innermost lists, in order."""
    if isinstance(data, list) and any(isinstance(part, list) for part in data):
        return [row for part in data for row in rows_of(part)]
    return [data if isinstance(data, list) else [data]]

def show(part, path=""):
    """Print the members of an answer; of an array its axes, its shape and its first rows."""
    if isinstance(part, dict) and "axes" in part and "data" in part:
        print(path, part["axes"], part["shape"])
        for row in rows_of(part["data"])[:32]:
            print(*(f"{cell:9.4g}" if isinstance(cell, float) else f"{cell!s:>9}" for cell in row[:32]))
    elif isinstance(part, dict):
        for name, member in part.items():
            show(member, f"{path}.{name}".lstrip("."))
    else:
        print(path, str(part)[:200])
`;

/**
 * Return an address and a body as Python. JSON has no three quotes in a row, so that it ends no raw
 * string.
 * @param {string} origin
 * @param {Call} call
 */
function argumentsOf(origin, { path, body }) {
  const url = JSON.stringify(origin + path);
  if (!body) return url;
  const members = Object.entries(body)
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) => `    ${JSON.stringify(name)}: ${JSON.stringify(value)}`);
  return `${url}, r"""{\n${members.join(',\n')}\n}"""`;
}
