'use strict';
// Which patch is meant: patches that behave alike speak for one another, and what is clearly cheaper is likelier.
const CLEAR = 2.0; // A difference of score that decides between patches that behave differently.
const TROUBLE = 3.0; // What it costs to fail or to hang where the source as it stands does not.
const DEAR = 4.0; // What costs so much is made to fit the tests; where nothing but them speaks for it, it is a guess.
const KEPT = 0.5; // What it is worth to do what the source as it stands does.
const GUESSED = 'it takes several edits, and only these tests speak for them';

function ranked(patches, behaviours) {
  const alone = patches.map((one, group) => [group, one]);
  const isGuess = patches[0].cost >= DEAR;
  if (isGuess && patches.length === 1) return { groups: alone, agreement: 'disputed', reason: GUESSED, margin: 0 };
  if (patches.length === 1) return { groups: alone, agreement: 'sole', reason: 'no other patch passes the tests', margin: 99 };
  const original = behaviours && behaviours[patches.length];
  if (!original || behaviours.some((one) => one && one.length !== original.length)) return untold(alone);
  const groups = grouped(patches, behaviours);
  for (const group of groups) group.score = scored(group, original);
  groups.sort((one, other) => one.score - other.score);
  if (groups.length === 1 && isGuess) return { groups: listed(groups), agreement: 'disputed', reason: GUESSED, margin: 0 };
  if (groups.length === 1)
    return { groups: listed(groups), agreement: 'alike', reason: `${patches.length} patches behave alike`, margin: 99 };
  const margin = Math.round((groups[1].score - groups[0].score) * 1000) / 1000;
  const others = groups.length - 1;
  const [agreement, reason] =
    margin >= CLEAR
      ? ['decided', `simpler than ${others} ${others === 1 ? 'other that behaves' : 'others that behave'} differently`]
      : ['disputed', `${groups.length} patches pass the tests and behave differently`];
  return { groups: listed(groups), agreement, reason, margin };
}

// Nothing tells how they behave, so that only their cost can decide.
function untold(alone) {
  const margin = alone[1][1].cost - alone[0][1].cost;
  if (margin >= CLEAR) return { groups: alone, agreement: 'decided', reason: 'clearly simpler than its rivals', margin };
  return { groups: alone, agreement: 'disputed', reason: 'the patches could not be compared', margin };
}

function grouped(patches, behaviours) {
  const groups = [];
  patches.forEach((patch, number) => {
    const seen = behaviours[number];
    // One that could not be looked at is like none.
    const own = seen && groups.find((group) => group.seen && group.seen.every((each, at) => each === seen[at]));
    if (own) own.patches.push(patch);
    else groups.push({ patches: [patch], seen });
  });
  return groups;
}

function scored(group, original) {
  const cheapest = Math.min(...group.patches.map((one) => one.cost));
  // Variants of one template are one opinion.
  const opinions = new Map();
  for (const one of group.patches) opinions.set(one.template, Math.min(one.cost, opinions.get(one.template) ?? Infinity));
  const votes = Math.log([...opinions.values()].reduce((sum, cost) => sum + Math.exp(cheapest - cost), 0));
  if (!group.seen) return cheapest - votes + TROUBLE;
  const amount = Math.max(1, original.length);
  const trouble = group.seen.filter((one, at) => troubled(one) && !troubled(original[at])).length / amount;
  const kept = group.seen.filter((one, at) => one === original[at]).length / amount;
  return cheapest - votes + TROUBLE * trouble - KEPT * kept;
}

function troubled(ending) {
  return ending === 'time' || ending.startsWith('throws ');
}

// The best of each group first, after two more of the first group; then the rest.
function listed(groups) {
  const heads = groups.map((group, number) => [number, group.patches[0]]);
  const own = groups[0].patches.slice(1).map((one) => [0, one]);
  const tails = groups.slice(1).flatMap((group, number) => group.patches.slice(1).map((one) => [number + 1, one]));
  return [heads[0], ...own.slice(0, 2), ...heads.slice(1), ...own.slice(2), ...tails];
}

module.exports = { ranked };
