'use strict';
// The process that leads: hands out proposals, ends what hangs, puts two edits together, compares what was found.
const fs = require('node:fs');
const zlib = require('node:zlib');
const { Worker } = require('./helping.cjs');
const { ranked } = require('./ranking.cjs');

const HORIZON = 2.0; // How much dearer than the first patch a rival may be.
const LEAST = 60; // Milliseconds that a proposal has at least, before it is taken to hang,
const AGAIN = 400; // and at least when it is given a second chance, since the machine may have been busy.
const GRACE = 2000; // Milliseconds more until a process that does not come back is ended.
const FEW = 20; // One of so many.
const MOST_PLAUSIBLE = 30;
const MOST_OFFERED = 8;
const MOST_FIRST = 6; // Edits that mend a part, to each of which a second one is looked for.
const MOST_SECOND = 2500;
const AFTER_FIRST = [1.5, 1.0]; // Seconds for rivals once a patch is found: at least, and as a share of what it took.

function say(event, values) {
  process.stdout.write(JSON.stringify({ event, ...values }) + '\n');
}

// What a search has seen so far, and the time it has.
class Search {
  constructor(request, proposals) {
    this.request = request;
    this.proposals = proposals.map(({ start, end, text, ...rest }) => ({ ...rest, edits: [[start, end, text]] }));
    this.workers = Array.from({ length: Math.max(1, request.workers) }, () => new Worker(request));
    this.started = Date.now();
    Object.assign(this, { queue: [], next: 0, tried: 0, full: [], part: [], ahead: [], late: [], foundAt: null });
  }

  get seconds() {
    return (Date.now() - this.started) / 1000;
  }

  get cpu() {
    const own = process.cpuUsage();
    return this.workers.reduce((sum, one) => sum + one.cpu, (own.user + own.system) / 1e6);
  }

  // What is spent of the time: on a busy machine a measurement counts what was computed, not what was waited for.
  get spent() {
    return this.request.counted === 'cpu' ? this.cpu : this.seconds;
  }

  get left() {
    return this.request.seconds - this.spent;
  }

  get isLate() {
    if (this.left <= 0) return true;
    return this.foundAt !== null && this.spent > this.foundAt + Math.max(AFTER_FIRST[0], this.foundAt * AFTER_FIRST[1]);
  }

  get horizon() {
    return this.full.length ? Math.min(...this.full.map((one) => one.cost)) + HORIZON : Infinity;
  }

  finish(status, values) {
    for (const worker of this.workers) worker.stop();
    const { seconds, cpu, tried } = this;
    say('done', { status, seconds, cpu: Math.round(cpu * 1000) / 1000, tried, ...values });
    process.exit(0);
  }

  tell() {
    const plausible = this.full.length || this.part.length;
    say('progress', { tried: this.tried, cpu: this.cpu, plausible, left: this.left });
  }

  async run(queue, least = LEAST) {
    const limit = Math.max(least, this.baseline.seconds * 6000);
    Object.assign(this, { queue, limit, next: 0, late: [] });
    const telling = setInterval(() => this.tell(), 500);
    await Promise.all(this.workers.map((worker) => this.pull(worker)));
    clearInterval(telling);
  }

  async pull(worker) {
    for (;;) {
      const proposal = this.queue[this.next];
      if (!proposal || proposal.cost > this.horizon || this.full.length >= MOST_PLAUSIBLE || this.isLate) return;
      this.next += 1;
      const question = { kind: 'try', proposal, baseline: this.baseline, limit: this.limit };
      const answer = await worker.ask(question, this.limit + GRACE);
      this.tried += 1;
      if (answer && answer.late) this.late.push(proposal);
      if (!answer || answer.broken) continue;
      if (answer.mended.length === this.baseline.failing.length) {
        if (this.foundAt === null) this.foundAt = this.spent;
        this.full.push(proposal);
      } else if (answer.mended.length) {
        this.part.push({ ...proposal, mended: answer.mended, touched: answer.touched });
      } else if (answer.further) this.ahead.push({ ...proposal, further: answer.further });
    }
  }
}

async function lead(file) {
  const { proposals, ...request } = JSON.parse(zlib.gunzipSync(fs.readFileSync(file)).toString('utf8'));
  fs.unlinkSync(file);
  const search = new Search(request, proposals);
  const patience = Math.max(10, Math.min(request.seconds / 3, 60)) * 1000;
  const baseline = (await search.workers[0].ask({ kind: 'baseline' }, patience)) || hanging(request);
  if (!baseline.failing || !baseline.failing.length) return search.finish('not collected', { reason: baseline.lacking || '' });
  search.baseline = baseline;
  say('baseline', { failing: baseline.failing, passed: baseline.passing.length, seconds: baseline.seconds });
  say('stage', { name: 'search', tests: baseline.failing.length });
  const queue = ordered(search.proposals, baseline.unreached);
  await search.run(queue);
  // Where hardly anything hangs, there is time to be patient.
  const least = search.late.length * FEW < search.tried ? AGAIN : LEAST;
  if (!search.full.length && search.limit < AGAIN) await search.run(search.late, AGAIN);
  if (!search.full.length && !search.isLate) await search.run(pairs(search, queue), least);
  return conclude(search);
}

async function conclude(search) {
  const values = { tests: search.baseline.failing };
  const found = search.full.length ? search.full : mostMended(search.part);
  if (!found.length) return search.finish(search.left <= 0.1 ? 'out of time' : 'no patch', values);
  say('stage', { name: 'compare' });
  const patches = found.sort((one, other) => one.cost - other.cost).slice(0, MOST_PLAUSIBLE);
  const behaviours = await observed(search.workers[0], patches);
  const { groups, ...verdict } = ranked(patches, behaviours);
  const offered = groups.slice(0, MOST_OFFERED).map(([group, one]) => offer(one, group));
  const first = groups[0][1];
  if (!search.full.length) verdict.reason += '; it mends a part of the failing tests';
  if (first.touched) {
    verdict.agreement = 'disputed';
    verdict.reason = 'other tests that run the same code still fail, in another way';
  }
  return search.finish('repaired', { ...values, ...verdict, patches: offered });
}

// A file of tests that never ends fails as a whole.
function hanging({ tests }) {
  return { failing: tests, passing: [], ignored: [], said: {}, places: {}, seconds: 0.1, unreached: {} };
}

// What the failing tests run comes first; the rest can only help by what it does while it is loaded.
function ordered(proposals, unreached) {
  const inside = ([from, to], [start, end]) => from <= start && end <= to;
  const reached = (one) => !(unreached[one.path] || []).some((range) => inside(range, one.edits[0]));
  return [...proposals.filter(reached), ...proposals.filter((one) => !reached(one))];
}

// Each edit that mends a part, or lets a test come further, with every other one of the same function beside it.
function pairs(search, queue) {
  const firsts = [...search.part.filter((one) => !one.touched), ...search.part.filter((one) => one.touched)];
  firsts.sort((one, other) => other.mended.length - one.mended.length || one.cost - other.cost);
  const ahead = search.ahead.sort((one, other) => other.further - one.further || one.cost - other.cost);
  const lines = new Map();
  const few = [...firsts, ...ahead].filter((one) => {
    const place = `${one.path}:${one.line}`;
    lines.set(place, (lines.get(place) || 0) + 1);
    return lines.get(place) <= 2; // Many first edits of one line are variants of one idea.
  });
  const made = few.slice(0, MOST_FIRST).flatMap((first) => {
    const [start, end] = first.edits[0];
    const apart = (one) => one.edits[0][1] < start || end < one.edits[0][0];
    const others = queue.filter((one) => one.path === first.path && one.function === first.function && apart(one));
    return others.slice(0, MOST_SECOND).map((second) => joined(first, second));
  });
  return made.sort((one, other) => one.cost - other.cost);
}

function joined(first, second) {
  const { path, function: name, line } = first;
  const cost = Math.round((first.cost + second.cost) * 100) / 100;
  const template = `${first.template} and ${second.template}`;
  const edits = [...first.edits, ...second.edits].sort((one, other) => one[0] - other[0]);
  return { path, function: name, line, cost, template, edits };
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

// What each patch, and the source as it stands, does on the inputs that the tests gave and on others like them.
async function observed(worker, patches) {
  const first = await worker.ask({ kind: 'record', proposal: patches[0] }, 10000);
  if (!first || !first.inputs) return null;
  const found = [];
  for (const proposal of [...patches, null]) {
    const answer = await worker.ask({ kind: 'behave', proposal, recorded: patches[0] }, 8000);
    found.push(answer && answer.seen ? answer.seen : null);
  }
  return found;
}

function offer(one, group) {
  const { path, edits, template, function: name, line, cost } = one;
  return { path, edits, template, function: name, line, cost, group };
}

module.exports = { lead };
