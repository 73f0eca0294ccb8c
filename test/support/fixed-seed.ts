import fc from 'fast-check';

/** Properties of the first tier always try the same cases. */
fc.configureGlobal({ seed: 1 });
