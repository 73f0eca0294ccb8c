import fc from 'fast-check';

/** Properties of the first tier try the same cases every time. */
fc.configureGlobal({ seed: 1 });
