import type { Advice } from '../errors/kcert-error.ts'
import { printable } from './terminal.ts'
import type { View } from './view.ts'
import { wrapped } from './width.ts'

/** Returns sections of lines as one text, separated by empty lines. Empty sections are left out. */
export function joinSections(sections: readonly (readonly string[])[]): string {
  return sections
    .filter((lines) => lines.length > 0)
    .map((lines) => `${lines.join('\n')}\n`)
    .join('\n')
}

/** Returns the reason, the fix and the command, a line for each that is defined. */
export function adviceLines(
  { why, ...advice }: Advice & { readonly why?: string | undefined },
  indent = '  ',
): string[] {
  return Object.entries({ why, ...shownAdvice(advice) }).flatMap(([label, text]) =>
    text === undefined ? [] : [`${indent}${label}: ${printable(text)}`],
  )
}

/** Returns the advice of a report for text. In reports, `next` repeats the fix if there is no command. */
export function shownAdvice({ fix, next }: Advice): Advice {
  return { fix, next: next === fix ? undefined : next }
}

/** Returns a difference between texts, with added and removed lines in colour. */
export function diffLines(diff: readonly string[], { paint: { status } }: View): string[] {
  const strokes: Readonly<Record<string, (text: string) => string>> = { '+': status.ok, '-': status.critical }
  return diff.map((line) => (strokes[line.slice(0, 1)] ?? String)(printable(line)))
}

/** Returns a text wrapped with an indent. */
export function indentedLines(text: string, indent: string, { width }: Pick<View, 'width'>): string[] {
  return wrapped(printable(text), width - indent.length).map((line) => indent + line)
}

/** Returns `1 pod`, `12 pods`, `1,204 processes`. */
export function counted(count: number, noun: string, many = `${noun}s`): string {
  return `${count.toLocaleString('en')} ${count === 1 ? noun : many}`
}
