/** One way to get a rule of evidence wrong: a condition dropped, a comparison weakened, a rule skipped. */
export interface Mutant {
  rule: string;
  /** For people. */
  what: string;
  file: 'answer' | 'cover' | 'seen-rows' | 'intervals' | 'counting' | 'doubts' | 'ends' | 'evidence' | 'certified';
  /** Stands in the file exactly once. */
  from: string;
  to: string;
}

const answer = mutantsOf('answer');
const cover = mutantsOf('cover');
const intervals = mutantsOf('intervals');
const seen = mutantsOf('seen-rows');
const counting = mutantsOf('counting');
const doubts = mutantsOf('doubts');
const ends = mutantsOf('ends');
const evidence = mutantsOf('evidence');
const certified = mutantsOf('certified');

/** At least two for every rule. */
export const MUTANTS: readonly Mutant[] = [
  answer('order', 'any number of strays', 'if (outliers > allowed) return undefined;', ''),
  answer('order', 'one stray in five', 'const ROWS_PER_OUTLIER = 50;', 'const ROWS_PER_OUTLIER = 5;'),
  answer(
    'order',
    'a reversed page of ties',
    '.length >= sorted.length) return undefined;',
    '.length > rows.length) return undefined;',
  ),
  answer('order', 'asked newest first, taken as shown', "query.order === 'asc' ? rows : rows.toReversed()", 'rows'),
  answer(
    'order',
    'later pages longer than asked',
    'if (all.length > query.limit && query.page > 1) return undefined;',
    '',
  ),
  answer(
    'order',
    'all of a page longer than asked',
    'all.length > query.limit ? all.slice(0, query.limit) : all',
    'all',
  ),
  doubts('order', 'an order that was ignored, told by one instant', '!this.#disordered.has(order) || ', 'true || '),
  answer('reach', 'two times that are years away', 'others.length === rows.length - 1 && ', ''),
  answer('reach', 'skipped', 'return withinReach(past, query);', 'return sorted;'),
  answer('reach', 'garbled times in the past', 'at >= start - WIDENED_MS && ', ''),
  answer('reach', 'garbled times in the future', ' && at <= end + WIDENED_MS', ''),
  answer(
    'reach',
    'a single row close by',
    'if (outliers.length > 0) return near.filter((row) => !outliers.includes(row));',
    '',
  ),
  answer('reach', 'garbled times on both sides', 'return isOneSided ? sorted : [];', 'return sorted;'),
  answer(
    'between',
    'the instant of its oldest row',
    '? { after, before: newest.at } : undefined',
    '? { after: after - 1, before: newest.at } : undefined',
  ),
  answer(
    'between',
    'the instant of its newest row',
    '? { after, before: newest.at } : undefined',
    '? { after, before: newest.at + 1 } : undefined',
  ),
  answer(
    'between',
    'whole seconds, before its start',
    'oldest.at > start - SHOWN_MS ? Math.max(oldest.at, start) : oldest.at',
    'oldest.at',
  ),
  answer(
    'between',
    'up to the asked end, where the page is not full',
    'const [oldest, newest] = [sorted[0], sorted.at(-1)];\n  if (!oldest',
    'const [oldest, newest] = [sorted[0], sorted.length < 2 ? sorted.at(-1) : { at: (sorted.at(-1)?.at ?? 0) + 86_400_000 }];\n  if (!oldest',
  ),
  evidence('stream', 'rows of another stream', "if (answer.foreign) return { kind: 'foreign' };", ''),
  evidence(
    'stream',
    'some rows of another stream',
    'if (answer.foreign) return',
    'if (answer.foreign && answer.rows.length === 0) return',
  ),
  evidence('whole', 'skipped', 'if (contradicts || this', 'if (this'),
  evidence('whole', 'the rest of the run', 'this.isContradicted ||= contradicts;', ''),
  evidence('whole', 'a copy has forgotten it', 'settledThrough, isContradicted });', 'settledThrough });'),
  seen('whole', 'only what the later answer lacks', 'this.#leavesOut(kept, page) || ', ''),
  seen('whole', 'only what the earlier answer lacks', ' || this.#leavesOut(page, kept)', ''),
  seen('whole', 'whatever came since', ' && at < settled);', ');'),
  evidence('whole', 'answers out of order are not compared', 'sorted ?? answer.rows', 'sorted ?? []'),
  evidence('whole', 'what was shown before', 'this.intervals = [];\n    this.#pages = [];', 'this.#pages = [];'),
  seen(
    'whole',
    'longer ones that say that a row is gone',
    ' && known.missedFirst && !isLonger)',
    ' && known.missedFirst)',
  ),
  evidence('end', 'any page', 'if (page === 1) this.#pages =', 'this.#pages ='),
  evidence('end', 'any order', "if (candidate.query.order !== 'desc' || !newest", 'if (!newest'),
  evidence('end', 'any end', ' || !reachesNow(candidate)) return', ') return'),
  evidence('end', 'whatever was seen', ' || newest.at < newestHere ||', ' ||'),
  evidence(
    'end',
    'whatever is known',
    '(candidate.newest && this.newerSeen(candidate.newest.at)) !== undefined ||',
    '',
  ),
  evidence('end', 'one question, on a new stream', 'this.isNew ||\n    (candidate.newest', '(candidate.newest'),
  evidence('end', 'a newer row gone that no short question denies', '&& !isGone(this.#pages, newer)', '&& false'),
  evidence('end', 'a row that shows again after it was taken for gone', ' || this.#doubts.isBack(answer)', ''),
  cover('end', 'a newer row gone by a long question', 'lengthOf(page) <= NARROW_MS && quietOf', 'quietOf'),
  evidence('end', 'a silence that is not covered', '<= QUIET_MS || isCovered', '>= 0 || isCovered'),
  cover('end', 'the same page size', 'reachesNow(page) && haveOtherEdges(page, candidate) &&', 'reachesNow(page) &&'),
  cover('end', 'from far away', 'query.start >= newest.at - NARROW_MS - WIDENED_MS', 'query.start >= 0'),
  cover(
    'end',
    'by a full page, oldest first',
    '!isFull(page) && page.newest?.at === newest.at',
    'page.newest?.at === newest.at',
  ),
  cover('end', 'by another row', '!isFull(page) && page.newest?.at === newest.at', '!isFull(page)'),
  ends('end', 'where ends may be cut', 'if (!isSure) return Math.min(end, answeredAt) - WIDENED_MS;', ''),
  ends(
    'end',
    'where ends may be cut, by a day',
    '(end, answeredAt) - WIDENED_MS',
    '(end, answeredAt) - WIDENED_MS / 2',
  ),
  ends('end', 'where ends may be taken for the present', 'Math.min(end, answeredAt) - WIDENED_MS', 'end - WIDENED_MS'),
  ends(
    'end',
    'where ends may be cut, a little ahead',
    'end >= answeredAt + FAR_AHEAD_MS',
    'end > answeredAt + CLOCKS_MS',
  ),
  ends('end', 'where ends were kept, and a row is missing', 'isDoubtful ? this.areKept : this', 'this'),
  ends(
    'end',
    'where ends may be cut, by any question',
    ' || end > newest.at + this.#behindMs() + SHOWN_MS) return',
    ') return',
  ),
  ends(
    'end',
    'where ends may be cut, by a row at the end of a minute',
    'this.#isSameUnit(newest.at, end) ||',
    'true ||',
  ),
  ends('end', 'where ends may be cut, by a row beyond', 'first.at < end && end <= newest.at', 'end <= newest.at'),
  ends('end', 'cut at the present, by any end', 'Math.abs(query.end - answeredAt) <= CLOCKS_MS', 'true'),
  ends('end', 'cut at the present, by what has not settled', 'answeredAt - this.#known.settleMs', 'answeredAt'),
  evidence('end', 'where ends may be cut, in a silence', 'if (isEnd && !valid.some(', 'if (false && !valid.some('),
  cover('end', 'newest first alone', 'if (!isCrowded || (isOneInstant', 'if ((isOneInstant'),
  cover('end', 'newest first from the same start', 'query.start !== candidate.query.start &&', ''),
  cover(
    'end',
    'newest first, with another row',
    '(shown?.id === newest.id || (isNewestFirst && shown?.at === newest.at))',
    'true',
  ),
  cover('cover', 'with a hole', 'if (from <= Math.max(silence.from + SHOWN_MS, at - overlapMs)) at', 'at'),
  cover(
    'cover',
    'rows of one instant in any order',
    ' && !hasRoom(page) && !page.isNewestFirst) return',
    ' && false) return',
  ),
  cover('cover', 'a hole behind the rows beside it', 'silence.from + SHOWN_MS', 'silence.from + 10 * SHOWN_MS'),
  cover('cover', 'pieces that only touch', ', at - overlapMs)) at', ', at)) at'),
  evidence(
    'cover',
    'an answer that leaves out a row which is known',
    '!isRefuted(page, (after, before) => this.rows.has(after, before))',
    'true',
  ),
  cover('cover', 'the latest hours, long before', 'until >= to - QUIET_MS && ', ''),
  cover('cover', 'long questions', 'pages.filter(isShort).flatMap', 'pages.flatMap'),
  cover('cover', 'not up to its end', '>= silence.to - 1;', '> silence.from;'),
  cover('cover', 'without its far side', 'pages.some((page) => isAtFarSide(page, silence, side)) &&', ''),
  cover('cover', 'an empty page of one row', ' && query.limit > 1 ?', ' ?'),
  evidence('beginning', 'any start', 'query.start > edge - APART_MS && query.start > founded', 'query.start < founded'),
  evidence(
    'beginning',
    'although an older row was seen',
    'return !this.rows.has(Math.min(edge - CLOSED_MS, query.start + WIDENED_MS), first.at);',
    'return true;',
  ),
  evidence(
    'beginning',
    'a long question that leaves out a row which is known',
    'Math.min(edge - CLOSED_MS, query.start + WIDENED_MS)',
    'edge - CLOSED_MS',
  ),
  evidence('beginning', 'without a short question beside it', 'return isFirst && isCovered', 'return isCovered'),
  evidence(
    'beginning',
    'a silence that is not covered',
    "return isFirst && isCovered(this.#pages, silence, this.#seenMs, 'to', this.#overlap(page));",
    'return isFirst;',
  ),
  seen('beginning', 'whatever shows out of order', 'this.#unordered.some(isBetween) || this', 'this'),
  cover('beginning', 'the same page size', 'haveOtherEdges(page, long) &&', ''),
  cover('beginning', 'another first row', 'page.first?.at === first.at &&', ''),
  evidence(
    'nothing',
    'at the first poll',
    'of this.#known.empty ?? []) {',
    'of this.#known.empty ?? [{ start: 0, end: 1e15 }, { start: 913 * 86_400_000, end: 1e14 }, { start: 1000 * 86_400_000 - 86_400_000, end: 1000 * 86_400_000 - 3_600_000 }]) {',
  ),
  evidence('nothing', 'although something shows', 'if (this.#pages.some(({ count }) => count > 0)) return;', ''),
  evidence('nothing', 'by few questions', "if (!isAsked('asc') || !isAsked('desc') || ", 'if ('),
  evidence(
    'nothing',
    'by long looks',
    " || !isCovered(this.#pages, { from: start, to: end }, 0, 'to')) continue;",
    ') continue;',
  ),
  evidence(
    'nothing',
    'although something was seen',
    'if (this.intervals.length > 0 || this.rows.size > 0 || this.newestSeen !== undefined) return;',
    '',
  ),
  evidence('agreement', 'skipped', "if (missing.length > 0) return { kind: 'contradicts', missing };", ''),
  seen(
    'agreement',
    'gone when it is not shown once',
    'if (isConfirmed && known.missedFirst && !isLonger)',
    'if (!isLonger)',
  ),
  seen(
    'agreement',
    'gone by the same question twice',
    'by !== boundsOf(answer) && beside === around',
    'beside === around',
  ),
  seen(
    'agreement',
    'gone although other rows are beside it',
    'by !== boundsOf(answer) && beside === around',
    'by !== boundsOf(answer)',
  ),
  seen(
    'agreement',
    'nothing is remembered',
    'this.#edges.set(id, { at, length: shortest, missedBy: new Map(), missedFirst: false });',
    '',
  ),
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
  intervals(
    'overlap',
    'intervals that touch',
    '(each) => each.before > after && each.after < before);',
    '(each) => each.before >= after && each.after <= before);',
  ),
  intervals(
    'overlap',
    'intervals with a hole between them',
    'const overlapping = intervals.filter((each) => each.before > after && each.after < before);',
    'const overlapping = intervals;',
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
    'if (sortedPages.some((sorted, i) => sorted?.length !== pages[i]?.rows.length)) return undefined;',
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
  counting('ties', 'fewer rows than places', 'if (group.ids.size !== positions) continue;', ''),
  counting('ties', 'other rows', ' && [...one.ids].every((id) => other.ids.has(id));', ';'),
  counting(
    'ties',
    'places that changed',
    'const since = passes.findLastIndex((pass) => pass.positions !== positions) + 1;',
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
  counting('unreadable', 'something moved', ' || !atRest || !consecutive)', ' || !consecutive)'),
  counting('unreadable', 'its neighbours were not read', '!adjacentShow || ', ''),
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
  intervals(
    'window',
    'from the instant where an interval begins',
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
