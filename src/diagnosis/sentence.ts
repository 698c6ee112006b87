import { type CommandLine, commandLine, embed } from '../errors/command-line.ts'
import { facts } from './facts.ts'
import type { Found } from './report.ts'

// The language of the tables. {node} is a fact of the text. A part in brackets is omitted if a fact in it is unknown: "the
// kubelet[ of {node}]". Among alternatives ("a || b"), the first one is used whose facts are known and whose condition is true:
// "if at=etcd: a || b".

const factPattern = /\{(\w+)\}/

/**
 * Returns the condition of several terms separated by spaces, which must all be true: "node" (that fact is known), "!node",
 * "at=etcd,kubelet" (it is one of these), "side!=server".
 */
export function conditionOf(text: string): (found: Found) => boolean {
  const terms = text.split(' ').map((term) => {
    const [, not, name = '', differs, values] = /^(!?)(\w+)(?:(!?)=(\S+))?$/.exec(term) ?? []
    return { name, values: values?.split(','), isWanted: !not && !differs }
  })
  return (found) =>
    terms.every(({ name, values, isWanted }) => {
      const value = factOf(name, found)
      return (values === undefined ? value !== undefined : values.includes(String(value))) === isWanted
    })
}

/** Returns a sentence of a table with the facts of a text; undefined if a required fact is unknown. */
export function sentence(text: string, found: Found): string | undefined {
  return chosen(text, found)
    ?.split(factPattern)
    .map((part, index) => (index % 2 === 0 ? part : [factOf(part, found)].flat().join(', ')))
    .join('')
}

/** Returns a command of a table with the facts of a text, quoted for the shell; undefined if a required fact is unknown. */
export function command(text: string, found: Found): CommandLine | undefined {
  const parts = chosen(text, found)?.split(factPattern)
  if (parts === undefined) return undefined
  const texts = parts.filter((_, index) => index % 2 === 0)
  const names = parts.filter((_, index) => index % 2 === 1)
  return commandLine(Object.assign(texts, { raw: texts }), ...names.map((name) => argumentOf(name, found)))
}

function chosen(text: string, found: Found): string | undefined {
  for (const alternative of text.split(' || ')) {
    const [head = '', condition] = /^if ([^:]+): /.exec(alternative) ?? []
    if (condition !== undefined && !conditionOf(condition)(found)) continue
    const filled = alternative
      .slice(head.length)
      .replaceAll(/\[([^\]]*)\]/g, (_, part: string) => (isKnown(part, found) ? part : ''))
    if (isKnown(filled, found)) return filled
  }
  return undefined
}

function isKnown(text: string, found: Found): boolean {
  return text.split(factPattern).every((part, index) => index % 2 === 0 || factOf(part, found) !== undefined)
}

function factOf(name: string, found: Found): string | readonly string[] | undefined {
  const fact = factNamed(name)
  return typeof fact === 'function' ? fact(found) : sentence(fact.join(' || '), found)
}

function argumentOf(name: string, found: Found) {
  const fact = factNamed(name)
  if (typeof fact !== 'function') {
    const part = command(fact.join(' || '), found)
    return part && embed(part)
  }
  const value = fact(found)
  // "~" stays outside the quotes, because shells do not expand it inside.
  return typeof value === 'string' && value.startsWith('~/') ? embed(commandLine`~/${value.slice(2)}`) : value
}

function factNamed(name: string) {
  const fact = facts[name]
  if (fact === undefined) throw new Error(`a table of errors names an unknown fact: "${name}"`)
  return fact
}
