/**
 * Plotly, five megabytes of it, fetched beside the page instead of before it.
 */

/**
 * As it loads, plotly.js 4.1 writes a <style> for maps unless an element has this id. There are no
 * maps here, and a strict Content-Security-Policy forbids the <style>: an empty element stands in.
 */
const MAP_STYLES = '9f215cf04c5486422605d13261cb87401f4e7763b6296af81e98efbc0130da53';

let arriving = null;

/**
 * @returns {Promise<Object>} the Plotly global
 */
export function plotly() {
  arriving ??= new Promise((resolve, reject) => {
    const stand = document.getElementById(MAP_STYLES) ?? document.createElement('meta');
    stand.id = MAP_STYLES;
    const script = document.createElement('script');
    script.src = document.getElementById('plotly').href;
    script.addEventListener('load', () => resolve(window.Plotly));
    script.addEventListener('error', () => {
      arriving = null;
      script.remove();
      reject(new Error('Plotly did not load. The tables below hold the same numbers.'));
    });
    document.head.append(stand, script);
  });
  return arriving;
}

/**
 * @returns {Promise<string>} the script itself, for a file that shall need no server
 * @throws {Error} which says what to do
 */
export async function plotlySource() {
  const answer = await fetch(document.getElementById('plotly').href).catch(() => null);
  if (!answer?.ok)
    throw new Error('the server does not answer; check that it is running, then save again');
  return answer.text();
}
