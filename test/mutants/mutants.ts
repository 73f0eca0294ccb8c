/** One way to get a rule of evidence wrong: a condition dropped, a comparison weakened, a rule skipped. */
export interface Mutant {
  rule: string;
  /** For people. */
  what: string;
  file: 'answer' | 'counting' | 'evidence' | 'certified';
  /** Stands in the file exactly once. */
  from: string;
  to: string;
}

const answer = mutantsOf('answer');
const counting = mutantsOf('counting');
const evidence = mutantsOf('evidence');
const certified = mutantsOf('certified');

/** At least two for every rule. */
export const MUTANTS: readonly Mutant[] = [
  answer('order', 'any number of strays', 'if (strays > allowed) return undefined;', ''),
  answer('order', 'one stray in five', 'const ROWS_A_STRAY = 50;', 'const ROWS_A_STRAY = 5;'),
  answer(
    'order',
    'a reversed page of ties',
    '.length >= line.length) return undefined;',
    '.length > rows.length) return undefined;',
  ),
  answer('order', 'asked newest first, taken as shown', "query.order === 'asc' ? rows : rows.toReversed()", 'rows'),
  answer('order', 'pages longer than asked', 'near.length > query.limit && query.page > 1 ? undefined : near', 'near'),
  answer('reach', 'skipped', 'const near = withinReach(past, query);', 'const near = line;'),
  answer('reach', 'garbled times in the past', 'at >= start - WIDENED_MS && ', ''),
  answer('reach', 'garbled times in the future', ' && at <= end + WIDENED_MS', ''),
  answer(
    'reach',
    'a single row close by',
    'if (strays.length > 0) return near.filter((row) => !strays.includes(row));',
    '',
  ),
  answer('reach', 'garbled times on both sides', 'return isOneSided ? line : [];', 'return line;'),
  answer(
    'inside',
    'the instant of its oldest row',
    '? { after: oldest.at, before: newest.at } : undefined',
    '? { after: oldest.at - 1, before: newest.at } : undefined',
  ),
  answer(
    'inside',
    'the instant of its newest row',
    '? { after: oldest.at, before: newest.at } : undefined',
    '? { after: oldest.at, before: newest.at + 1 } : undefined',
  ),
  answer(
    'inside',
    'up to the asked end, where the page is not full',
    'const [oldest, newest] = [line[0], line.at(-1)];\n  return oldest',
    'const [oldest, newest] = [line[0], line.length < 2 ? line.at(-1) : { at: (line.at(-1)?.at ?? 0) + 86_400_000 }];\n  return oldest',
  ),
  answer(
    'newest',
    'any page',
    ' || query.page !== 1 || query.end < answeredAt || !oldest',
    ' || query.end < answeredAt || !oldest',
  ),
  answer('newest', 'any order', "query.order !== 'desc' || query.page", 'query.page'),
  answer('newest', 'any end', 'query.end < answeredAt || !oldest', '!oldest'),
  answer('newest', 'whatever is known', 'newestKnown !== undefined && newestKnown > newest.at', 'newestKnown === -1'),
  answer(
    'newest confirmed',
    'never asked for',
    'isNew || answer.query.start < answer.answeredAt - DAY_MS || isOneInstant(answer)',
    'answer.count < 0 && isNew',
  ),
  answer(
    'newest confirmed',
    'any second answer',
    'if (!haveOtherEdges(claim, other) || other.query.start === claim.query.start) return false;',
    'return true;',
  ),
  answer(
    'newest confirmed',
    'by the same page size',
    'if (!haveOtherEdges(claim, other) || other.query.start',
    'if (other.query.start',
  ),
  answer(
    'newest confirmed',
    'by a full page, oldest first',
    "if (other.query.order === 'asc' && other.count >= other.query.limit) return false;",
    '',
  ),
  answer('newest confirmed', 'from the same start', ' || other.query.start === claim.query.start) return', ') return'),
  answer(
    'newest confirmed',
    'by another row',
    'return shown?.id === newest.id || (isTold && shown?.at === newest.at);',
    'return true;',
  ),
  answer(
    'newest confirmed',
    'by another row of its time',
    '(isTold && shown?.at === newest.at)',
    'shown?.at === newest.at',
  ),
  answer(
    'newest confirmed',
    'by the latest hours, at first',
    'if (!isNew && isOfLatest(other))',
    'if (isOfLatest(other))',
  ),
  answer('newest confirmed', 'by a newer row', ': shown.at <= at;', ': true;'),
  answer(
    'newest confirmed',
    'one instant, like any page',
    'if (isOneInstant(claim) && !isTold) {',
    'if (isOneInstant(claim) && claim.count < 0) {',
  ),
  answer(
    'newest confirmed',
    'one instant, its order told by a page of that instant',
    ' && insideOf(line) !== undefined;',
    ';',
  ),
  answer(
    'newest confirmed',
    'one instant, its order told by another question',
    'isLater && query.start === claim.query.start && query.end === claim.query.end',
    'isLater',
  ),
  answer(
    'newest confirmed',
    'one instant, its order told by older rows',
    'return isSame && line.at(-1)?.at === newestRow(claim)?.at &&',
    'return isSame &&',
  ),
  answer(
    'newest confirmed',
    'one instant, with something newer',
    ' && shown !== undefined && shown.at <= newest.at;',
    ';',
  ),
  evidence(
    'newest confirmed',
    'an old newest row without a look at the latest hours',
    'return latest !== undefined && (isRoomLeft(latest) || showsNothingNewer(latest, newest));',
    'return true;',
  ),
  answer('beginning', 'starts close together', 'late.query.start - early.query.start < APART_MS || ', ''),
  answer(
    'beginning',
    'the same page size',
    ' || !haveOtherEdges(early, late)) return undefined;',
    ') return undefined;',
  ),
  answer('beginning', 'another first row', 'first[0].id !== again?.[0]?.id) return', '!again) return'),
  answer(
    'beginning',
    'pages that go on differently',
    'if (first.some(({ at }, i) => i < again.length && at !== again[i]?.at)) return undefined;',
    '',
  ),
  evidence(
    'beginning',
    'although an older row is known',
    'if (this.#seen(({ at }) => at > stretch.after && at < first).length === 0) this',
    'this',
  ),
  answer(
    'beginning',
    'pages of one instant',
    'const isTold = !isOneInstant(early) || !isOneInstant(late);',
    'const isTold = early.count >= 0;',
  ),
  answer(
    'beginning',
    'an older row before it',
    'if (before.count > 0 && !(isTold && showsNoOther)) return undefined;',
    '',
  ),
  answer('beginning', 'a look that ends behind it', 'before.query.end >= latestEnd || ', ''),
  answer('beginning', 'from the earlier start on', 'late.query.start - 1), before', 'early.query.start - 1), before'),
  answer('founding', 'a page of one instant', 'if (first.at === newest.at) return undefined;', ''),
  answer('founding', 'any start', 'answer.query.start > founded || ', ''),
  answer('founding', 'any page and order', '!isFirstAscending(answer) || answer.query', 'answer.query'),
  evidence(
    'nothing',
    'at the first poll',
    'this.#known.empty ?? []',
    'this.#known.empty ?? answers.map(({ query, answeredAt }) => ({ start: query.start + 40 * 86_400_000, end: answeredAt }))',
  ),
  answer('nothing', 'although something shows', 'if (answers.some(({ count }) => count > 0)) return [];', ''),
  answer(
    'nothing',
    'by few questions',
    "return asked('desc', 1, APART_MS) && pages.every((page) => asked('asc', page, 1)) && isLookedAt(answers, window);",
    "return asked('desc', 1, APART_MS);",
  ),
  answer('nothing', 'by one long look', 'if (end >= at && end - start <= most)', 'if (end >= at)'),
  evidence(
    'nothing',
    'although something was seen',
    'if (this.#stretches.length > 0 || this.#edges.size > 0 || this.#newestSeen !== undefined) return;',
    '',
  ),
  evidence('agreement', 'skipped', "if (missing.length > 0) return { kind: 'contradicts', missing };", ''),
  evidence(
    'agreement',
    'gone when it is not shown once',
    'if (known.missedBy !== undefined && known.missedBy !== boundsOf(answer)) this.#edges.delete(id);',
    'if (known.missedBy === undefined) this.#edges.delete(id);',
  ),
  evidence(
    'agreement',
    'gone by the same question twice',
    'known.missedBy !== undefined && known.missedBy !== boundsOf(answer)',
    'known.missedBy !== undefined',
  ),
  evidence('agreement', 'nothing is remembered', 'this.#edges.set(id, { at, missedBy: undefined });', ''),
  evidence('settled', 'skipped', 'const before = Math.min(shown, settled);', 'const before = shown;'),
  evidence(
    'settled',
    'ties that were counted',
    'if (passes.some(({ answeredAt }) => at >= answeredAt - this.#known.settleMs)) return false;',
    '',
  ),
  evidence(
    'settled',
    'without the settle time',
    'const settled = answeredAt - this.#known.settleMs;',
    'const settled = answeredAt;',
  ),
  evidence(
    'overlap',
    'stretches that touch',
    '(each) => each.before > after && each.after < before);',
    '(each) => each.before >= after && each.after <= before);',
  ),
  evidence(
    'overlap',
    'stretches with a hole between them',
    'const met = this.#stretches.filter((each) => each.before > after && each.after < before);',
    'const met = this.#stretches;',
  ),
  counting(
    'count',
    'pages that do not follow each other',
    '!pages.every((page, i) => followsOn(page, pages[i - 1]))',
    'pages.length === 0',
  ),
  counting(
    'count',
    'pages in between that are not full',
    'if (!pages.slice(0, full).every(isFull) || (pages.length > full + 1 && !isEnded)) return undefined;',
    '',
  ),
  counting(
    'count',
    'from the middle of the instant',
    'if (!first.rows.some(isNear) && !beginsBefore) return undefined;',
    '',
  ),
  counting('count', 'without its far side', 'if (isOpen && !isEnded) return undefined;', ''),
  counting(
    'count',
    'out of order',
    'if (lines.some((line, i) => line?.length !== pages[i]?.rows.length)) return undefined;',
    '',
  ),
  counting(
    'ties',
    'one pass',
    'return one !== undefined && other !== undefined && [...one.ids].every((id) => other.ids.has(id));',
    'return one !== undefined;',
  ),
  counting(
    'ties',
    'passes with page edges in common',
    'groups.some(({ limits }) => [...limits].some((other) => other % limit === 0 || limit % other === 0))',
    'false',
  ),
  counting('ties', 'fewer rows than places', 'if (group.ids.size !== places) continue;', ''),
  counting('ties', 'other rows', ' && [...one.ids].every((id) => other.ids.has(id));', ';'),
  counting(
    'ties',
    'places that changed',
    'const since = passes.findLastIndex((pass) => pass.places !== places) + 1;',
    'const since = 0;',
  ),
  counting(
    'ties',
    'nothing behind, from one side',
    'if (isOpen && groups.some(({ orders }) => orders.has(order))) continue;',
    '',
  ),
  counting('ties', 'nothing behind, although it is not the last', '(isOpen && !isLast) ||', ''),
  counting('unreadable', 'it never failed alone', 'wanted.length === 0 || !allFailed || ', 'wanted.length === 0 || '),
  counting('unreadable', 'it failed in company', 'q.limit === 1 && q.page - 1 === wanted[i]', 'q.page > 0'),
  counting('unreadable', 'another question failed', ' && isOneQuestion(q, page.query)', ''),
  counting('unreadable', 'something moved', ' || !atRest || !apart)', ' || !apart)'),
  counting('unreadable', 'its neighbours were not read', '!neighboursShow || ', ''),
  counting('unreadable', 'the page before ends elsewhere', '!endsThere || ', ''),
  counting('unreadable', 'the page behind begins elsewhere', '!beginsThere || ', ''),
  counting(
    'unreadable',
    'a row twice',
    'if (new Set(rows.map(({ id }) => id)).size < rows.length) return undefined;',
    '',
  ),
  certified('window', 'not up to its end', ' && at === start && through >= end)', ' && at === start)'),
  certified('window', 'with a hole in it', ' && at === start && through >= end)', ' && through >= end)'),
  evidence(
    'window',
    'from the instant where a stretch begins',
    '({ after, before }) => after < at && at < before',
    '({ after, before }) => after <= at && at < before',
  ),
];

function mutantsOf(file: Mutant['file']) {
  return (rule: string, what: string, from: string, to: string): Mutant => ({ rule, what, file, from, to });
}

/** The file with the mutation in it. Throws where the place is not there, or there twice: then the kernel has moved on. */
export function mutated(source: string, { rule, what, file, from, to }: Mutant): string {
  const places = source.split(from).length - 1;
  if (places !== 1) throw new Error(`${file}.ts: the mutant "${rule}: ${what}" fits ${places} places, not one`);
  return source.replace(from, () => to);
}
