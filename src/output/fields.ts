import type { Advice } from '../errors/kcert-error.ts'
import { shownAdvice } from './sections.ts'
import { printable } from './terminal.ts'
import type { View } from './view.ts'
import { padded, wrapped } from './width.ts'

/** A label and its value. Fields that are undefined or empty are left out. */
export type Field = readonly [
  label: string,
  value: string | undefined,
  stroke?: ((text: string) => string) | undefined,
]

/**
 * Returns labelled values, one for each line. Long values are wrapped with a hanging indent. Labels and values are made printable
 * here.
 */
export function fieldLines({ width, paint }: View, fields: readonly Field[]): string[] {
  const shown = fields
    .filter(([, value]) => value !== undefined && value !== '')
    .map(([label, ...rest]): Field => [printable(label), ...rest])
  const labelWidth = Math.max(0, ...shown.map(([label]) => label.length))
  return shown.flatMap(([label, value = '', stroke]) => {
    const [first = '', ...rest] = wrapped(printable(value), width - labelWidth - 2)
    const indent = ' '.repeat(labelWidth + 2)
    return [
      `${paint.faint(padded(label, labelWidth))}  ${stroke === undefined ? first : stroke(first)}`,
      ...rest.map((line) => indent + line),
    ]
  })
}

/** Returns fields below a title. */
export function titledFields(title: string, fields: readonly Field[], view: View): string[] {
  const lines = fieldLines({ ...view, width: view.width - 2 }, fields)
  return [view.paint.heading(printable(title)), ...lines.map((line) => `  ${line}`)]
}

/** Returns a problem, its reason, and what to do about it. */
export function faultLines(
  view: View,
  [label, what]: readonly [label: string, what: string],
  { why, ...advice }: Advice & { readonly why?: string | undefined },
): string[] {
  const { fix, next } = shownAdvice(advice)
  return fieldLines(view, [
    [label, what, view.paint.status.critical],
    ['why', why],
    ['fix', fix],
    ['next', next],
  ])
}
