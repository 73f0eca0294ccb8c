import { simulate } from './test/support/simulation.ts';
const [first, last] = [Number(process.argv[2]), Number(process.argv[3])];
const only = process.argv[4] && process.argv[4] !== '-' ? process.argv[4].split(',') as any : undefined;
const tell = process.argv[5] ? (l: string) => console.log(l) : undefined;
const kinds = new Map<string, number[]>();
let reqs = 0;
for (let seed = first; seed <= last; seed++) {
  try { const r = await simulate(seed, { tell, only }); reqs += r.requests; }
  catch (e) { const m = String((e as Error).message).slice(0, 60).replace(/\d{4}-.*|e\d+.*/,''); kinds.set(m, [...(kinds.get(m) ?? []), seed]); if (tell || !/^I\d/.test(m)) console.log((e as Error).stack?.slice(0,600)); }
}
for (const [k, v] of kinds) console.log(v.length, k, v.slice(0, 12).join(','));
console.log('requests', reqs);
