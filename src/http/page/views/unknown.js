/** @import { View } from '../app/screen.js' */
import { notThere } from '../parts/elements.js';

/** An address that leads nowhere says so. @type {View} */
export const unknown = {
  title: () => 'Not found',
  news: [],
  load: async () => ({}),
  draw: (_, { view }) =>
    notThere(`There is no view “${view}”`, 'Choose one above, or begin with the streams.', '#/', 'Streams'),
};
