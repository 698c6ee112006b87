import { globSync, readFileSync } from 'node:fs'
import { parseAst } from 'vitest/node'
import { commandsOf, simpleCommands, wordOfProse } from './pasted-line.ts'

// Refuses a command in a message that is built without `commandLine` (src/errors/command-line.ts), which quotes each value for
// the shell. This covers a command in a template with a value or in a concatenation with +, and any template with a value in
// `next`. Refuses a sentence after the first command of a line of advice, because the sentence becomes arguments when the line is
// pasted.

const verbs: Readonly<Record<string, string>> = {
  kcert:
    'inspect|verify|csr|ca|key|probe|fetch|renew|token|kubeconfig|kubelet|bootstrap|cluster-info|rotate-ca|rotate-sa-key|explain-error|completion|version|-|\0',
  kubectl:
    'get|describe|delete|create|apply|config|auth|rollout|logs|explain|edit|label|annotate|patch|exec|version|-|\0',
  kubeadm: 'init|join|certs|token|kubeconfig|config|-',
  openssl: '[a-z]\\w+|\0',
  systemctl: '[a-z-]+|\0',
  sudo: 'kcert|sh|-',
  'journalctl|crictl|ssh|ssh-keygen|scp|shred|chmod|chown|iconv|base64|keytool|grep|sed': '[\\w/~*.\0-]',
  'rm|mv|cp|ln|ls|cat|df|ss|nc|tr|kill|tail|date|command': '-|/|~|\0',
}
// A value after the program or its first words, but not after a program in the middle of a sentence.
const command = new RegExp(
  `(?:^|[\\s;&|(\`])(?:${Object.entries(verbs)
    .map(([programs, words]) => `(?:${programs}) (?:${words})`)
    .join('|')})`,
)

/** Code that runs commands or writes scripts, and shows them to no user. Each quotes its values itself. */
const ownQuoting: readonly string[] = [
  'src/completion/fish.ts',
  'src/node/tunnel.ts',
  'src/rotation-io/runbook-script.ts',
]

/** Functions that take advice as a positional argument, with its position. */
const adviceArguments: Readonly<Record<string, number>> = {
  finding: 2,
  unmet: 1,
  unknown: 1,
  noLine: 2,
  unknownLine: 2,
  stopped: 1,
  notKnown: 1,
}

interface AstNode {
  readonly type: string
  readonly start: number
  readonly [member: string]: unknown
}

/** Returns "file:line: text" for every command that is built without the tag, or is followed by a sentence. */
export function unquotedCommands(file: string, source: string): string[] {
  const found = new Map<number, string>()
  const visit = (node: AstNode, isNext: boolean, isTagged: boolean): void => {
    if (node.type === 'TemplateLiteral' && !isTagged) {
      const text = textOf(node)
      if (isNext ? text.includes('\0') : holdsCommand(text)) found.set(node.start, text)
    }
    const text =
      node.type === 'TemplateLiteral' ? textOf(node) : node.type === 'Literal' ? node.value : undefined
    if (typeof text === 'string' && hasProseBehind(text, isNext || isTagged)) found.set(node.start, text)
    if (node.type === 'BinaryExpression' && node.operator === '+') {
      const left = node.left as AstNode
      if (left.type === 'Literal' && command.test(String(left.value)))
        found.set(node.start, String(left.value))
    }
    const isTag = node.type === 'TaggedTemplateExpression' && (node.tag as AstNode).name === 'commandLine'
    const isAdvice =
      node.type === 'Property' && ['next', 'commands'].includes(String((node.key as AstNode).name))
    const called = (node.type === 'CallExpression' ? node.callee : {}) as AstNode
    const callee = String(called.name ?? (called.property as AstNode | undefined)?.name)
    for (const [member, value] of Object.entries(node)) {
      for (const [index, child] of (Array.isArray(value) ? value : [value]).entries()) {
        if (typeof child !== 'object' || child === null || typeof child.type !== 'string') continue
        // Function calls are checked at the called function. Values in the tag are quoted, so they may be built freely.
        const staysNext =
          (isNext && !isTag && node.type !== 'CallExpression' && node.type !== 'BinaryExpression') ||
          (isAdvice && member === 'value') ||
          (member === 'arguments' && adviceArguments[callee] === index)
        visit(
          child,
          staysNext && !(node.type === 'ConditionalExpression' && member === 'test'),
          isTag && member === 'quasi',
        )
      }
    }
  }
  visit(parseAst(source, { lang: 'ts' }) as unknown as AstNode, false, false)
  return [...found].map(
    ([start, text]) => `${file}:${source.slice(0, start).split('\n').length}: ${text.replaceAll('\0', '…')}`,
  )
}

const adviceStart = new RegExp(
  `^(?:\0|--?[a-z\0]|\\w+=|\\(?(?:${[...Object.keys(verbs), 'cd|dmesg|install|mkdir|timedatectl|umask'].join('|')})(?=[ ;]|$))`,
)

const placeholder = /\b(?:FILE|HOST|NAME|NEW|NODE)\b/

/**
 * Returns "file:line: text" for every text of `next` that does not begin with a program, an assignment or flags, or contains a
 * placeholder.
 */
export function proseAdvice(file: string, source: string): string[] {
  return nodesBelow(parseAst(source, { lang: 'ts' }) as unknown as AstNode)
    .filter(({ type, key }) => type === 'Property' && (key as AstNode).name === 'next')
    .flatMap(({ value }) => literalsOf(value as AstNode))
    .filter(({ text }) => text !== '' && (!adviceStart.test(text) || placeholder.test(text)))
    .map(
      ({ start, text }) =>
        `${file}:${source.slice(0, start).split('\n').length}: ${text.replaceAll('\0', '…')}`,
    )
}

/** Returns the string literals in an expression. Function calls are checked at the called function. */
function literalsOf(node: AstNode): { start: number; text: string }[] {
  const { type, start } = node
  const branches = [node.consequent, node.alternate, node.left, node.right] as (AstNode | undefined)[]
  if (type === 'ConditionalExpression' || type === 'LogicalExpression')
    return branches.flatMap((branch) => (branch === undefined ? [] : literalsOf(branch)))
  if (type === 'TaggedTemplateExpression') return [{ start, text: textOf(node.quasi as AstNode) }]
  if (type === 'TemplateLiteral') return [{ start, text: textOf(node) }]
  return type === 'Literal' && typeof node.value === 'string' ? [{ start, text: node.value }] : []
}

/** A command that messages can print. */
interface PrintedCommand {
  /** file:line */
  readonly at: string
  /** The words after the program. Values that are unknown before a run are VALUE. */
  readonly words: readonly string[]
}

/** Returns every command of a program that kcert's messages can print, without duplicates. */
export function printedCommands(program: string): PrintedCommand[] {
  const all = messageSources().flatMap((file) => {
    const source = readFileSync(file, 'utf8')
    return commandsIn(source).flatMap(({ start, words }) => {
      const [first, ...rest] = words[0] === 'sudo' ? words.slice(1) : words
      const at = `${file}:${source.slice(0, start).split('\n').length}`
      return first === program ? [{ at, words: rest.map(plainWord) }] : []
    })
  })
  return [...new Map(all.map((one) => [one.words.join('\0'), one])).values()]
}

function plainWord(word: string): string {
  return word.replaceAll(/['"]/g, '').replaceAll('\0', 'VALUE')
}

/** Returns a command line with each `$(command)` replaced by a value, and the commands in the substitutions. */
function apartFromSubstitutions(text: string): string[] {
  const substitution = /\$\(([^()]*)\)/g
  return [
    text.replaceAll(substitution, '\0'),
    ...Array.from(text.matchAll(substitution), ([, its = '']) => its),
  ]
}

/** Returns the commands in the strings of a source, with the position of each string. A single word is not a command. */
function commandsIn(source: string): { start: number; words: string[] }[] {
  const nodes = nodesBelow(parseAst(source, { lang: 'ts' }) as unknown as AstNode)
  const known = new Map<string, readonly string[]>()
  for (const { type, id, init } of nodes) {
    if (type !== 'VariableDeclarator' || !init) continue
    const name = String((id as AstNode).name)
    // A name with two values is treated as unknown.
    known.set(name, known.has(name) ? [unknownValue] : textsOf(init as AstNode, known))
  }
  return nodes.flatMap((node) =>
    textsOf(node, known)
      .flatMap(withoutFacts)
      .flatMap(apartFromSubstitutions)
      .flatMap((text) => {
        const commands = /<%|\n/.test(text) ? undefined : commandsOf(text)
        if (commands === undefined || wordOfProse(commands) !== undefined) return []
        const found = simpleCommands(commands).filter((words) => words.length > 1)
        return found.map((words) => ({ start: node.start, words }))
      }),
  )
}

/** Returns the commands in the syntax of src/diagnosis/sentence.ts, from a text or a table, without the facts in them. */
function withoutFacts(text: string): string[] {
  const rows = Array.from(text.matchAll(/^ {2}\$ (.+?)\s# /gms), ([, row]) => row!)
  return (rows.length > 0 ? rows.flatMap((row) => row.split(' || ')) : [text]).map((one) =>
    one.replaceAll(/\{[a-z]\w*\}/gi, unknownValue).replace(/^if [^:]+: /, ''),
  )
}

/** All nodes except the template of a tag, which counts together with its tag. */
function nodesBelow(node: AstNode): AstNode[] {
  const isTagged = node.type === 'TaggedTemplateExpression'
  const parts = (isTagged ? (node.quasi as AstNode).expressions : Object.values(node)) as unknown[]
  const below = parts
    .flat()
    .filter((part): part is AstNode => typeof (part as AstNode | null)?.type === 'string')
  return [node, ...below.flatMap(nodesBelow)]
}

const unknownValue = '\0'

/** Returns the possible texts of an expression. */
function textsOf(node: AstNode, known: ReadonlyMap<string, readonly string[]>): readonly string[] {
  switch (node.type) {
    case 'Literal':
      return [String(node.value)]
    case 'Identifier':
      return node.name === 'undefined' ? [''] : (known.get(String(node.name)) ?? [unknownValue])
    case 'ConditionalExpression':
      return [node.consequent, node.alternate].flatMap((branch) => textsOf(branch as AstNode, known))
    case 'CallExpression':
      return /^(?:embed|fixed)$/.test(String((node.callee as AstNode).name))
        ? textsOf((node.arguments as AstNode[])[0]!, known)
        : [unknownValue]
    case 'TaggedTemplateExpression':
      return textsOf(node.quasi as AstNode, known)
    case 'TemplateLiteral': {
      const [first, ...rest] = (node.quasis as { value: { cooked: string } }[]).map(
        ({ value }) => value.cooked,
      )
      const expressions = node.expressions as AstNode[]
      // A name has one value for all its occurrences in the text.
      type Built = { readonly text: string; readonly named: Readonly<Record<string, string>> }
      const grown = (built: readonly Built[], after: string, index: number): Built[] =>
        built.flatMap(({ text, named }) => {
          const name = String(expressions[index]!.name)
          const values = name in named ? [named[name]!] : textsOf(expressions[index]!, known)
          return values.map((value) => ({
            text: text + value + after,
            named: name === 'undefined' ? named : { ...named, [name]: value },
          }))
        })
      return rest.reduce(grown, [{ text: first!, named: {} }]).map(({ text }) => text)
    }
    default:
      return [unknownValue]
  }
}

function messageSources(): string[] {
  return globSync('src/**/*.ts').filter((file) => !file.endsWith('.test.ts') && !ownQuoting.includes(file))
}

/** Returns true for a command with a value in it. Text of several lines is help or a script. */
function holdsCommand(text: string): boolean {
  const { index } = command.exec(text) ?? { index: text.length }
  return text.includes('\0', index) && !/\n./.test(text)
}

/** Outside advice, "kubeadm join fails" is a sentence, and help has placeholders of oclif. */
function hasProseBehind(text: string, isAdvice: boolean): boolean {
  const commands = commandsOf(text)
  if (commands === undefined || text.includes('<%') || /\n./.test(text)) return false
  const isCommand = /^(?:kcert|kubectl) /.test(commands) && command.exec(commands)?.index === 0
  return (isAdvice || isCommand) && wordOfProse(commands) !== undefined
}

function textOf(template: AstNode): string {
  return (template.quasis as { value: { cooked: string } }[]).map(({ value }) => value.cooked).join('\0')
}

if (import.meta.main) {
  const found = messageSources().flatMap((file) => unquotedCommands(file, readFileSync(file, 'utf8')))
  process.stdout.write(found.map((line) => `${line}\n`).join(''))
  if (found.length > 0) {
    process.stdout.write(
      `${found.length} commands are not quoted for the shell (build them by commandLine\`…\`) or have a sentence behind them (put it in front)\n`,
    )
    process.exitCode = 1
  }
  const prose = messageSources().flatMap((file) => proseAdvice(file, readFileSync(file, 'utf8')))
  process.stdout.write(prose.map((line) => `${line}\n`).join(''))
  if (prose.length > 0) {
    process.stdout.write(
      `${prose.length} values of next are no commands: write what a person must do to fix\n`,
    )
    process.exitCode = 1
  }
}
