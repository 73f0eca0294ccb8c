import { DAY_MS } from '../../model/window.ts';
import type { Random } from './random.ts';
import type { Agent, JsonObject, Link, Partner, Place, Tag } from './types.ts';

export const WORKSPACE_ID = 'ws_sandbox';
const PROGRAM_IDS = ['prog_affiliates', 'prog_ambassadors'] as const;

const LINKS = 96;

/** Every kind of link that filters distinguish: root domains, tenants, partners, folders, tags, utm, tests. */
export function generateLinks(random: Random, now: number, historyStart: number, count = LINKS): Link[] {
  const tags = ['launch', 'evergreen', 'paid', 'influencer', 'internal'].map(
    (name): Tag => ({ id: random.id('tag_'), name, color: random.pick(COLORS) }),
  );
  const partners = generatePartners(random);
  const folders = Array.from({ length: 4 }, () => random.id('fold_'));
  const tenants = Array.from({ length: 5 }, (_, i) => `tenant-${i + 1}`);
  const links: Link[] = [];
  for (let i = 0; i < count; i++) {
    const root = i % 16 === 5;
    const domain = DOMAINS[i % DOMAINS.length] ?? DOMAINS[0];
    const createdAt = historyStart - random.int(1, 200) * DAY_MS;
    const often = <T>(items: readonly T[], share: number): T | null =>
      random.chance(share) ? random.pick(items) : null;
    links.push({
      id: random.id('link_'),
      domain,
      key: root ? '_root' : random.id('', 7),
      url: `https://acme.test/${random.pick(PATHS)}`,
      externalId: random.chance(0.4) ? `crm-${1000 + i}` : null,
      tenantId: often(tenants, 0.5),
      partner: root ? null : often(partners, 0.5),
      tags: tags.filter(() => random.chance(0.25)),
      folderId: often(folders, 0.6),
      utm: {
        utm_source: often(UTM.source, 0.7),
        utm_medium: often(UTM.medium, 0.7),
        utm_campaign: often(UTM.campaign, 0.6),
        utm_term: often(UTM.term, 0.3),
        utm_content: often(UTM.content, 0.4),
      },
      rest: unfilteredFields(random, i, now),
      createdAt,
      updatedAt: createdAt + random.int(0, 20) * DAY_MS,
      lastClicked: null,
      clicks: 0,
      leads: 0,
      conversions: 0,
      sales: 0,
      saleAmount: 0,
    });
  }
  return links;
}

function generatePartners(random: Random): Partner[] {
  const groups = Array.from({ length: 3 }, () => random.id('grp_'));
  const tags = Array.from({ length: 4 }, () => random.id('ptag_'));
  return Array.from({ length: 12 }, (_, i) => ({
    id: random.id('pn_'),
    programId: PROGRAM_IDS[i % PROGRAM_IDS.length] ?? PROGRAM_IDS[0],
    groupId: random.pick(groups),
    tagIds: tags.filter(() => random.chance(0.4)),
  }));
}

/** Null in a field that the contract defines as a required string means "never"; `shape.ts` decides how to write that. */
function unfilteredFields(random: Random, index: number, now: number): JsonObject {
  const iso = (at: number): string => new Date(at).toISOString();
  const preview = index % 6 === 0;
  const tested = index % 8 === 3;
  return {
    trackConversion: random.chance(0.7),
    archived: random.chance(0.1),
    expiresAt: random.chance(0.2) ? iso(now + random.int(5, 300) * DAY_MS) : null,
    expiredUrl: random.chance(0.2) ? 'https://acme.test/expired' : null,
    disabledAt: random.chance(0.05) ? iso(now - random.int(1, 5) * DAY_MS) : null,
    password: random.chance(0.1) ? random.id('pw-', 8) : null,
    proxy: preview,
    title: preview ? 'Acme: links that tell you what works' : null,
    description: preview ? 'Short links with attribution' : null,
    image: preview ? 'https://assets.acme.test/og.png' : null,
    video: null,
    rewrite: random.chance(0.1),
    doIndex: random.chance(0.2),
    ios: random.chance(0.2) ? 'https://apps.example/ios/acme' : null,
    android: random.chance(0.2) ? 'https://apps.example/android/acme' : null,
    geo: random.chance(0.2) ? { DE: 'https://acme.test/de', FR: 'https://acme.test/fr' } : null,
    publicStats: random.chance(0.1),
    webhookIds: random.chance(0.2) ? [random.id('wh_')] : [],
    comments: random.chance(0.2) ? 'Approved by marketing' : null,
    ...(tested && { testVariants: variants(random) }),
    testStartedAt: tested ? iso(now - 20 * DAY_MS) : null,
    testCompletedAt: tested ? iso(now + 10 * DAY_MS) : null,
    userId: random.chance(0.9) ? `user_${(index % 3) + 1}` : null,
  };
}

function variants(random: Random): JsonObject[] {
  const first = random.int(1, 9) * 10;
  return [
    { url: 'https://acme.test/a', percentage: first },
    { url: 'https://acme.test/b', percentage: 100 - first },
  ];
}

/** The vocabulary of the generated workspace. Earlier entries are picked more often. */
const place = (continent: string, country: string, region: string, city: string): Place => ({
  continent,
  country,
  region: `${country}-${region}`,
  city,
});

export const PLACES: readonly Place[] = [
  place('NA', 'US', 'CA', 'San Francisco'),
  place('NA', 'US', 'NY', 'New York'),
  place('EU', 'DE', 'BE', 'Berlin'),
  place('EU', 'GB', 'ENG', 'London'),
  place('NA', 'CA', 'ON', 'Toronto'),
  place('AS', 'IN', 'KA', 'Bengaluru'),
  place('EU', 'FR', 'IDF', 'Paris'),
  place('SA', 'BR', 'SP', 'São Paulo'),
  place('AS', 'JP', '13', 'Tokyo'),
  place('OC', 'AU', 'NSW', 'Sydney'),
  place('AF', 'ZA', 'WC', 'Cape Town'),
  place('AF', 'NG', 'LA', 'Lagos'),
  place('EU', 'ES', 'MD', 'Madrid'),
  place('AS', 'SG', '01', 'Singapore'),
  place('AN', 'AQ', '00', 'McMurdo Station'),
];

const agent = (device: string, browser: string, os: string): Agent => ({ device, browser, os });

export const AGENTS: readonly Agent[] = [
  agent('Desktop', 'Chrome', 'Windows'),
  agent('Mobile', 'Mobile Safari', 'iOS'),
  agent('Desktop', 'Chrome', 'Mac OS'),
  agent('Mobile', 'Chrome', 'Android'),
  agent('Desktop', 'Safari', 'Mac OS'),
  agent('Desktop', 'Firefox', 'Linux'),
  agent('Desktop', 'Edge', 'Windows'),
  agent('Tablet', 'Mobile Safari', 'iPadOS'),
];

export const TRIGGERS = ['link', 'link', 'link', 'qr', 'pageview'] as const;

export const REFERERS = [
  { referer: '(direct)', refererUrl: '(direct)' },
  { referer: 'google.com', refererUrl: 'https://google.com/search' },
  { referer: 'news.ycombinator.com', refererUrl: 'https://news.ycombinator.com/item?id=4242' },
  { referer: 'linkedin.com', refererUrl: 'https://linkedin.com/feed/' },
  { referer: 'linkedin.com', refererUrl: 'https://linkedin.com/in/ada' },
  { referer: 'youtube.com', refererUrl: 'https://youtube.com/watch?v=x1' },
  { referer: 't.co', refererUrl: 'https://t.co/a1b2c3' },
] as const;

const DOMAINS = ['go.acme.test', 'acme.link', 'try.acme.test'] as const;
const PATHS = ['pricing', 'signup', 'blog/launch', 'docs', 'webinar', 'download', 'partners', 'changelog'] as const;
const UTM = {
  source: ['newsletter', 'google', 'linkedin', 'podcast'],
  medium: ['email', 'cpc', 'social', 'audio'],
  campaign: ['spring-launch', 'black-friday', 'onboarding', 'retarget'],
  term: ['short links', 'attribution', 'affiliate'],
  content: ['hero', 'footer', 'sidebar'],
} as const;

export const LEAD_NAMES = ['Sign up', 'Book a demo', 'Start trial', 'Join waitlist'] as const;
export const SALE_NAMES = ['Purchase', 'Invoice paid', 'Subscription renewed'] as const;
export const PLANS = ['starter', 'team', 'scale'] as const;
export const PROCESSORS = ['stripe', 'shopify', 'polar', 'paddle', 'custom'] as const;
export const CURRENCIES = ['usd', 'eur', 'gbp'] as const;
export const FIRST_NAMES = 'Ada Grace Edsger Barbara Alan Radia Donald Margaret Zoë 小林'.split(' ');
export const LAST_NAMES = "Lovelace Hopper Dijkstra Liskov Turing Perlman O'Neill Hamilton".split(' ');
const COLORS = ['red', 'yellow', 'green', 'blue', 'purple'] as const;
