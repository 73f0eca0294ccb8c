import { chromium } from 'playwright-core';
import type { TestProject } from 'vitest/node';
import { findOrInstall } from './machine.ts';

declare module 'vitest' {
  interface ProvidedContext {
    /** Where the browser of the run listens; empty where there is none. */
    browserUrl: string;
  }
}

const isRoot = process.getuid?.() === 0;

/** One browser for the whole run, the system's own: one that a package downloads at install does not come through closed networks. */
export default async function setup(project: TestProject): Promise<(() => Promise<void>) | undefined> {
  const executablePath = findOrInstall({
    programs: ['chromium', 'chromium-browser', 'google-chrome'],
    packages: ['chromium', 'fonts-dejavu-core'],
    elsewhere: 'elsewhere a Chromium or Chrome on the PATH will do',
  });
  if (executablePath === undefined) {
    project.provide('browserUrl', '');
    return undefined;
  }
  const server = await chromium.launchServer({
    executablePath,
    host: '127.0.0.1',
    args: [
      // Chromium's own sandbox does not work for root, and it is our own page that it shows.
      ...(isRoot ? ['--no-sandbox'] : []),
      '--disable-dev-shm-usage',
      // Nothing but this machine: a page that asks the outside world for something shall fail.
      '--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1',
      '--disable-background-networking',
    ],
  });
  project.provide('browserUrl', server.wsEndpoint());
  return () => server.close();
}
