'use strict';
// Loads with `require`, for node:test, mocha and jest; what Node cannot read is first written in older words by what
// the project has for it.
const fs = require('node:fs');
const Module = require('node:module');
const path = require('node:path');
const vm = require('node:vm');
const { isOurs, lacking, partly } = require('./loading.cjs');
const { transformFor } = require('./transforming.cjs');

const ENDINGS = ['.js', '.cjs', '.mjs', '.jsx', '.ts', '.cts', '.mts', '.tsx'];
const MOST_WRITTEN = 4000; // Texts that are kept as they were written anew.

async function requireLoader(state, { only = ENDINGS } = {}) {
  const { root } = state.request;
  const own = Module.createRequire(path.join(root, 'package.json'));
  const texts = new Map();
  const known = await frameworkOf(state, own);
  const transform = await transformFor(state, own, known.config);
  const written = new Map();
  const read = (filename) => {
    if (state.edited.has(filename)) return state.edited.get(filename);
    if (!texts.has(filename)) texts.set(filename, fs.readFileSync(filename, 'utf8').replace(/^\uFEFF/, ''));
    return texts.get(filename);
  };
  const readable = (filename) => {
    const text = read(filename);
    const key = `${filename}\0${text}`;
    if (!written.has(key)) {
      if (written.size > MOST_WRITTEN) written.clear();
      written.set(key, isPlain(filename, text) ? text : transform(filename, text));
    }
    return written.get(key);
  };
  for (const ending of only) {
    const before = Module._extensions[ending];
    Module._extensions[ending] = (module, filename) => {
      if (!isOurs(filename, root) && before) return before(module, filename);
      return module._compile(readable(filename), filename);
    };
  }
  resolveAlso(root, known.resolve);
  lendModules(state, known.modules);
  const forget = () => {
    for (const name of Object.keys(require.cache)) if (isOurs(name, root)) delete require.cache[name];
  };
  return {
    forget,
    prepare: () => known.prepare(),
    load: (filename) => void require(filename),
    plainText: (filename) => (texts.has(filename) && isPlain(filename, texts.get(filename)) ? texts.get(filename) : null),
  };
}

// Whether Node reads a text with `require` as it stands.
function isPlain(filename, text) {
  if (!/\.c?js$/.test(filename)) return false;
  try {
    new vm.Script(Module.wrap(text.replace(/^#!.*/, '')), { filename });
    return true;
  } catch (error) {
    return false;
  }
}

// A source of TypeScript names another one by what it will be compiled to; a project may give names to folders.
function resolveAlso(root, named) {
  const before = Module._resolveFilename;
  Module._resolveFilename = function resolved(name, parent, ...rest) {
    const isNear = parent && parent.filename && isOurs(parent.filename, root);
    const tries = isNear ? [...(named(name) || []), name] : [name];
    if (isNear && /^\.{1,2}\/.*\.[mc]?jsx?$/.test(name)) tries.push(name.replace(/\.([mc]?)jsx?$/, '.$1ts'), name.replace(/\.jsx?$/, '.tsx'));
    let failed;
    for (const one of tries)
      try {
        return before.call(this, one, parent, ...rest);
      } catch (error) {
        failed = failed || error;
      }
    throw failed;
  };
}

function lendModules(state, modules) {
  const load = Module._load;
  Module._load = function loaded(name, parent, ...rest) {
    if (parent && isOurs(parent.filename || '', state.request.root)) {
      if (name === 'node:test' || name === 'test') return state.harness.test;
      const lent = modules(name);
      if (lent) return lent;
    }
    return load.call(this, name, parent, ...rest);
  };
}

async function frameworkOf(state, own) {
  const { framework } = state.request;
  const plain = { config: null, prepare: () => undefined, modules: () => null, resolve: aliasesOf(state, own) };
  if (framework === 'jest') return { ...plain, ...(await jestOf(state, own)) };
  if (framework === 'mocha') return { ...plain, ...mochaOf(state, own) };
  return plain;
}

// What jest would set up: its settings, `expect`, `jest`, and the files that prepare each file of tests.
async function jestOf(state, own) {
  const from = (name, ...through) => through.reduce((near, each) => Module.createRequire(near.resolve(each)), own)(name);
  const core = ['jest', '@jest/core'];
  const { projectConfig: config } = await from('jest-config', ...core).readConfig({ _: [], $0: '' }, state.request.root);
  if (!/node/.test(path.basename(config.testEnvironment)) && !config.testEnvironment.includes('environment-node'))
    throw new Error(`the environment ${config.testEnvironment}`);
  const found = from('expect', 'jest', '@jest/core', 'jest-snapshot');
  const expect = found.expect || found.default || found;
  const { ModuleMocker } = from('jest-mock', ...core, 'jest-runtime');
  const mocker = new ModuleMocker(globalThis);
  const bound = ['fn', 'spyOn', 'clearAllMocks', 'resetAllMocks', 'restoreAllMocks', 'isMockFunction', 'mocked', 'replaceProperty'];
  const jest = Object.fromEntries(bound.filter((name) => mocker[name]).map((name) => [name, mocker[name].bind(mocker)]));
  Object.assign(jest, { setTimeout: () => jest, retryTimes: () => jest });
  const known = partly(state, 'jest', jest);
  for (const name of ['toMatchSnapshot', 'toMatchInlineSnapshot', 'toThrowErrorMatchingSnapshot', 'toThrowErrorMatchingInlineSnapshot'])
    expect.extend({ [name]: lacking(state, `expect().${name}`) });
  const files = [...config.setupFiles, ...config.setupFilesAfterEnv];
  const prepare = () => {
    Object.assign(globalThis, { expect, jest: known });
    if (config.restoreMocks) mocker.restoreAllMocks();
    files.forEach((file) => require(file));
  };
  const modules = (name) => (name === '@jest/globals' ? { ...state.harness.globals, expect, jest: known } : null);
  const mapped = config.moduleNameMapper.map(([pattern, target]) => [new RegExp(pattern), [target].flat()]);
  const resolve = (name) => {
    const hit = mapped.find(([pattern]) => pattern.test(name));
    return hit && hit[1].map((target) => name.replace(new RegExp(`.*?${hit[0].source}.*`), target));
  };
  return { config, prepare, modules, resolve };
}

// What mocha would load before the tests; what only teaches Node to read other sources is not needed.
function mochaOf(state, own) {
  const folder = path.dirname(own.resolve('mocha/package.json'));
  const file = ['options.cjs', 'options.js'].map((name) => path.join(folder, 'lib', 'cli', name)).find((one) => fs.existsSync(one));
  const options = (file && require(file).loadOptions([])) || {};
  if (options.ui && options.ui !== 'bdd' && options.ui !== 'tdd') throw new Error(`the interface ${options.ui}`);
  const teaches = /(^|\/)(ts-node|tsx|esbuild-register|@babel\/register|@swc-node|sucrase|source-map-support)/;
  const files = [options.require, options.file].flat().filter((one) => one && !teaches.test(one));
  const prepare = () =>
    files.forEach((file) => {
      const filename = path.resolve(state.request.root, file);
      const found = fs.existsSync(filename) ? require(filename) : own(file);
      for (const [kind, hooks] of Object.entries((found && found.mochaHooks) || {}))
        [hooks].flat().forEach((hook) => state.harness.globals[kind](hook));
    });
  return { prepare, modules: (name) => (name === 'mocha' ? state.harness.globals : null) };
}

// The names that a project's TypeScript settings give to folders.
function aliasesOf(state, own) {
  const file = ['tsconfig.json', 'jsconfig.json'].map((name) => path.join(state.request.root, name)).find((one) => fs.existsSync(one));
  if (!file) return () => null;
  let compiler;
  try {
    compiler = own('typescript');
  } catch (error) {
    return () => null;
  }
  if (!compiler.readConfigFile) return () => null;
  const { config } = compiler.readConfigFile(file, compiler.sys.readFile);
  const { options } = compiler.parseJsonConfigFileContent(config || {}, { ...compiler.sys, readDirectory: () => [] }, path.dirname(file));
  const base = options.baseUrl || options.pathsBasePath || path.dirname(file);
  const known = Object.entries(options.paths || {}).map(([name, targets]) => [name.split('*'), targets]);
  return (name) => {
    for (const [[start, end], targets] of known) {
      if (end === undefined ? name !== start : !(name.startsWith(start) && name.endsWith(end))) continue;
      const inner = end === undefined ? '' : name.slice(start.length, name.length - end.length);
      return targets.map((target) => path.resolve(base, target.replace('*', inner)));
    }
    return null;
  };
}

module.exports = { requireLoader };
