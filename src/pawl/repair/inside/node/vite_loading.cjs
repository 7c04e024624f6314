'use strict';
// Loads as vitest does, through the project's own Vite: its settings, plugins, aliases and transforms. What was
// transformed is kept; only the edited file is transformed again.
const fs = require('node:fs');
const Module = require('node:module');
const path = require('node:path');
const { pathToFileURL } = require('node:url');
const { lacking, partly } = require('./loading.cjs');
const { standIn } = require('./module_loading.cjs');

const ENDINGS = ['ts', 'mts', 'cts', 'js', 'mjs', 'cjs'];
const MORE = ['beforeAll', 'afterAll'];

async function viteLoader(state) {
  const { root } = state.request;
  const own = Module.createRequire(path.join(root, 'package.json'));
  const vitest = path.dirname(own.resolve('vitest/package.json'));
  const near = Module.createRequire(path.join(vitest, 'package.json'));
  const load = (name) => import(pathToFileURL(near.resolve(name)));
  const vite = await load('vite');
  const server = await vite.createServer(settings(state));
  const test = server.config.test || {};
  if (test.browser?.enabled || test.projects || test.workspace) throw new Error('tests in a browser, or of several projects');
  await environment(near, test);
  const { expect, vi } = await expectations(state, near);
  Object.assign(state, { vitest: { expect, vi } });
  const setup = [test.setupFiles || []].flat().map((file) => path.resolve(server.config.root, file));
  const runner = vite.createServerModuleRunner ? modern(vite, server) : older(server);
  let before = [];
  return {
    async forget() {
      for (const filename of new Set([...before, ...state.edited.keys()])) runner.changed(filename);
      before = [...state.edited.keys()];
      runner.forget();
    },
    async prepare() {
      Object.assign(globalThis, { expect, vi });
      if (test.restoreMocks || test.mockReset || test.clearMocks) vi.restoreAllMocks();
      for (const file of setup) await runner.load(file);
    },
    load: (filename) => runner.load(filename),
    plainText: () => null,
  };
}

function settings(state) {
  const { root } = state.request;
  const found = ENDINGS.map((ending) => path.join(root, `vitest.config.${ending}`)).find((file) => fs.existsSync(file));
  const stand = '\0pawl:vitest';
  const plugin = {
    name: 'pawl',
    enforce: 'pre',
    resolveId: (id) => (id === 'vitest' ? stand : null),
    load(id) {
      if (id === stand) return vitestStandIn();
      return state.edited.get(id.replace(/\?.*$/, '')) ?? null;
    },
  };
  const quiet = { middlewareMode: true, hmr: false, ws: false, watch: null, fs: { strict: false } };
  const settled = { root, mode: 'test', appType: 'custom', logLevel: 'silent', clearScreen: false, server: quiet };
  process.env.VITEST ??= 'true';
  process.env.NODE_ENV ??= 'test';
  const inlined = { noExternal: ['vitest', /@testing-library\/(jest-dom|svelte|vue)/] };
  return { ...settled, ...(found ? { configFile: found } : {}), plugins: [plugin], optimizeDeps: { noDiscovery: true, include: [] }, ssr: inlined };
}

function vitestStandIn() {
  const hooks = MORE.map((name) => `export const ${name} = passed(() => state.harness.globals[${JSON.stringify(name)}]);`);
  const lent = ['expect', 'vi'].map((name) => `export const ${name} = state.vitest.${name};`);
  return standIn('state.harness.test', 'state.harness.globals', [...hooks, ...lent, 'export const vitest = vi;'].join('\n'));
}

// The DOM that tests may want.
async function environment(near, { environment: name, environmentOptions: options = {} }) {
  if (!name || name === 'node') return;
  const { builtinEnvironments } = await import(pathToFileURL(near.resolve('vitest/environments')));
  if (!builtinEnvironments[name]) throw new Error(`the environment ${name}`);
  await builtinEnvironments[name].setup(globalThis, options);
}

async function expectations(state, near) {
  const load = (name) => import(pathToFileURL(near.resolve(name)));
  const chai = await load('chai');
  const known = await load('@vitest/expect');
  const spying = await load('@vitest/spy');
  chai.use(known.JestExtend);
  chai.use(known.JestChaiExpect);
  chai.use(known.JestAsymmetricMatchers);
  const expect = Object.assign((value, message) => chai.expect(value, message), chai.expect);
  const start = { assertionCalls: 0, isExpectingAssertions: false, expectedAssertionsNumber: null };
  expect.getState = () => known.getState(expect);
  expect.setState = (values) => known.setState(values, expect);
  expect.extend = (matchers) => chai.expect.extend(expect, matchers);
  Object.assign(expect, { assertions: () => undefined, hasAssertions: () => undefined });
  if (known.GLOBAL_EXPECT) Object.defineProperty(globalThis, known.GLOBAL_EXPECT, { value: expect, configurable: true, writable: true });
  known.setState(start, expect);
  for (const name of ['soft', 'poll', 'addSnapshotSerializer']) expect[name] = lacking(state, `expect.${name}`);
  for (const name of ['toMatchSnapshot', 'toMatchInlineSnapshot', 'toThrowErrorMatchingSnapshot', 'toMatchFileSnapshot'])
    chai.util.addMethod(chai.Assertion.prototype, name, lacking(state, `expect().${name}`));
  const spies = new Set();
  const kept = (spy) => (spies.add(spy), spy);
  const all = (name) => () => {
    if (spying[name]) spying[name]();
    else for (const spy of spies) spy[{ clearAllMocks: 'mockClear', resetAllMocks: 'mockReset', restoreAllMocks: 'mockRestore' }[name]]();
    return vi;
  };
  const more = Object.fromEntries(['clearAllMocks', 'resetAllMocks', 'restoreAllMocks'].map((name) => [name, all(name)]));
  const isMockFunction = (one) => spying.isMockFunction(one);
  const spied = { fn: (call) => kept(spying.fn(call)), spyOn: (...args) => kept(spying.spyOn(...args)), mocked: (one) => one };
  const vi = partly(state, 'vi', { ...spied, ...more, isMockFunction, setConfig: () => undefined });
  return { expect, vi };
}

// Since Vite 6: a runner of modules over the server's environment.
function modern(vite, server) {
  const environment = server.environments.ssr;
  const runner = vite.createServerModuleRunner(environment, { hmr: false, sourcemapInterceptor: false });
  return {
    load: (filename) => runner.import(filename),
    forget: () => runner.clearCache(),
    changed(filename) {
      for (const module of environment.moduleGraph.getModulesByFile(filename) || []) environment.moduleGraph.invalidateModule(module);
    },
  };
}

// Before Vite 6: modules of the server itself.
function older(server) {
  const graph = server.moduleGraph;
  return {
    load: (filename) => server.ssrLoadModule(filename),
    forget() {
      for (const module of graph.idToModuleMap.values()) Object.assign(module, { ssrModule: null, ssrError: null });
    },
    changed(filename) {
      for (const module of graph.getModulesByFile(filename) || []) graph.invalidateModule(module);
    },
  };
}

module.exports = { viteLoader };
