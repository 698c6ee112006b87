import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { KcertCommand } from '../../src/cli/base-command.ts'
import { commandConfig } from '../../src/cli/oclif-config.ts'
import type { FlagShape } from '../../src/cli/operands.ts'
import type { KcertError } from '../../src/errors/kcert-error.ts'

// oclif sets a boolean flag that has any value: --force=false meant --force. This test passes a value to every boolean flag of
// every command, and no command may act.

interface Manifest {
  readonly commands: Record<
    string,
    { readonly flags: Record<string, FlagShape>; readonly exitCodes: Record<string, string> }
  >
}
const { commands } = JSON.parse(readFileSync('oclif.manifest.json', 'utf8')) as Manifest

const exitCode = process.exitCode
beforeEach(() => {
  process.exitCode = undefined
})
afterEach(() => {
  process.exitCode = exitCode
  vi.restoreAllMocks()
})

type RunnableCommand = new (
  argv: string[],
  config: ReturnType<typeof commandConfig>,
) => { argv: string[]; _run(): Promise<unknown> }

interface Started {
  readonly began?: readonly string[]
  readonly error?: KcertError
  readonly exit: typeof process.exitCode
}

/** Runs the command up to its start. Returns the parsed command line, or the error. */
async function start(id: string, argv: readonly string[]): Promise<Started> {
  const { default: Command }: { default: RunnableCommand } = await import(
    resolve('src/commands', `${id.replaceAll(':', '/')}.ts`)
  )
  let seen: Omit<Started, 'exit'> = {}
  class Watched extends Command {
    async perform() {
      seen = { began: this.argv }
      return 0
    }
    async fail(error: KcertError) {
      seen = { error }
      return error.exitCode
    }
  }
  vi.spyOn(process, 'emitWarning').mockImplementation(() => {})
  await new Watched([...argv], commandConfig('0.0.0'))._run()
  return { ...seen, exit: process.exitCode }
}

function spellings(name: string, { char, aliases = [], allowNo }: FlagShape): string[] {
  const names = [name, ...aliases]
  return [
    ...names.map((one) => `--${one}`),
    ...(allowNo ? names.map((one) => `--no-${one}`) : []),
    ...(char === undefined ? [] : [`-${char}`]),
  ]
}

const booleans = Object.entries(commands).flatMap(([id, { flags }]) =>
  Object.entries(flags)
    .filter(([, { type }]) => type === 'boolean')
    .map(([name, shape]) => ({ id, name, shape })),
)

describe.each(booleans)('kcert $id --$name', ({ id, name, shape }) => {
  test('refuses any value of a boolean flag, in any position', async () => {
    for (const flag of spellings(name, shape))
      for (const value of ['false', 'true', 'x', '']) {
        // --x=false means --no-x where the command has that flag.
        const isChoice = value === 'false' || value === 'true'
        if (shape.allowNo && isChoice && !flag.startsWith('--no-')) continue
        const word = `${flag}=${value}`
        for (const argv of [
          [word],
          ['operand', word],
          [word, 'operand'],
          [word, '--', 'operand'],
          [word, flag],
        ]) {
          const { error, began, exit } = await start(id, argv)
          expect(began, argv.join(' ')).toBeUndefined()
          expect(exit, argv.join(' ')).toBe(2)
          expect(error?.code).toBe('KCERT_USAGE')
          expect(error?.message).toBe(
            name === 'dry-run'
              ? `invalid --dry-run value "${value}"`
              : `${flag} takes no value, but "${value}" was given`,
          )
        }
      }
  })

  test('starts without a value', async () => {
    for (const flag of spellings(name, shape))
      expect(await start(id, [flag])).toEqual({ began: [flag], exit: 0 })
  })
})

const dryRuns = booleans.filter(({ name }) => name === 'dry-run').map(({ id }) => id)
const asksApiServer = ['csr:request', 'csr:submit', 'token:create']

describe.each(dryRuns)('kcert %s --dry-run=VALUE', (id) => {
  const by = asksApiServer.includes(id) ? 'server' : 'client'

  test('treats "none" as no dry run', async () => {
    expect(await start(id, ['a', '--dry-run=none'])).toEqual({ began: ['a'], exit: 0 })
  })

  test(`treats "${by}" as --dry-run, and refuses the other value`, async () => {
    expect(await start(id, [`--dry-run=${by}`])).toEqual({ began: ['--dry-run'], exit: 0 })
    const other = by === 'client' ? 'server' : 'client'
    const { error, began, exit } = await start(id, [`--dry-run=${other}`])
    expect([began, exit]).toEqual([undefined, 2])
    expect(error?.message).toBe(`--dry-run=${other} is not available for this command`)
  })
})

test('every command that talks to an API server documents exit code 6', () => {
  const withCluster = Object.entries(commands).filter(([, { flags }]) => flags.kubeconfig !== undefined)
  expect(withCluster.length).toBeGreaterThan(30)
  for (const [id, { exitCodes }] of withCluster) expect(exitCodes['6'], id).toContain('401')
})

test('only commands that send their objects with dryRun=All contact the API server', () => {
  expect(dryRuns).toEqual(expect.arrayContaining(asksApiServer))
  expect(KcertCommand.dryRunBy).toBe('client')
})
