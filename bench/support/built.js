import { register } from 'node:module';

/**
 * The bench measures what is installed: `--import` this, and whatever is imported from src/ comes from dist/ instead. What runs
 * TypeScript directly names every function as it is made, which costs a tenth of the time of a page.
 */
register('./built-hooks.js', import.meta.url);
