// Runs beside the process that works: gives every file of the project the number of its load, and the edited ones
// their new text.
import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';

const known = { root: '', stands: {}, edited: new Map() };

export function initialize({ port, root, stands }) {
  Object.assign(known, { root, stands });
  port.on('message', (message) => {
    known.edited = new Map(message.edited);
    port.postMessage({});
  });
  port.unref();
}

function isOurs(url) {
  if (!url || !url.startsWith('file:')) return false;
  const path = fileURLToPath(url);
  return path.startsWith(`${known.root}/`) && !path.includes('/node_modules/');
}

export async function resolve(specifier, context, next) {
  if (specifier === 'node:test?real') return next('node:test', context);
  if (specifier in known.stands && isOurs(context.parentURL))
    return { url: `pawl:${specifier}`, format: 'module', shortCircuit: true };
  const found = await next(specifier, context);
  const number = /[?&]pawl=(\d+)/.exec(context.parentURL || '');
  if (!number || !isOurs(found.url) || found.url.includes('pawl=')) return found;
  return { ...found, url: `${found.url}${found.url.includes('?') ? '&' : '?'}pawl=${number[1]}` };
}

export async function load(url, context, next) {
  if (url.startsWith('pawl:')) return { format: 'module', source: known.stands[url.slice(5)], shortCircuit: true };
  if (!isOurs(url) || context.format !== 'module') return next(url, context);
  const path = fileURLToPath(url);
  const source = known.edited.get(path) ?? (await readFile(path, 'utf8'));
  return { format: 'module', source, shortCircuit: true };
}
