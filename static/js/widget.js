/**
 * The module of a notebook's cells (anywidget). A cell is the page in a frame, whose calls of the API
 * the kernel answers; the page itself arrives once and is shared by all cells of a notebook. Without a
 * kernel a cell shows the picture that the page left when it was last drawn.
 */

/** @typedef {{get: (name: string) => any, set: (name: string, value: any) => void, save_changes: () => void, send: (content: any) => void, on: (event: string, act: (...given: any[]) => void) => void, off: (event: string, act: (...given: any[]) => void) => void}} Model */
/** @typedef {{status: number, type: string, bytes: ArrayBuffer}} Answer */

const PAUSE = 1200;
/** How long another cell's kernel may take to send the page before this one asks for it. */
const SILENCE = 8000;
const shared = /** @type {{headlightPage?: Promise<string>}} */ (globalThis);
/** The picture below a cell is for a notebook without a kernel. */
const HIDES_PICTURES = '.headlight-still { display: none }';

/** @param {{model: Model, el: HTMLElement}} cell */
function render({ model, el }) {
  const calls = createCalls(model);
  el.style.position = 'relative';
  const picture = document.createElement('figure');
  const caption = Object.assign(document.createElement('p'), { textContent: model.get('says') });
  if (model.get('still')) {
    const image = Object.assign(document.createElement('img'), { src: model.get('still') });
    picture.append(caption, image);
  }
  const frame = document.createElement('iframe');
  frame.title = 'Headlight';
  frame.style.cssText = `width: 100%; height: ${model.get('height')}px; border: 0; display: none`;
  el.append(picture, frame);
  let address = model.get('address');
  let timer = 0;

  /** Keep what is drawn as a picture for the notebook without a kernel. */
  const keep = () => {
    clearTimeout(timer);
    timer = setTimeout(async () => {
      const picked = await pictureOf(frame).catch(() => null);
      if (!picked || !frame.isConnected) return;
      model.set('says', picked.says);
      model.set('still', picked.still);
      model.save_changes();
    }, PAUSE);
  };
  /** @type {(address: string) => void} */
  let receive = () => {};
  const bridge = {
    address,
    call: calls.call,
    drawn: keep,
    /** @param {string} written */
    changed(written) {
      address = written;
      model.set('address', written);
      model.save_changes();
      keep();
    },
    /** @param {typeof receive} act */
    onAddress(act) {
      receive = act;
    },
  };
  Object.assign(frame, { headlight: bridge });
  arrived(calls.call).then((page) => {
    frame.srcdoc = page;
    frame.style.display = 'block';
    picture.remove();
    const style = Object.assign(document.createElement('style'), { textContent: HIDES_PICTURES });
    if (!document.getElementById('headlight-live'))
      document.head.append(Object.assign(style, { id: 'headlight-live' }));
  });
  const onAddress = () => {
    const wanted = model.get('address');
    if (wanted === address) return;
    address = wanted;
    receive(wanted);
  };
  model.on('change:address', onAddress);
  return () => {
    clearTimeout(timer);
    model.off('change:address', onAddress);
    calls.close();
  };
}

/**
 * Return the page, which one cell fetches for all.
 * @param {ReturnType<typeof createCalls>['call']} call
 */
async function arrived(call) {
  const ask = () => call('/').then(textOf);
  shared.headlightPage ??= ask();
  const silence = new Promise((resolve) => {
    setTimeout(resolve, SILENCE, '');
  });
  const page = await Promise.race([shared.headlightPage, silence]);
  return page || (shared.headlightPage = ask());
}

/** Return the calls of the API, which the kernel answers. @param {Model} model */
function createCalls(model) {
  /** @type {Map<string, (answer: Answer) => void>} */
  const open = new Map();
  /** @param {{id: string, status: number, type: string}} said @param {DataView[]} buffers */
  const onMessage = ({ id, status, type }, [view]) => {
    const bytes = new Uint8Array(view.buffer, view.byteOffset, view.byteLength).slice().buffer;
    open.get(id)?.({ status, type, bytes });
    open.delete(id);
  };
  model.on('msg:custom', onMessage);
  /** @param {string} path @param {Record<string, any>} [body] @param {string} [accept] @returns {Promise<Answer>} */
  const call = (path, body, accept) =>
    new Promise((resolve) => {
      const id = crypto.getRandomValues(new Uint32Array(2)).join('-');
      open.set(id, resolve);
      model.send({ id, path, body: body ?? null, accept: accept ?? '' });
    });
  return { call, close: () => model.off('msg:custom', onMessage) };
}

/** @param {Answer} answer */
function textOf({ bytes }) {
  return new Response(
    new Blob([bytes]).stream().pipeThrough(new DecompressionStream('gzip')),
  ).text();
}

/** Return the sentence with the finding, and the drawing as an address, of a page. @param {HTMLIFrameElement} frame */
async function pictureOf({ contentDocument: page, contentWindow: view }) {
  const drawing = page?.querySelector('#results .js-plotly-plot');
  const { Plotly } = /** @type {any} */ (view);
  if (!page || !drawing || !Plotly) return null;
  const text = page.querySelector('#text');
  const written = text && 'value' in text ? `“${text.value}” ` : '';
  const says = `${written}${page.querySelector('#says')?.textContent ?? ''}`;
  return { says, still: await Plotly.toImage(drawing, { format: 'svg' }) };
}

export default { render };
