import { chromium } from 'playwright-core';
import type { TestProject } from 'vitest/node';
import { findOrInstall } from './machine.ts';

declare module 'vitest' {
  interface ProvidedContext {
    /** The browser's endpoint; empty if there is none. */
    browserUrl: string;
  }
}

const isRoot = process.getuid?.() === 0;

/** One browser for the whole run, the system's own: closed networks block one that a package downloads at install. */
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
      // Chromium's own sandbox does not work for root, and the page is ours.
      ...(isRoot ? ['--no-sandbox'] : []),
      '--disable-dev-shm-usage',
      // Only this machine: requests of a page to other hosts must fail.
      '--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1',
      '--disable-background-networking',
    ],
  });
  project.provide('browserUrl', server.wsEndpoint());
  return () => server.close();
}
