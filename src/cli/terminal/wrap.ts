/** Words in lines of at most 80 columns, every line but the first behind an indent. */
export function wrap(text: string, indent: number, width = 80): string {
  const lines = [''];
  for (const word of text.split(' ')) {
    const line = lines.at(-1) ?? '';
    if (line !== '' && indent + line.length + 1 + word.length > width) lines.push(word);
    else lines[lines.length - 1] = line === '' ? word : `${line} ${word}`;
  }
  return lines.join(`\n${' '.repeat(indent)}`);
}

/** A term and what it means, side by side; a long term has its line to itself. */
export function describeTerm(term: string, meaning: string, indent: number): string {
  const start = `  ${term}`;
  const text = wrap(meaning, indent);
  if (start.length + 2 > indent) return `${start}\n${' '.repeat(indent)}${text}`;
  return `${start.padEnd(indent)}${text}`;
}
