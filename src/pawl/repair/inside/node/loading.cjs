'use strict';
// How the files of a project are loaded again and again: each loader does it as the runner of the project would.
const fs = require('node:fs');
const path = require('node:path');

function isOurs(filename, root) {
  return filename.startsWith(root + path.sep) && !filename.includes(`${path.sep}node_modules${path.sep}`);
}

// Whether Node takes a file for a module: by its ending, or by what its package says.
function isModule(filename) {
  if (/\.(mjs|mts)$/.test(filename)) return true;
  if (!/\.(js|ts|jsx|tsx)$/.test(filename)) return false;
  for (let folder = path.dirname(filename); ; folder = path.dirname(folder)) {
    const file = path.join(folder, 'package.json');
    if (fs.existsSync(file)) return JSON.parse(fs.readFileSync(file, 'utf8')).type === 'module';
    if (folder === path.dirname(folder)) return false;
  }
}

async function loaderFor(state) {
  const { framework, root, tests } = state.request;
  if (framework === 'vitest') return require('./vite_loading.cjs').viteLoader(state);
  const written = tests.some((file) => /\.(ts|tsx|jsx|mts|cts)$/.test(file));
  if (framework !== 'jest' && !written && tests.some((file) => isModule(path.join(root, file))))
    return require('./module_loading.cjs').moduleLoader(state);
  return require('./require_loading.cjs').requireLoader(state);
}

// Something of a framework that has no stand-in here: then the project's own runner has to do it.
function lacking(state, what) {
  return new Proxy(() => undefined, {
    get: (target, name) => (name === 'then' || typeof name === 'symbol' ? undefined : lacking(state, `${what}.${name}`)),
    apply() {
      state.lacking = state.lacking || `${what} has no stand-in`;
      throw new Error(state.lacking);
    },
  });
}

// An object with what is known, and a proxy that lacks the rest.
function partly(state, what, known) {
  return new Proxy(known, {
    get: (target, name) => (name in target || typeof name === 'symbol' ? target[name] : lacking(state, `${what}.${name}`)),
  });
}

module.exports = { isOurs, isModule, lacking, loaderFor, partly };
