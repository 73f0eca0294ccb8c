import type { Reporter, TestModule } from 'vitest/node';

/** The last line of a run, for those who read no more: `1234 passed, 0 failed, 5 skipped`. */
export default class LastLine implements Reporter {
  onTestRunEnd(modules: readonly TestModule[], errors: readonly unknown[]): void {
    const states = modules.flatMap((module) => [...module.children.allTests()].map((test) => test.result().state));
    const count = (state: string): number => states.filter((each) => each === state).length;
    // A file that could not be loaded, a hook that failed or an error that nobody caught shows in no test of its own.
    const outside = modules.flatMap((module) =>
      [module, ...module.children.allSuites()].flatMap((each) => each.errors()),
    );
    const failed = count('failed') + outside.length + errors.length;
    // After vitest's own summary, which is printed when this call has returned.
    process.once('exit', () => {
      process.stdout.write(`${count('passed')} passed, ${failed} failed, ${count('skipped')} skipped\n`);
    });
  }
}
