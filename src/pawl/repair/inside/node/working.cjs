'use strict';
// The process that works: loads the tests again and again, each time with other sources.
const fs = require('node:fs');
const path = require('node:path');
const util = require('node:util');
const { Harness, Runner, within } = require('./harness.cjs');
const { Recorder, outcome } = require('./inputs.cjs');
const { loaderFor } = require('./loading.cjs');

const TIRED = 600 << 20; // Bytes of memory after which a fresh process goes on: what was loaded as a module is never freed.
const PATIENCE = 5000; // Milliseconds for a test, before it is known how long they take: at most, and
const SHARE = 0.1; // as a share of the time for the search.
const BRIEF = 150; // Milliseconds for a test, once it is known that some hang.

function work() {
  const state = { request: null, edited: new Map(), loader: null, harness: null, stray: 0, lacking: '' };
  globalThis[Symbol.for('pawl')] = state;
  process.on('unhandledRejection', () => (state.stray += 1));
  process.on('uncaughtException', () => (state.stray += 1));
  const send = process.send.bind(process);
  process.send = undefined;
  process.on('message', async (message) => {
    let answer = {};
    try {
      answer = (await ANSWERS[message.kind](state, message)) || {};
    } catch (error) {
      answer = { broken: true, lacking: `${message.kind}: ${error && error.message}` };
    }
    const { user, system } = process.cpuUsage();
    send({ ...answer, cpu: (user + system) / 1e6, tired: process.memoryUsage.rss() > TIRED });
  });
}

const ANSWERS = { setup: setUp, baseline, try: attempt, record, behave };

async function setUp(state, { request }) {
  state.request = request;
  process.chdir(request.root);
  process.exit = (code) => {
    throw new Error(`the tests end the process with ${code}`);
  };
  process.abort = process.exit;
  try {
    state.loader = await loaderFor(state);
  } catch (error) {
    state.lacking = `the tests cannot be loaded here: ${error && error.message}`;
  }
}

// The bytes of a file with some of them replaced; what overlaps something before it is left out.
function replaced(data, edits) {
  const parts = [];
  let position = 0;
  for (const [start, end, text] of [...edits].sort((one, other) => one[0] - other[0] || one[1] - other[1])) {
    if (start < position) continue;
    parts.push(data.subarray(position, start), Buffer.from(text));
    position = end;
  }
  return Buffer.concat([...parts, data.subarray(position)]).toString('utf8');
}

// Puts a proposal in the place of its file; with marks, every function of the marked files tells what it is given.
function edit(state, proposal, marks = {}) {
  state.edited.clear();
  const paths = new Set([...(proposal ? [proposal.path] : []), ...Object.keys(marks)]);
  for (const one of paths) {
    const filename = path.join(state.request.root, one);
    const own = proposal && proposal.path === one ? proposal.edits : [];
    const told = (marks[one] ? marks[one].insertions : []).filter(([at]) => !own.some(([from, to]) => from < at && at < to));
    const insertions = told.map(([at, text]) => [at, at, text]);
    state.edited.set(filename, replaced(fs.readFileSync(filename), [...insertions, ...own]) + (marks[one] ? marks[one].tail : ''));
  }
}

async function runAll(state, { stop = () => false, limit = PATIENCE, wanted = null } = {}) {
  const every = { results: new Map(), said: new Map(), places: new Map() };
  await state.loader.forget();
  for (const file of state.request.tests) {
    const harness = new Harness(state.request.framework);
    const runner = new Runner(harness, limit, wanted);
    Object.assign(runner, every);
    state.harness = harness;
    Object.assign(globalThis, harness.globals);
    const stray = state.stray;
    process.exitCode = undefined;
    let passed = true;
    try {
      await state.loader.prepare();
      const loading = within(limit, () => state.loader.load(path.join(state.request.root, file)));
      if (loading && typeof loading.then === 'function') await loading;
      await runner.run([file], stop);
    } catch (error) {
      passed = false;
      runner.fail(file, error);
    }
    await new Promise(setImmediate);
    if (!passed || state.stray !== stray || process.exitCode) every.results.set(file, false);
    else if (!harness.root.tests.length) every.results.set(file, true);
    if (stop(every.results)) break;
  }
  process.exitCode = undefined;
  return every;
}

// Names as the runner of the project may write them.
function plain(name, files) {
  const parts = name.split(' > ');
  return (parts.length > 1 && files.includes(parts[0]) ? parts.slice(1) : parts).join(' ');
}

async function baseline(state) {
  if (state.lacking) return { lacking: state.lacking };
  const { request } = state;
  const first = await runAll(state, { limit: Math.min(PATIENCE, request.seconds * SHARE * 1000) });
  const hangs = isLate(first.said);
  const limit = hangs ? BRIEF : PATIENCE;
  const started = Date.now();
  const { results, said, places } = await runAll(state, { limit });
  // What hangs says nothing of how long the tests take.
  const seconds = hangs ? BRIEF / 6000 : (Date.now() - started) / 1000;
  const names = [...results.keys()];
  const broken = names.filter((name) => !results.get(name));
  const passing = names.filter((name) => results.get(name));
  const wanted = new Set(request.failing.map((name) => plain(name, request.tests)));
  const known = broken.filter((name) => wanted.has(plain(name, request.tests)));
  // Where names are written in another way, their number must do; a file that cannot be loaded here is another failure.
  const isFile = (name) => request.tests.includes(name) && !wanted.has(name);
  const alike = broken.length === request.failing.length && !broken.some(isFile);
  const failing = known.length === wanted.size ? known : alike ? broken : [];
  const ignored = broken.filter((name) => !failing.includes(name));
  const lacking = state.lacking || (failing.length && ignored.length <= passing.length ? '' : 'other tests fail here');
  if (lacking) return { lacking };
  const reach = await unreached(state, new Set(failing), limit);
  const values = { said: Object.fromEntries(said), places: Object.fromEntries(places), unreached: reach };
  return { failing, passing, ignored, seconds: Math.max(seconds, 0.001), ...values };
}

// Whether a test was stopped because it took too long.
function isLate(said) {
  return [...said.values()].some((text) => /execution timed out|does not end/.test(text));
}

// The parts of our sources that no failing test runs, in bytes.
async function unreached(state, failing, limit) {
  const session = new (require('node:inspector').Session)();
  session.connect();
  const post = util.promisify(session.post.bind(session));
  await post('Profiler.enable');
  await post('Profiler.startPreciseCoverage', { callCount: true, detailed: true });
  await runAll(state, { wanted: failing, limit });
  const { result } = await post('Profiler.takePreciseCoverage');
  await post('Profiler.stopPreciseCoverage');
  session.disconnect();
  const found = {};
  for (const script of result) {
    const filename = script.url.replace(/^file:\/\//, '').replace(/\?.*$/, '');
    const text = state.loader.plainText(filename);
    if (text === null) continue;
    const bytes = (place) => Buffer.byteLength(text.slice(0, place));
    const ranges = script.functions.flatMap((one) => one.ranges).filter((range) => range.count === 0);
    found[path.relative(state.request.root, filename)] = ranges.map((range) => [bytes(range.startOffset), bytes(range.endOffset)]);
  }
  return found;
}

async function attempt(state, { proposal, baseline: before, limit }) {
  const passing = new Set(before.passing);
  const ignored = new Set(before.ignored);
  const broken = (results) => [...results].some(([name, passed]) => !passed && passing.has(name));
  edit(state, proposal);
  try {
    const { results, said, places } = await runAll(state, { stop: broken, limit });
    const failing = new Set(before.failing);
    const news = [...results].some(([name, passed]) => !passed && !failing.has(name) && !ignored.has(name));
    const gone = before.passing.some((name) => !results.has(name) && name.includes(' > '));
    const late = isLate(said);
    if (broken(results) || news || gone) return { broken: true, late };
    const mended = before.failing.filter((name) => passes(results, name));
    const still = before.failing.filter((name) => !mended.includes(name));
    const further = Math.max(0, ...still.map((name) => (places.get(name) || 0) - (before.places[name] || Infinity)));
    return { mended, touched: still.some((name) => said.get(name) !== before.said[name]), further, late };
  } finally {
    state.edited.clear();
  }
}

// A file that failed as a whole may hold tests that have names of their own once it loads.
function passes(results, name) {
  if (results.has(name)) return results.get(name);
  const inside = [...results].filter(([one]) => one.startsWith(`${name} > `));
  return inside.length > 0 && inside.every(([, passed]) => passed);
}

// What the tests pass to the functions of the sources, and the same a little changed.
async function record(state, { proposal }) {
  const recorder = new Recorder();
  const marks = state.request.marks[proposal.path] ? { [proposal.path]: state.request.marks[proposal.path] } : {};
  state.marks = marks;
  edit(state, proposal, marks);
  globalThis.__pawlSaw = (number, args, self) => recorder.take(number, args, self);
  try {
    await runAll(state);
  } finally {
    globalThis.__pawlSaw = undefined;
    state.edited.clear();
  }
  state.inputs = recorder.inputs();
  return { inputs: state.inputs.length };
}

async function behave(state, { proposal, recorded }) {
  if (!state.inputs) await record(state, { proposal: recorded });
  const targets = new Map();
  edit(state, proposal, state.marks);
  globalThis.__pawlGave = (given) => {
    for (const [number, method, find] of given)
      try {
        targets.set(number, { method, holder: find() });
      } catch (error) {
        // A name that is not there cannot be called.
      }
  };
  const seen = [];
  try {
    await runAll(state, { wanted: new Set(), limit: 1000 });
    if (!targets.size) return {};
    for (const input of state.inputs) {
      const target = targets.get(input.number);
      seen.push(target ? await outcome(target, input) : 'throws nothing to call');
    }
  } finally {
    globalThis.__pawlGave = undefined;
    state.edited.clear();
  }
  return { seen };
}

module.exports = { work };
