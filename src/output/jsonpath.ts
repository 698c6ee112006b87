import { isObject } from '../errors/is-object.ts'
import { KcertError } from '../errors/kcert-error.ts'
import { printable } from './terminal.ts'

// kubectl's JSONPath templates (https://kubernetes.io/docs/reference/kubectl/jsonpath/). Paths are parsed into steps. No part of
// a template is evaluated as code, unlike in JSONPath libraries, which run filters as JavaScript.

type Step =
  | { readonly kind: 'name' | 'descendants'; readonly name: string }
  | { readonly kind: 'all' | 'everything' }
  | { readonly kind: 'items'; readonly indexes: readonly number[] }
  | { readonly kind: 'slice'; readonly from?: number; readonly to?: number; readonly by: number }
  | { readonly kind: 'filter'; readonly path: readonly Step[]; readonly test?: Comparison }

interface Comparison {
  readonly operator: string
  readonly value: string | number | boolean
}

type Part =
  | { readonly text: string }
  | { readonly path: readonly Step[] }
  | { readonly range: readonly Step[]; readonly body: readonly Part[] }

/** A parsed template. */
export type JsonPathTemplate = readonly Part[]

/** Returns a template as kubectl writes it: `{.items[*].metadata.name}`, `{range .items[*]}{.name}{"\n"}{end}`. Throws KCERT_USAGE. */
export function parseJsonPath(text: string): JsonPathTemplate {
  // kubectl also accepts a path without braces.
  const whole = text.includes('{') ? text : `{${text}}`
  const stack: { range: readonly Step[]; body: Part[] }[] = [{ range: [], body: [] }]
  const add = (part: Part): void => {
    stack.at(-1)?.body.push(part)
  }
  let at = 0
  for (const { 0: found, 1: action = '', index } of whole.matchAll(
    /\{((?:"(?:\\.|[^"\\])*"|'[^']*'|[^{}"'])*)\}/g,
  )) {
    if (index > at) add({ text: plain(whole.slice(at, index), text) })
    at = index + found.length
    const range = /^\s*range\s+(.+)$/s.exec(action)?.[1]
    if (range !== undefined) stack.push({ range: stepsOf(range.trim(), text), body: [] })
    else if (action.trim() === 'end') {
      const closed = stack.length > 1 ? stack.pop() : undefined
      if (closed === undefined) throw invalid(text, '{end} has no {range}')
      add(closed)
    } else add(partOf(action.trim(), text))
  }
  if (at < whole.length) add({ text: plain(whole.slice(at), text) })
  const [{ body = [] } = {}, open] = stack
  if (open !== undefined) throw invalid(text, '{range} has no {end}')
  return body
}

/**
 * Returns what kubectl prints for the JSON of the report: the values of a path, separated by spaces, with objects and lists as
 * JSON.
 */
export function renderJsonPath(template: JsonPathTemplate, report: object): string {
  return textAt(template, JSON.parse(JSON.stringify(report)))
}

function textAt(template: JsonPathTemplate, value: unknown): string {
  return template
    .map((part) => {
      if ('text' in part) return part.text
      if ('path' in part) return valuesAt(part.path, value).map(shown).join(' ')
      return valuesAt(part.range, value)
        .map((one) => textAt(part.body, one))
        .join('')
    })
    .join('')
}

function partOf(action: string, template: string): Part {
  const literal = /^"((?:\\.|[^"\\])*)"$|^'([^']*)'$/s.exec(action)
  if (literal === null) return { path: stepsOf(action, template) }
  const escapes: Readonly<Record<string, string>> = { n: '\n', t: '\t', r: '\r' }
  const [, double, single = ''] = literal
  return { text: double?.replaceAll(/\\(.)/gs, (_, one: string) => escapes[one] ?? one) ?? single }
}

/** Text outside of braces. */
function plain(text: string, template: string): string {
  if (/[{}]/.test(text)) throw invalid(template, 'a brace has no counterpart')
  return text
}

const literalPattern = String.raw`"[^"\\]*"|'[^'\\]*'|-?\d+(?:\.\d+)?|true|false`
const stepPattern = new RegExp(
  [
    String.raw`\.\.(?<descendants>(?:\\.|[^\s.[\]*"'()\\])+)`,
    String.raw`(?<everything>\.\.\*?)(?=$|\[)`,
    String.raw`(?<all>\.\*|\[\*\])`,
    String.raw`\.(?<name>(?:\\.|[^\s.[\]*"'()\\])+)`,
    String.raw`\[(?<quoted>"[^"]*"|'[^']*')\]`,
    String.raw`\[(?<indexes>-?\d+(?:,-?\d+)*)\]`,
    String.raw`\[(?<from>-?\d+)?:(?<to>-?\d+)?(?::(?<by>\d+))?\]`,
    String.raw`\[\?\(\s*@(?<path>(?:\.[\w-]+|\['[^']*'\])*)\s*(?:(?<operator>==|!=|<=|>=|<|>)\s*(?<value>${literalPattern})\s*)?\)\]`,
  ].join('|'),
  'sy',
)

function stepsOf(path: string, template: string): Step[] {
  const text = path.replace(/^[$@]/, '')
  // kubectl reads "items" as ".items".
  const whole = /^[\w\\]/.test(text) ? `.${text}` : text
  const steps: Step[] = []
  let at = 0
  while (at < whole.length && whole !== '.') {
    stepPattern.lastIndex = at
    const found = stepPattern.exec(whole)
    if (found?.groups === undefined)
      throw invalid(template, `"${whole.slice(at)}" is not supported in a path`)
    steps.push(stepOf(found.groups, template))
    at += found[0].length
  }
  return steps
}

function stepOf(found: Readonly<Record<string, string | undefined>>, template: string): Step {
  const unescaped = (name: string): string => name.replaceAll(/\\(.)/gs, '$1')
  const { name, descendants, quoted, everything, all, indexes, path, operator, value } = found
  if (name !== undefined) return { kind: 'name', name: unescaped(name) }
  if (quoted !== undefined) return { kind: 'name', name: quoted.slice(1, -1) }
  if (descendants !== undefined) return { kind: 'descendants', name: unescaped(descendants) }
  if (everything !== undefined) return { kind: 'everything' }
  if (all !== undefined) return { kind: 'all' }
  if (indexes !== undefined) return { kind: 'items', indexes: indexes.split(',').map(Number) }
  if (path !== undefined) {
    const test =
      operator === undefined || value === undefined ? {} : { test: { operator, value: literalOf(value) } }
    return { kind: 'filter', path: stepsOf(path, template), ...test }
  }
  const { from, to, by = '1' } = found
  if (Number(by) === 0) throw invalid(template, 'the step of a slice is 0')
  return {
    kind: 'slice',
    ...(from !== undefined && { from: Number(from) }),
    ...(to !== undefined && { to: Number(to) }),
    by: Number(by),
  }
}

function literalOf(text: string): string | number | boolean {
  if (/^["']/.test(text)) return text.slice(1, -1)
  return text === 'true' || text === 'false' ? text === 'true' : Number(text)
}

function valuesAt(steps: readonly Step[], root: unknown): unknown[] {
  return steps.reduce<unknown[]>((values, step) => values.flatMap((value) => stepFrom(step, value)), [root])
}

function stepFrom(step: Step, value: unknown): unknown[] {
  switch (step.kind) {
    case 'name':
      return isObject(value) && Object.hasOwn(value, step.name) ? [value[step.name]] : []
    case 'all':
      return childrenOf(value)
    case 'everything':
      return childrenOf(value).flatMap((one) => [one, ...stepFrom(step, one)])
    case 'descendants':
      return [value, ...stepFrom({ kind: 'everything' }, value)].flatMap((one) =>
        stepFrom({ kind: 'name', name: step.name }, one),
      )
    case 'items':
      return Array.isArray(value) ? step.indexes.flatMap((index) => value.slice(index).slice(0, 1)) : []
    case 'slice':
      return Array.isArray(value)
        ? value.slice(step.from, step.to).filter((_, index) => index % step.by === 0)
        : []
    case 'filter':
      return childrenOf(value).filter((one) => {
        const [found] = valuesAt(step.path, one)
        return step.test === undefined ? found !== undefined : compares(found, step.test)
      })
  }
}

function compares(found: unknown, { operator, value }: Comparison): boolean {
  if (operator === '==') return found === value
  if (operator === '!=') return found !== value
  const isComparable =
    (typeof found === 'number' && typeof value === 'number') ||
    (typeof found === 'string' && typeof value === 'string')
  if (!isComparable) return false
  if (operator === '<') return found < value
  if (operator === '<=') return found <= value
  return operator === '>' ? found > value : found >= value
}

function childrenOf(value: unknown): unknown[] {
  if (Array.isArray(value)) return value
  return isObject(value) ? Object.values(value) : []
}

/** Strings unchanged, except that each line is made printable: names may come from an attacker. */
function shown(value: unknown): string {
  const text = typeof value === 'string' ? value : (JSON.stringify(value) ?? '')
  return text.split('\n').map(printable).join('\n')
}

function invalid(template: string, why: string): KcertError {
  return new KcertError('KCERT_USAGE', `invalid jsonpath template ${JSON.stringify(template)}`, { why })
}
