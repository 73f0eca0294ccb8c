import type { Agent, Place } from '../types.ts';

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

export const DOMAINS = ['go.acme.test', 'acme.link', 'try.acme.test'] as const;
export const PATHS = [
  'pricing',
  'signup',
  'blog/launch',
  'docs',
  'webinar',
  'download',
  'partners',
  'changelog',
] as const;
export const UTM = {
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
export const FIRST_NAMES = [
  'Ada',
  'Grace',
  'Edsger',
  'Barbara',
  'Alan',
  'Radia',
  'Donald',
  'Margaret',
  'Zoë',
  '小林',
] as const;
export const LAST_NAMES = [
  'Lovelace',
  'Hopper',
  'Dijkstra',
  'Liskov',
  'Turing',
  'Perlman',
  "O'Neill",
  'Hamilton',
] as const;
export const COLORS = ['red', 'yellow', 'green', 'blue', 'purple'] as const;
