'use strict';
// Loads modules with `import`, each time under another address, so that nothing that was loaded before is met again.
const Module = require('node:module');
const path = require('node:path');
const { pathToFileURL } = require('node:url');
const { MessageChannel } = require('node:worker_threads');
const { isOurs } = require('./loading.cjs');
const { requireLoader } = require('./require_loading.cjs');

const NAMES = ['describe', 'it', 'test', 'suite', 'before', 'after', 'beforeEach', 'afterEach'];

async function moduleLoader(state) {
  const { root } = state.request;
  const plain = await requireLoader(state, { only: ['.js', '.cjs'] });
  const { port1, port2 } = new MessageChannel();
  const stands = {
    'node:test': standIn('state.harness.test', 'state.harness.globals', "export { mock } from 'node:test?real';"),
    mocha: standIn('state.harness.globals', 'state.harness.globals', ''),
  };
  const data = { port: port2, root, stands };
  Module.register(pathToFileURL(path.join(__dirname, 'module_hooks.mjs')), { data, transferList: [port2] });
  const told = (message) =>
    new Promise((resolve) => {
      port1.once('message', resolve);
      port1.postMessage(message);
      port1.ref();
    }).finally(() => port1.unref());
  let generation = 0;
  const texts = new Map();
  return {
    ...plain,
    async forget() {
      plain.forget();
      generation += 1;
      await told({ edited: [...state.edited] });
    },
    load: (filename) => import(`${pathToFileURL(filename)}?pawl=${generation}`),
    plainText(filename) {
      if (!isOurs(filename, root)) return null;
      if (!texts.has(filename)) texts.set(filename, require('node:fs').readFileSync(filename, 'utf8'));
      return texts.get(filename);
    },
  };
}

// A module that passes everything on to the stand-in of the moment.
function standIn(whole, parts, more) {
  const lines = NAMES.map((name) => `export const ${name} = passed(() => ${parts}[${JSON.stringify(name)}]);`);
  const passed =
    'const passed = (find) => new Proxy(() => undefined, { apply: (_, self, args) => find()(...args), get: (_, name) => find()[name] });';
  const head = `const state = globalThis[Symbol.for('pawl')];\n${passed}\n`;
  return `${head}${lines.join('\n')}\nexport default passed(() => ${whole});\n${more}\n`;
}

module.exports = { moduleLoader, standIn };
