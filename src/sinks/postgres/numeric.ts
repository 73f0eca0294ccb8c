/** A number in Postgres' binary `numeric`: groups of four decimal digits around the decimal point. */
export function encodeNumeric(value: number | bigint): Buffer {
  const { isNegative, whole, fraction } = decimal(value);
  const wide = whole.padStart(Math.ceil(whole.length / 4) * 4, '0');
  const tail = fraction.padEnd(Math.ceil(fraction.length / 4) * 4, '0');
  const groups = [...`${wide}${tail}`.matchAll(/\d{4}/g)].map(([digits]) => Number(digits));
  let weight = wide.length / 4 - 1;
  while (groups[0] === 0) {
    groups.shift();
    weight--;
  }
  while (groups.at(-1) === 0) groups.pop();
  const buffer = Buffer.alloc(8 + groups.length * 2);
  // Unsigned, as the server reads it: 131,072 digits are 32,768 groups.
  buffer.writeUInt16BE(groups.length, 0);
  buffer.writeInt16BE(groups.length > 0 ? weight : 0, 2);
  buffer.writeUInt16BE(isNegative && groups.length > 0 ? 0x4000 : 0, 4);
  buffer.writeInt16BE(fraction.length, 6);
  groups.forEach((group, i) => {
    buffer.writeInt16BE(group, 8 + i * 2);
  });
  return buffer;
}

/** The digits before and after the point, without the exponent that JavaScript writes from 1e21 and below 1e-6. */
function decimal(value: number | bigint): { isNegative: boolean; whole: string; fraction: string } {
  const [mantissa = '', exponent = '0'] = String(value).replace(/^-/, '').split('e');
  const [before = '', after = ''] = mantissa.split('.');
  const shift = Number(exponent);
  const digits = shift >= 0 ? before + after.padEnd(shift, '0') : before.padStart(before.length - shift, '0') + after;
  const point = shift >= 0 ? before.length + shift : before.length;
  return { isNegative: value < 0, whole: digits.slice(0, point) || '0', fraction: digits.slice(point) };
}
