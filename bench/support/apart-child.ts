import { configOf, type Place, sync } from './engine.ts';

/** The other side of `apart.ts`: a place comes, a sync is done there, its seconds go back. */
process.on('message', async (place: Place) => {
  try {
    const { seconds } = await sync(configOf(place));
    process.send?.({ seconds });
  } catch (error) {
    process.send?.({ error: String(error) });
  }
});
