import { resolve } from 'node:path'
import { text } from 'node:stream/consumers'
import { commandConfig } from '../../src/cli/oclif-config.ts'
import { scriptsOf } from '../../src/cli/program-scripts.ts'

// Runs the built kcert only until the command has parsed its command line, which every command does first. `node parse-only.ts
// ARGUMENT…` exits with 0 if the command line is valid. `--each` reads a JSON list of command lines on standard input and prints
// a list with the error of each, or null.

interface Command {
  new (
    argv: readonly string[],
    config: ReturnType<typeof commandConfig>,
  ): {
    parse(...args: readonly unknown[]): Promise<unknown>
    run(): Promise<void>
  }
}

const scripts = scriptsOf(`${resolve(import.meta.dirname, '../../dist')}/`, 'parse-only')
const isRead = new Error('the command line is read')

/** Returns the error in the words after "kcert"; undefined if they are valid. */
async function mistakeIn(words: readonly string[]): Promise<string | undefined> {
  const end = words.findIndex((word) => !/^[a-z][a-z-]*$/.test(word))
  const names = end === -1 ? words : words.slice(0, end)
  const lengths = [3, 2, 1].filter((length) => length <= names.length)
  const length = lengths.find((one) => scripts.has(`commands/${names.slice(0, one).join('/')}.js`))
  const asksForHelp = words.includes('--help')
  if (length === undefined) {
    const isTopic = scripts.has(`help/${names.join('/')}.txt`)
    return asksForHelp && (names.length === 0 || isTopic) ? undefined : `unknown command "${words.join(' ')}"`
  }
  if (asksForHelp) return undefined
  const Known = scripts.load(`commands/${words.slice(0, length).join('/')}.js`) as Command
  class Parsed extends Known {
    override async parse(...args: readonly unknown[]): Promise<never> {
      await super.parse(...args)
      throw isRead
    }
  }
  try {
    await new Parsed(words.slice(length), commandConfig('0.0.0')).run()
    return 'the command does not read its command line'
  } catch (error) {
    return error === isRead ? undefined : (error as Error).message
  }
}

const words = process.argv.slice(2)
if (words[0] === '--each') {
  const mistakes: (string | null)[] = []
  for (const each of JSON.parse(await text(process.stdin)) as string[][])
    mistakes.push((await mistakeIn(each)) ?? null)
  process.stdout.write(JSON.stringify(mistakes))
} else {
  const mistake = await mistakeIn(words)
  if (mistake !== undefined) process.stderr.write(`${mistake}\n`)
  process.exitCode = mistake === undefined ? 0 : 2
}
