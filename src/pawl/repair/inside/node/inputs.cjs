'use strict';
// What functions were given by the tests, the same a little changed, and what they make of it.
const util = require('node:util');
const { within } = require('./harness.cjs');

const MOST_CALLS = 60;
const MOST_INPUTS = 600;
const CALL_LIMIT = 100; // Milliseconds for one call.

// A copy that shares nothing but functions with its model; what has a class keeps it.
function copied(value, seen = new Map(), depth = 0) {
  if (value === null || typeof value !== 'object') return value;
  if (seen.has(value)) return seen.get(value);
  if (depth > 30) throw new Error('too deep to be copied');
  const deeper = (one) => copied(one, seen, depth + 1);
  if (value instanceof Date) return new Date(value.getTime());
  if (value instanceof RegExp) return new RegExp(value.source, value.flags);
  if (ArrayBuffer.isView(value) || value instanceof ArrayBuffer) return structuredClone(value);
  if (value instanceof Promise || value instanceof WeakMap || value instanceof WeakSet) return value;
  let made;
  if (Array.isArray(value)) made = [];
  else if (value instanceof Map) made = new Map();
  else if (value instanceof Set) made = new Set();
  else made = Object.create(Object.getPrototypeOf(value));
  seen.set(value, made);
  if (value instanceof Map) for (const [key, one] of value) made.set(deeper(key), deeper(one));
  if (value instanceof Set) for (const one of value) made.add(deeper(one));
  for (const key of Object.keys(value)) {
    const held = Object.getOwnPropertyDescriptor(value, key);
    made[key] = 'value' in held ? deeper(held.value) : undefined;
  }
  if (Array.isArray(value)) made.length = value.length;
  return made;
}

function variants(value, depth = 0) {
  if (typeof value === 'number') {
    const near = Number.isInteger(value) ? [value + 1, value - 1, -value, 0, value * 2] : [value + 0.5, -value, Math.round(value)];
    return near.filter((one, at) => !Object.is(one, value) && near.indexOf(one) === at);
  }
  if (typeof value === 'string') {
    if (!value) return ['a'];
    const turned = [...value].reverse().join('');
    return [value.slice(1), value.slice(0, -1), turned, value + value, value.toUpperCase(), value + value[0], ''];
  }
  if (typeof value === 'boolean') return [!value];
  if (Array.isArray(value)) return arrays(value, depth);
  if (value && typeof value === 'object' && Object.getPrototypeOf(value) === Object.prototype && depth < 2) return objects(value, depth);
  return [];
}

function arrays(value, depth) {
  if (!value.length) return [];
  const turned = [...value].reverse();
  const found = [value.slice(1), value.slice(0, -1), turned, [...value, value[0]], []];
  if (depth < 2)
    for (const at of new Set([0, value.length - 1, value.length >> 1]))
      for (const other of variants(value[at], depth + 1).slice(0, 3)) found.push(value.map((one, each) => (each === at ? other : one)));
  return found;
}

function objects(value, depth) {
  return Object.keys(value)
    .slice(0, 4)
    .flatMap((key) => variants(value[key], depth + 1).slice(0, 3).map((other) => ({ ...value, [key]: other })));
}

// Keeps what functions are called with, by the number of the function.
class Recorder {
  constructor() {
    this.calls = [];
    this.keys = new Set();
    this.busy = false;
  }

  take(number, args, self) {
    if (this.calls.length >= MOST_CALLS || this.busy) return;
    this.busy = true;
    try {
      const key = util.inspect([number, args, self], { depth: 4, maxArrayLength: 100, maxStringLength: 2000 });
      if (this.keys.has(key) || key.length > 20000) return;
      this.keys.add(key);
      this.calls.push({ number, args: copied([...args]), self: self === undefined ? undefined : copied(self) });
    } catch (error) {
      // What cannot be copied cannot be passed again.
    } finally {
      this.busy = false;
    }
  }

  inputs() {
    const changed = ({ args, ...rest }) =>
      args.flatMap((arg, index) => variants(arg).map((other) => ({ ...rest, args: args.map((one, at) => (at === index ? other : one)) })));
    const more = this.calls.map(changed);
    const found = [...this.calls];
    // In turn, so that every call is varied before one is varied much.
    for (let round = 0; found.length < MOST_INPUTS && more.some((each) => round < each.length); round += 1)
      for (const each of more) if (round < each.length && found.length < MOST_INPUTS) found.push(each[round]);
    return found;
  }
}

// What one call comes to, as a text: its result, and what became of what it was given.
async function outcome(target, input) {
  try {
    const args = copied(input.args);
    const self = input.self === undefined ? undefined : belonging(copied(input.self), target.holder);
    const call = target.method ? (self ?? target.holder)[target.method] : target.holder;
    let result = within(CALL_LIMIT, () => call.apply(self ?? (target.method ? target.holder : undefined), args));
    if (result && typeof result.then === 'function') result = await settled(result);
    return util.inspect([result, args, self], { depth: 6, maxArrayLength: 200, breakLength: Infinity });
  } catch (error) {
    return error && error.code === 'ERR_SCRIPT_EXECUTION_TIMEOUT' ? 'time' : `throws ${error && error.name}`;
  }
}

// An object that was made by the class of another load of the module belongs to the one of this load.
function belonging(self, holder) {
  if (typeof holder === 'function' && self && typeof self === 'object') Object.setPrototypeOf(self, holder.prototype);
  return self;
}

function settled(promise) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error('does not end')), CALL_LIMIT);
  });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

module.exports = { Recorder, outcome };
