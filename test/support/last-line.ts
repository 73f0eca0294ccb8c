import type { Reporter, TestModule, Vitest } from 'vitest/node';

/** The last lines of a run, for those who read no more: what was missing on this machine, and `1234 passed, 0 failed, 5 skipped`. */
export default class LastLine implements Reporter {
  private vitest: Vitest | undefined;

  onInit(vitest: Vitest): void {
    this.vitest = vitest;
  }

  onTestRunEnd(modules: readonly TestModule[], errors: readonly unknown[]): void {
    const states = modules.flatMap((module) => [...module.children.allTests()].map((test) => test.result().state));
    const count = (state: string): number => states.filter((each) => each === state).length;
    // A file that could not be loaded, a hook that failed or an error that nobody caught shows in no test of its own.
    const outside = modules.flatMap((module) =>
      [module, ...module.children.allSuites()].flatMap((each) => each.errors()),
    );
    const failed = count('failed') + outside.length + errors.length;
    const missing = this.missing();
    // After vitest's own summary, which is printed when this call has returned.
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
