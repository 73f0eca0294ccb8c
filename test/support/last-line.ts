import type { Reporter, TestModule, Vitest } from 'vitest/node';

/** Prints the last lines of a run as a summary: what this machine lacked, and `1234 passed, 0 failed, 5 skipped`. */
export default class LastLine implements Reporter {
  private vitest: Vitest | undefined;

  onInit(vitest: Vitest): void {
    this.vitest = vitest;
  }

  onTestRunEnd(modules: readonly TestModule[], errors: readonly unknown[]): void {
    const states = modules.flatMap((module) => [...module.children.allTests()].map((test) => test.result().state));
    const count = (state: string): number => states.filter((each) => each === state).length;
    // A file that failed to load, a failed hook or an uncaught error belongs to no test.
    const outside = modules.flatMap((module) =>
      [module, ...module.children.allSuites()].flatMap((each) => each.errors()),
    );
    const failed = count('failed') + outside.length + errors.length;
    const missing = this.missing();
    // After vitest's own summary, which is printed after this call.
    process.once('exit', () => {
      if (missing.length > 0) {
        process.stdout.write(`Skipped for want of ${missing.join(' and ')}: apt-get install ${missing.join(' ')}\n`);
      }
      process.stdout.write(`${count('passed')} passed, ${failed} failed, ${count('skipped')} skipped\n`);
    });
  }

  private missing(): string[] {
    const given = (this.vitest?.projects ?? []).map((project) => project.getProvidedContext());
    return [
      ...(given.some(({ redisUrl }) => redisUrl === '') ? ['redis-server'] : []),
      ...(given.some(({ browserUrl }) => browserUrl === '') ? ['chromium'] : []),
    ];
  }
}
