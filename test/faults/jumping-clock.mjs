/** A preload: at SIGUSR2 the clock of this process jumps by so many milliseconds. */
const jump = Number(process.env.CLOCK_JUMP_MS);
let offset = process.env.CLOCK_JUMPED ? jump : 0;
const { now } = Date;
const Usual = Date;
process.on('SIGUSR2', () => {
  offset = jump;
});
globalThis.Date = class extends Usual {
  constructor(...args) {
    super(...(args.length === 0 ? [now() + offset] : args));
  }
  static now() {
    return now() + offset;
  }
};
