import { crc32, deflateSync } from 'node:zlib';
import type { Page } from 'playwright-core';

/** A PNG with a palette, a third of the bytes. The browser reads the one it took. */
export async function withPalette(blank: Page, png: Buffer): Promise<Buffer> {
  const indexed = await blank.evaluate<Indexed>(`(${INDEX})("${png.toString('base64')}")`);
  await blank.close();
  return encode(indexed);
}

interface Indexed {
  width: number;
  height: number;
  /** Red, green, blue of each colour. */
  palette: number[];
  /** The number of each pixel's colour, as base64. */
  pixels: string;
}

/** A page has few colours. Shades of letters become their neighbours. */
const INDEX = `async (png) => {
  const image = new Image();
  image.src = 'data:image/png;base64,' + png;
  await image.decode();
  const { width, height } = image;
  const canvas = new OffscreenCanvas(width, height).getContext('2d');
  canvas.drawImage(image, 0, 0);
  const colours = new Uint32Array(canvas.getImageData(0, 0, width, height).data.buffer);
  const counts = new Map();
  for (const colour of colours) counts.set(colour, (counts.get(colour) ?? 0) + 1);
  const split = (colour) => [colour & 255, (colour >> 8) & 255, (colour >> 16) & 255];
  const known = [...counts].sort((a, b) => b[1] - a[1]).map(([colour]) => colour);
  const palette = known.slice(0, 192).map(split);
  const far = (a, b) => (a[0] - b[0]) ** 2 + (a[1] - b[1]) ** 2 + (a[2] - b[2]) ** 2;
  // Then those that have no neighbour yet: a rare colour may be the one that matters.
  const rest = known.slice(192).map((colour) => ({ colour: split(colour), away: Infinity }));
  const leave = (colours) => {
    for (const one of rest) for (const each of colours) one.away = Math.min(one.away, far(one.colour, each));
  };
  leave(palette);
  while (palette.length < 256 && rest.length > 0) {
    const next = rest.reduce((a, b) => (b.away > a.away ? b : a)).colour;
    palette.push(next);
    leave([next]);
  }
  const numbers = new Map(known.map((colour, i) => {
    if (i < 192) return [colour, i];
    const one = split(colour);
    return [colour, palette.reduce((best, each, n) => (far(each, one) < far(palette[best], one) ? n : best), 0)];
  }));
  let text = '';
  for (const colour of colours) text += String.fromCharCode(numbers.get(colour));
  return { width, height, palette: palette.flat(), pixels: btoa(text) };
}`;

function encode({ width, height, palette, pixels }: Indexed): Buffer {
  const chunk = (type: string, data: Buffer): Buffer => {
    const body = Buffer.concat([Buffer.from(type), data]);
    const [length, sum] = [Buffer.alloc(4), Buffer.alloc(4)];
    length.writeUInt32BE(data.length);
    sum.writeUInt32BE(crc32(body));
    return Buffer.concat([length, body, sum]);
  };
  const head = Buffer.alloc(13);
  head.writeUInt32BE(width, 0);
  head.writeUInt32BE(height, 4);
  head.set([8, 3], 8);
  const bytes = Buffer.from(pixels, 'base64');
  // Each line begins with its filter: none.
  const lines = Array.from({ length: height }, (_, y) => [Buffer.alloc(1), bytes.subarray(y * width, (y + 1) * width)]);
  return Buffer.concat([
    Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]),
    chunk('IHDR', head),
    chunk('PLTE', Buffer.from(palette)),
    chunk('IDAT', deflateSync(Buffer.concat(lines.flat()), { level: 9 })),
    chunk('IEND', Buffer.alloc(0)),
  ]);
}
