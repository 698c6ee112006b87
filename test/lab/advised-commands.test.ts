import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { beforeAll, describe, expect, test } from 'vitest'
import { printedCommands } from '../../scripts/command-lines.ts'
import { buildBinaries } from './binaries.ts'
import { whyNotHere } from './machine.ts'
import { defaultMinor } from './spec.ts'
import { stepsOn } from './steps.ts'

// Every kubectl and kubeadm command in a message has a subcommand and flags that the program supports. The test needs the
// binaries but no cluster: with --help, a command parses its flags and does nothing.

const leftOut = whyNotHere()
if (leftOut) process.stdout.write(`${leftOut}\n`)

describe.skipIf(leftOut).each(['kubectl', 'kubeadm'])('commands of %s in messages', (program) => {
  let path: string

  beforeAll(async () => {
    const binaries = await buildBinaries(
      defaultMinor,
      stepsOn((line) => process.stderr.write(`${line}\n`)),
    )
    path = join(binaries.folder, program)
  })

  const mistakeIn = (words: readonly string[]): string | undefined => {
    // What follows -- belongs to a program in a pod.
    const end = words.indexOf('--')
    const own = end === -1 ? words : words.slice(0, end)
    const run = spawnSync(path, [...own, '--help'], { encoding: 'utf8', env: { HOME: '/nonexistent' } })
    if (run.status !== 0) return run.stderr.split('\n')[0]
    const usage = new RegExp(`^Usage:\\s+${program}((?: [a-z][a-z-]*)*)`, 'm').exec(run.stdout)?.[1]
    const subcommands = usage?.split(' ').filter(Boolean) ?? []
    const operands = words.slice(words.indexOf(subcommands[0] ?? ''))
    const isKnown = subcommands.length > 0 && subcommands.every((name, index) => operands[index] === name)
    // A group of commands, and a name that the group does not have.
    const next = operands[subcommands.length] ?? '-'
    const isGroup = /^Available Commands:$/m.test(run.stdout) && /^[a-z][a-z-]*$/.test(next)
    return isKnown && !isGroup ? undefined : `is taken for "${subcommands.join(' ')}"`
  }

  test('have a known subcommand and known flags', () => {
    // Flags without a command are part of other commands, or the name of a flag in a sentence. A single value is a part that is
    // built elsewhere.
    const commands = printedCommands(program).filter(({ words }) => !/^(?:--|VALUE$)/.test(words[0]!))
    expect(commands.length).toBeGreaterThan(5)
    const mistakes = commands.flatMap(({ at, words }) => {
      const mistake = mistakeIn(words)
      return mistake === undefined ? [] : [`${at}: ${program} ${words.join(' ')}: ${mistake}`]
    })
    expect(mistakes).toEqual([])
  })

  test.each([['get csr --frobnicate'], ['frobnicate'], ['certs frobnicate'], ['config frobnicate']])(
    'would be rejected: %s',
    (line) => {
      expect(mistakeIn(line.split(' '))).toBeDefined()
    },
  )
})
