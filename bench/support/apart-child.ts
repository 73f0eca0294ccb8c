import { configOf, type Place, sync } from './engine.ts';

/** The child of `apart.ts`: receives a place, syncs there, returns the seconds. */
process.on('message', async (place: Place) => {
  try {
    const { seconds } = await sync(configOf(place));
    process.send?.({ seconds });
  } catch (error) {
    process.send?.({ error: String(error) });
  }
});
