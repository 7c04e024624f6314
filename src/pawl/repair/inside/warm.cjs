'use strict';
// Tries proposals in warm processes: each loads the tests again with the edited source in the place of the file, and
// nothing is written. Takes the path of a request as JSON and prints events as the Python engine does.
const childProcess = require('node:child_process');
const fs = require('node:fs');
const Module = require('node:module');
const path = require('node:path');
const util = require('node:util');

const HORIZON = 1.2; // How much dearer than the first patch a rival may be.
const CLEAR = 0.75; // A difference of cost that decides between patches that behave differently.
const START = 10000; // Milliseconds for a process to come up.
const LEAST = 150; // Milliseconds that a proposal has at least, before it is taken to hang.
const MOST_PLAUSIBLE = 30;
const MOST_OFFERED = 8;

// The process that leads: hands out proposals, ends what hangs, compares what was found.

function say(event, values) {
  process.stdout.write(JSON.stringify({ event, ...values }) + '\n');
}

class Worker {
  constructor(request) {
    this.request = request;
    this.process = null;
  }

  start() {
    const options = { stdio: ['ignore', 'ignore', 'ignore', 'ipc'], execArgv: ['--max-old-space-size=1024'] };
    this.process = childProcess.fork(__filename, ['--child'], options);
    return this.exchange({ kind: 'setup', request: this.request }, START);
  }

  // The answer to one question; null when the process died or did not answer in time.
  async ask(question, milliseconds) {
    if (!this.process && !(await this.start())) return null;
    return this.exchange(question, milliseconds);
  }

  exchange(question, milliseconds) {
    const child = this.process;
    return new Promise((resolve) => {
      const end = (answer) => {
        clearTimeout(timer);
        child.removeAllListeners();
        if (answer === null) this.stop();
        resolve(answer);
      };
      const timer = setTimeout(() => end(null), milliseconds);
      child.on('message', end);
      child.on('exit', () => end(null));
      child.on('error', () => end(null));
      child.send(question, (error) => error && end(null));
    });
  }

  stop() {
    if (this.process) this.process.kill('SIGKILL');
    this.process = null;
  }
}

async function lead(file) {
  const asked = JSON.parse(fs.readFileSync(file, 'utf8'));
  fs.unlinkSync(file);
  const { proposals, ...request } = asked;
  const started = Date.now();
  const left = () => request.seconds - (Date.now() - started) / 1000;
  const workers = Array.from({ length: Math.max(1, request.workers) }, () => new Worker(request));
  const finish = (status, values) => {
    for (const worker of workers) worker.stop();
    say('done', { status, seconds: (Date.now() - started) / 1000, cpu: (Date.now() - started) / 1000, ...values });
  };
  const patience = Math.min(request.seconds / 6, 30) * 1000;
  const baseline = (await workers[0].ask({ kind: 'baseline' }, patience)) || hanging(request);
  if (!baseline.failing || baseline.failing.length !== request.failing) return finish('not collected', {});
  say('baseline', { failing: baseline.failing, passed: baseline.passing.length, seconds: baseline.seconds });
  const limit = Math.max(LEAST, baseline.seconds * 6000);
  const queue = ordered(proposals, baseline.unreached);
  const search = { queue, next: 0, tried: 0, full: [], part: [], baseline, limit };
  say('stage', { name: 'search', tests: baseline.failing.length });
  const telling = setInterval(() => tell(search, left), 500);
  await Promise.all(workers.map((worker) => pull(worker, search, left)));
  clearInterval(telling);
  const values = { tests: baseline.failing, tried: search.tried };
  const found = search.full.length ? search.full : mostMended(search.part);
  if (!found.length) return finish(left() <= 0.1 ? 'out of time' : 'no patch', values);
  say('stage', { name: 'compare' });
  const patches = found.sort((one, other) => one.cost - other.cost).slice(0, MOST_PLAUSIBLE);
  await group(workers[0], patches);
  return finish('repaired', { ...values, ...decided(patches, search.full.length > 0) });
}

// A file of tests that never ends fails as a whole.
function hanging({ tests }) {
  return { failing: tests, passing: [], said: {}, seconds: 0.1, unreached: {} };
}

function tell(search, left) {
  const plausible = search.full.length || search.part.length;
  say('progress', { tried: search.tried, cpu: 0, plausible, left: left() });
}

// What the failing tests run comes first; the rest can only help by what it does while it is loaded.
function ordered(proposals, unreached) {
  const reached = (one) => !(unreached[one.path] || []).some(([start, end]) => start <= one.start && one.end <= end);
  return [...proposals.filter(reached), ...proposals.filter((one) => !reached(one))];
}

async function pull(worker, search, left) {
  for (;;) {
    const horizon = search.full.length ? Math.min(...search.full.map((one) => one.cost)) + HORIZON : Infinity;
    const proposal = search.queue[search.next];
    if (!proposal || proposal.cost > horizon || search.full.length >= MOST_PLAUSIBLE || left() <= 0) return;
    search.next += 1;
    const answer = await worker.ask({ kind: 'try', proposal, baseline: search.baseline }, search.limit);
    search.tried += 1;
    if (!answer || !answer.mended || !answer.mended.length) continue;
    if (answer.mended.length === search.baseline.failing.length) search.full.push(proposal);
    else search.part.push({ ...proposal, mended: answer.mended, touched: answer.touched });
  }
}

// Of those that mend a part, the ones that mend the most; patches for other tests are no rivals. One that changes how
// other tests fail, and mends them not, runs in them too: it may well fit its own tests by chance.
function mostMended(every) {
  const apart = every.filter((one) => !one.touched);
  const part = apart.length ? apart : every;
  const most = Math.max(0, ...part.map((one) => one.mended.length));
  const best = part.filter((one) => one.mended.length === most).sort((one, other) => one.cost - other.cost);
  return best.filter((one) => String(one.mended) === String(best[0].mended));
}

async function group(worker, patches) {
  const paths = [...new Set(patches.map((one) => one.path))];
  const recorded = await worker.ask({ kind: 'record', paths, proposal: patches[0] }, 5000);
  const inputs = Array.isArray(recorded) ? recorded : [];
  const seen = new Map();
  for (const patch of patches) {
    const answer = await worker.ask({ kind: 'behave', proposal: patch, inputs }, 1500);
    const sign = answer ? answer.sign : `hangs ${patch.start}`;
    if (!seen.has(sign)) seen.set(sign, seen.size);
    patch.group = seen.get(sign);
  }
}

function decided(patches, whole) {
  const found = patches.slice(0, MOST_OFFERED).map((one) => ({
    path: one.path,
    edits: [[one.start, one.end, one.text]],
    template: one.template,
    function: one.function,
    line: one.line,
    cost: one.cost,
    group: one.group,
  }));
  const rival = patches.find((one) => one.group !== patches[0].group);
  const margin = rival ? rival.cost - patches[0].cost : 99;
  let agreement = 'sole';
  let reason = 'no other patch passes the tests';
  if (rival && margin >= CLEAR) [agreement, reason] = ['decided', 'it is a clearly smaller change than its rivals'];
  else if (rival) [agreement, reason] = ['disputed', 'the rivals behave differently'];
  else if (found.length > 1) [agreement, reason] = ['alike', 'all that was found behaves alike'];
  if (!whole) reason += '; it mends a part of the failing tests';
  if (patches[0].touched) [agreement, reason] = ['disputed', 'other tests that run the same code still fail, in another way'];
  return { patches: found, agreement, reason, margin };
}

// The process that works: loads the tests again and again.

function work() {
  const state = { request: null, texts: new Map(), override: null, after: null, harness: null, stray: 0, said: new Map() };
  process.on('unhandledRejection', () => (state.stray += 1));
  process.on('uncaughtException', () => (state.stray += 1));
  process.on('message', async (message) => {
    let answer = null;
    try {
      if (message.kind === 'setup') setUp(state, message.request);
      if (message.kind === 'baseline') answer = await baseline(state);
      if (message.kind === 'try') answer = await attempt(state, message);
      if (message.kind === 'record') answer = await record(state, message);
      if (message.kind === 'behave') answer = behave(state, message);
    } catch (error) {
      answer = message.kind === 'behave' ? { sign: `fails ${error && error.name}` } : {};
    }
    return process.send(answer || {});
  });
}

function setUp(state, request) {
  state.request = request;
  process.chdir(request.root);
  process.exit = (code) => {
    throw new Error(`the tests end the process with ${code}`);
  };
  for (const ending of ['.js', '.cjs']) {
    Module._extensions[ending] = (module, filename) => {
      module._compile(textOf(state, filename), filename);
      if (state.after) state.after(module, filename);
    };
  }
  const load = Module._load;
  Module._load = function loaded(name, ...rest) {
    if (name === 'node:test' || name === 'test') return state.harness.test;
    if (name === '@jest/globals') return { ...state.harness.globals, expect: globalThis.expect };
    return load.call(this, name, ...rest);
  };
}

function textOf(state, filename) {
  if (state.override && state.override.filename === filename) return state.override.text;
  if (!state.texts.has(filename)) state.texts.set(filename, fs.readFileSync(filename, 'utf8').replace(/^\uFEFF/, ''));
  return state.texts.get(filename);
}

function isOurs(filename, root) {
  return filename.startsWith(root + path.sep) && !filename.includes(`${path.sep}node_modules${path.sep}`);
}

function forget(root) {
  for (const name of Object.keys(require.cache)) if (isOurs(name, root)) delete require.cache[name];
}

function overrideOf(state, proposal) {
  const filename = path.join(state.request.root, proposal.path);
  const data = fs.readFileSync(filename);
  const parts = [data.subarray(0, proposal.start), Buffer.from(proposal.text), data.subarray(proposal.end)];
  return { filename, text: Buffer.concat(parts).toString('utf8') };
}

// A stand-in for describe, it and their hooks: it collects, then runs one after the other.
function harness() {
  const root = { name: '', tests: [], hooks: { before: [], after: [], beforeEach: [], afterEach: [] }, parent: null };
  let current = root;
  const given = (args) => {
    const call = args.find((one) => typeof one === 'function');
    const options = args.find((one) => one && typeof one === 'object') || {};
    return { name: typeof args[0] === 'string' ? args[0] : 'anonymous', call, skip: options.skip || options.todo };
  };
  const test = (...args) => {
    current.tests.push({ ...given(args), suite: current });
    return Promise.resolve();
  };
  const describe = (...args) => {
    const { name, call, skip } = given(args);
    if (!call || skip) return;
    const outer = current;
    current = { name, tests: [], hooks: { before: [], after: [], beforeEach: [], afterEach: [] }, parent: outer };
    outer.tests.push(current);
    try {
      call();
    } finally {
      current = outer;
    }
  };
  const nothing = () => undefined;
  for (const one of [test, describe]) Object.assign(one, { skip: nothing, todo: nothing });
  const hooks = {};
  for (const kind of Object.keys(root.hooks)) hooks[kind] = (call) => current.hooks[kind].push(call);
  const globals = { describe, context: describe, suite: describe, it: test, specify: test, test, ...hooks };
  Object.assign(globals, { beforeAll: hooks.before, afterAll: hooks.after });
  return { root, globals, test: Object.assign((...args) => test(...args), test, globals, { default: test }) };
}

function called(call, context) {
  if (call.length < 2 || context) return call.call(context || {}, context);
  return call.call({});
}

function context(titles, results, said) {
  const inner = async (name, ...rest) => {
    const call = rest.find((one) => typeof one === 'function');
    await runTest({ name, call, suite: null }, titles, results, said);
  };
  const assert = require('node:assert');
  return { name: titles[titles.length - 1], test: inner, it: inner, diagnostic() {}, assert, skip() {}, todo() {} };
}

async function runTest(test, above, results, said) {
  if (!test.call || test.skip) return;
  const titles = [...above, test.name];
  const chain = [];
  for (let suite = test.suite; suite; suite = suite.parent) chain.unshift(suite);
  const before = chain.flatMap((suite) => suite.hooks.beforeEach);
  const after = [...chain].reverse().flatMap((suite) => suite.hooks.afterEach);
  const size = results.size;
  let passed = true;
  try {
    for (const hook of before) await hook.call({});
    await called(test.call, context(titles, results, said));
  } catch (error) {
    passed = false;
    said.set(titles.join(' > '), String(error && error.message));
  }
  for (const hook of after) await hook.call({});
  const inner = [...results.values()].slice(size);
  if (passed || !inner.includes(false)) results.set(titles.join(' > '), passed && !inner.includes(false));
}

async function runSuite(suite, above, results, said, stop) {
  for (const hook of suite.hooks.before) await hook.call({});
  for (const one of suite.tests) {
    if (stop(results)) return;
    if (one.tests) await runSuite(one, [...above, one.name], results, said, stop);
    else await runTest(one, above, results, said);
  }
  for (const hook of suite.hooks.after) await hook.call({});
}

async function runAll(state, stop = () => false) {
  const results = new Map();
  state.said.clear();
  forget(state.request.root);
  for (const file of state.request.tests) {
    state.harness = harness();
    Object.assign(globalThis, state.harness.globals);
    lendExpect(state.request);
    const stray = state.stray;
    process.exitCode = undefined;
    const titles = [file];
    let passed = true;
    try {
      require(path.join(state.request.root, file));
      await runSuite(state.harness.root, titles, results, state.said, stop);
    } catch (error) {
      passed = false;
      state.said.set(file, String(error && error.message));
    }
    await new Promise(setImmediate);
    if (!passed || state.stray !== stray || process.exitCode) results.set(file, false);
    else if (!state.harness.root.tests.length) results.set(file, true);
    if (stop(results)) break;
  }
  process.exitCode = undefined;
  return results;
}

function lendExpect(request) {
  if (globalThis.expect || request.framework !== 'jest') return;
  const own = Module.createRequire(path.join(request.root, 'package.json'));
  const found = own('expect');
  globalThis.expect = found.expect || found.default || found;
}

async function baseline(state) {
  const started = Date.now();
  const first = await runAll(state);
  const seconds = (Date.now() - started) / 1000;
  const names = [...first.keys()];
  const failing = names.filter((name) => !first.get(name));
  const said = Object.fromEntries(state.said);
  const passing = names.filter((name) => first.get(name));
  return { failing, passing, said, seconds, unreached: await unreached(state) };
}

// The parts of our sources that no test runs, in bytes.
async function unreached(state) {
  const inspector = require('node:inspector');
  const session = new inspector.Session();
  session.connect();
  const post = util.promisify(session.post.bind(session));
  await post('Profiler.enable');
  await post('Profiler.startPreciseCoverage', { callCount: true, detailed: true });
  await runAll(state);
  const { result } = await post('Profiler.takePreciseCoverage');
  await post('Profiler.stopPreciseCoverage');
  session.disconnect();
  const found = {};
  for (const script of result) {
    const filename = script.url.replace(/^file:\/\//, '');
    if (!isOurs(filename, state.request.root) || !state.texts.has(filename)) continue;
    const text = state.texts.get(filename);
    const bytes = (place) => Buffer.byteLength(text.slice(0, place));
    const ranges = script.functions.flatMap((one) => one.ranges).filter((range) => range.count === 0);
    found[path.relative(state.request.root, filename)] = ranges.map((range) => [
      bytes(range.startOffset),
      bytes(range.endOffset),
    ]);
  }
  return found;
}

async function attempt(state, { proposal, baseline: before }) {
  state.override = overrideOf(state, proposal);
  const passing = new Set(before.passing);
  const broken = (results) => [...results].some(([name, passed]) => !passed && passing.has(name));
  try {
    const results = await runAll(state, broken);
    if (broken(results) || [...results].some(([name, passed]) => !passed && !before.failing.includes(name))) return {};
    if (before.passing.some((name) => !results.has(name) && name.includes(' > '))) return {};
    const mended = before.failing.filter((name) => passes(results, name));
    const still = before.failing.filter((name) => !mended.includes(name));
    return { mended, touched: still.some((name) => state.said.get(name) !== before.said[name]) };
  } finally {
    state.override = null;
  }
}

// A file that failed as a whole may hold tests that have names of their own once it loads.
function passes(results, name) {
  if (results.has(name)) return results.get(name);
  const inside = [...results].filter(([one]) => one.startsWith(`${name} > `));
  return inside.length > 0 && inside.every(([, passed]) => passed);
}

// What the tests pass to the functions that a module exports, and the same a little changed.
async function record(state, { paths, proposal }) {
  const calls = [];
  const wanted = new Set(paths.map((one) => path.join(state.request.root, one)));
  const wrapped = (file, name, call) =>
    new Proxy(call, {
      apply(target, self, args) {
        if (calls.length < 60) keep(calls, { path: file, name, args });
        return Reflect.apply(target, self, args);
      },
    });
  state.override = overrideOf(state, proposal);
  state.after = (module, filename) => {
    if (!wanted.has(filename)) return;
    const file = path.relative(state.request.root, filename);
    const given = module.exports;
    if (typeof given === 'function') module.exports = wrapped(file, '', given);
    else if (given && typeof given === 'object')
      for (const name of Object.keys(given))
        if (typeof given[name] === 'function') given[name] = wrapped(file, name, given[name]);
  };
  try {
    await runAll(state);
  } finally {
    state.after = null;
    state.override = null;
  }
  return calls.flatMap((call) => [call, ...changed(call)]).slice(0, 600);
}

function keep(calls, call) {
  try {
    const text = JSON.stringify(call);
    if (text.length < 20000) calls.push(JSON.parse(text));
  } catch (error) {
    // What cannot be written down cannot be passed again.
  }
}

function changed(call) {
  return call.args.flatMap((arg, index) =>
    variants(arg).map((other) => ({ ...call, args: call.args.map((one, at) => (at === index ? other : one)) })),
  );
}

function variants(value) {
  if (typeof value === 'number') return Number.isInteger(value) ? [value + 1, Math.max(0, value - 1)] : [value + 0.5];
  if (typeof value === 'string') return [value.slice(1), value.slice(0, -1), [...value].reverse().join('')];
  if (typeof value === 'boolean') return [!value];
  if (!Array.isArray(value) || !value.length) return [];
  return [value.slice(1), value.slice(0, -1), [...value].reverse(), [...value, value[0]]];
}

function behave(state, { proposal, inputs }) {
  state.override = overrideOf(state, proposal);
  const seen = [];
  try {
    forget(state.request.root);
    for (const input of inputs) {
      const module = require(path.join(state.request.root, input.path));
      const call = input.name ? module[input.name] : module;
      const args = structuredClone(input.args);
      try {
        const result = call(...args);
        seen.push(util.inspect([result, args], { depth: 6, maxArrayLength: 200 }));
      } catch (error) {
        seen.push(`throws ${error && error.name}`);
      }
    }
  } finally {
    state.override = null;
  }
  return { sign: require('node:crypto').createHash('sha256').update(seen.join('\n')).digest('hex') };
}

if (process.argv[2] === '--child') work();
else lead(process.argv[2]);
