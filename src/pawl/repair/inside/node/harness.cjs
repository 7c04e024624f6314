'use strict';
// A stand-in for describe, it and their hooks, for every framework alike: it collects, then runs one after the other.
const util = require('node:util');
const vm = require('node:vm');

const KINDS = { before: 'before', after: 'after', beforeEach: 'beforeEach', afterEach: 'afterEach' };
const NAMES = { beforeAll: 'before', afterAll: 'after', setup: 'beforeEach', teardown: 'afterEach' };

function suiteOf(name, parent) {
  return { name, tests: [], parent, only: false, hooks: { before: [], after: [], beforeEach: [], afterEach: [] } };
}

function given(args) {
  const call = args.find((one) => typeof one === 'function');
  const options = args.find((one) => one && typeof one === 'object') || {};
  const [first] = args;
  const name = typeof first === 'string' ? first : (typeof first === 'function' && first.name) || 'anonymous';
  return { name: typeof first === 'number' ? String(first) : name, call, skip: options.skip || options.todo, only: !!options.only };
}

// The title of one row of a table, as jest and vitest write it.
function titled(name, row, index) {
  const values = Array.isArray(row) ? row : [row];
  let text = name.replace(/%#/g, String(index)).replace(/%\$/g, String(index + 1));
  if (!Array.isArray(row) && row && typeof row === 'object')
    text = text.replace(/\$([\w.]+)/g, (whole, path) => {
      const found = path.split('.').reduce((value, key) => (value === undefined ? value : value?.[key]), row);
      return found === undefined ? whole : typeof found === 'string' ? found : util.inspect(found);
    });
  const used = (text.match(/%[sdifjoOp]/g) || []).length;
  return used ? util.format(text.replace(/%p/g, '%j'), ...values.slice(0, used)) : text.replace(/%%/g, '%');
}

class Harness {
  constructor(framework) {
    this.framework = framework;
    this.root = suiteOf('', null);
    this.current = this.root;
    this.hasOnly = false;
    const test = this.variants((args, marks) => this.addTest(args, marks));
    const describe = this.variants((args, marks) => this.addSuite(args, marks));
    const hooks = {};
    for (const kind of Object.keys(KINDS)) hooks[kind] = (...args) => void this.current.hooks[kind].push(given(args).call);
    for (const [name, kind] of Object.entries(NAMES)) hooks[name] = hooks[kind];
    const others = { context: describe, suite: describe, it: test, specify: test, xit: test.skip, xtest: test.skip };
    this.globals = { describe, test, ...others, xdescribe: describe.skip, fit: test.only, fdescribe: describe.only, ...hooks };
    this.test = Object.assign((...args) => test(...args), test, this.globals, { default: test, run: undefined });
  }

  // test, test.skip, test.only, test.each(...), and the like.
  variants(add) {
    const make = (marks) => (...args) => {
      add(args, marks);
      return Promise.resolve();
    };
    const each = (marks) => (table, ...values) => {
      if (table && table.raw) throw new Error('tables that are written as text are not known here');
      return (name, ...rest) =>
        table.forEach((row, index) => {
          const call = rest.find((one) => typeof one === 'function');
          const bound = call && ((...more) => (Array.isArray(row) ? call(...row) : call(row, ...more)));
          if (bound) Object.defineProperty(bound, 'length', { value: 0 });
          add([titled(name, row, index), bound], marks);
        });
    };
    const whole = (marks) => Object.assign(make(marks), { each: each(marks), for: each(marks) });
    const skip = whole({ skip: true });
    const plain = whole({});
    const only = whole({ only: true });
    const when = (wanted) => (condition) => (!!condition === wanted ? plain : skip);
    const chained = { skip, todo: skip, only, concurrent: plain, sequential: plain, skipIf: when(false), runIf: when(true) };
    return Object.assign(plain, chained);
  }

  addTest(args, marks) {
    const test = { ...given(args), suite: this.current };
    if (marks.skip) test.skip = true;
    if (marks.only || test.only) this.hasOnly = test.only = true;
    this.current.tests.push(test);
  }

  addSuite(args, marks) {
    const { name, call, skip, only } = given(args);
    if (!call || skip || marks.skip) return;
    const outer = this.current;
    this.current = suiteOf(name, outer);
    if (marks.only || only) this.hasOnly = this.current.only = true;
    outer.tests.push(this.current);
    try {
      call.call(mocha());
    } finally {
      this.current = outer;
    }
  }
}

// What mocha's functions find in `this`.
function mocha(values = {}) {
  const self = { ...values };
  for (const name of ['timeout', 'slow', 'retries']) self[name] = () => self;
  self.skip = () => {
    throw SKIPPED;
  };
  return self;
}

const SKIPPED = new Error('skipped');

// Runs what was collected. What hangs in one piece is stopped without an end of the process.
class Runner {
  constructor(harness, milliseconds, wanted) {
    Object.assign(this, { harness, milliseconds, wanted, results: new Map(), said: new Map(), places: new Map() });
    this.shared = mocha();
  }

  async run(titles, stop) {
    await this.suite(this.harness.root, titles, stop);
  }

  async suite(suite, above, stop) {
    if (!this.isWanted(suite, above)) return;
    for (const hook of suite.hooks.before) await this.call(hook, hook.length > 0 && this.hasDone());
    for (const one of suite.tests) {
      if (stop(this.results)) return;
      if (one.tests) await this.suite(one, [...above, one.name], stop);
      else await this.test(one, above);
    }
    for (const hook of suite.hooks.after) await this.call(hook, hook.length > 0 && this.hasDone());
  }

  // Whether a suite, or a test, has something to run when only some tests are wanted.
  isWanted(one, above) {
    if (this.harness.hasOnly && !onlyAbove(one) && !(one.tests && onlyBelow(one))) return false;
    if (!this.wanted) return true;
    const name = one.tests ? above.join(' > ') : [...above, one.name].join(' > ');
    return one.tests ? [...this.wanted].some((each) => each === name || each.startsWith(`${name} > `)) : this.wanted.has(name);
  }

  async test(test, above) {
    if (!test.call || test.skip || !this.isWanted(test, above)) return;
    const titles = [...above, test.name];
    const name = titles.join(' > ');
    const chain = [];
    for (let suite = test.suite; suite; suite = suite.parent) chain.unshift(suite);
    const size = this.results.size;
    let passed = true;
    try {
      for (const suite of chain) for (const hook of suite.hooks.beforeEach) await this.call(hook, hook.length > 0 && this.hasDone());
      await this.call(test.call, this.hasDone() ? test.call.length > 0 : test.call.length > 1, this.context(titles));
      for (const suite of chain.reverse()) for (const hook of suite.hooks.afterEach) await this.call(hook, hook.length > 0 && this.hasDone());
    } catch (error) {
      if (error === SKIPPED) return;
      passed = false;
      this.fail(name, error);
    }
    const inner = [...this.results.values()].slice(size);
    if (passed || !inner.includes(false)) this.results.set(name, passed && !inner.includes(false));
  }

  fail(name, error) {
    this.said.set(name, String(error && error.message));
    this.places.set(name, placeOf(error, name.split(' > ')[0]));
  }

  hasDone() {
    return this.harness.framework === 'jest' || this.harness.framework === 'mocha';
  }

  context(titles) {
    if (this.hasDone()) return undefined;
    const inner = async (name, ...rest) => {
      await this.test({ name, call: rest.find((one) => typeof one === 'function'), suite: null }, titles);
    };
    const name = titles[titles.length - 1];
    const nothing = () => undefined;
    const skip = this.shared.skip;
    const common = { name, skip, todo: nothing, diagnostic: nothing, expect: globalThis.expect, task: { name } };
    return { ...common, test: inner, it: inner, assert: require('node:assert'), mock: require('node:test').mock };
  }

  // Calls something that may give a promise, or be given what to call when it is done.
  async call(call, done, context) {
    const limited = (promise) => {
      let timer;
      const late = new Promise((_, reject) => {
        timer = setTimeout(() => reject(new Error('does not end')), this.milliseconds);
      });
      return Promise.race([promise, late]).finally(() => clearTimeout(timer));
    };
    if (!done) {
      const answer = within(this.milliseconds, () => call.call(this.shared, context));
      if (answer && typeof answer.then === 'function') await limited(answer);
      return;
    }
    await limited(
      new Promise((resolve, reject) => {
        const end = (error) => (error ? reject(error) : resolve());
        within(this.milliseconds, () => (context ? call.call(this.shared, context, end) : call.call(this.shared, end)));
      }),
    );
  }
}

function onlyAbove(one) {
  for (let each = one; each; each = each.suite || each.parent) if (each.only) return true;
  return false;
}

function onlyBelow(suite) {
  return suite.tests.some((one) => one.only || (one.tests && onlyBelow(one)));
}

// What the call gives; an error when it takes too long in one piece.
function within(milliseconds, call) {
  globalThis.__pawlCall = call;
  return CALL.runInThisContext({ timeout: Math.max(1, Math.ceil(milliseconds)) });
}

const CALL = new vm.Script('globalThis.__pawlCall()');

// The line of the test file at which a test broke off: the further down, the more of it went well.
function placeOf(error, file) {
  const lines = String((error && error.stack) || '').split('\n').filter((line) => /^\s*at /.test(line) && line.includes(file));
  const found = lines.length && /:(\d+):\d+\)?$/.exec(lines[0].replace(/\?[^:)]*/, ''));
  return found ? Number(found[1]) : 0;
}

module.exports = { Harness, Runner, within };
