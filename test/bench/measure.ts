import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

// Node loads the CAs of NODE_EXTRA_CA_CERTS before its first connection, even if the connection does not use them. Sandboxes set
// this variable, and operators' shells do not.
const { NODE_EXTRA_CA_CERTS: _, ...env } = process.env

/** One command of a benchmark: its name in the table, and its command line. */
export interface Contender {
  readonly name: string
  readonly command: readonly string[]
  /** Exit codes that count as success. kcert's 3 is a result. */
  readonly exits?: readonly number[]
}

/** The measurements of a contender: seconds of wall time over the runs, and the largest resident set in MiB. */
export interface Measurement extends Contender {
  readonly min: number
  readonly median: number
  readonly runs: number
  readonly peakMiB: number
}

/** Returns measurements of all contenders, from one run of hyperfine without a shell. */
export function measure(
  contenders: readonly Contender[],
  runs: { warmup: number; min: number },
): Measurement[] {
  const folder = mkdtempSync(join(tmpdir(), 'kcert-bench-'))
  try {
    for (const contender of contenders) assertWorks(contender)
    const results = join(folder, 'results.json')
    const flags = [
      '-N',
      '-i',
      '--style',
      'none',
      '--warmup',
      String(runs.warmup),
      '--min-runs',
      String(runs.min),
    ]
    const commands = contenders.map(({ command }) => command.map(quoted).join(' '))
    run('hyperfine', [...flags, '--export-json', results, ...commands])
    const { results: rows } = JSON.parse(readFileSync(results, 'utf8')) as {
      results: { min: number; median: number; times: number[] }[]
    }
    return contenders.map((contender, index) => {
      const { min, median, times } = rows[index]!
      return { ...contender, min, median, runs: times.length, peakMiB: peakMiB(contender) }
    })
  } finally {
    rmSync(folder, { recursive: true })
  }
}

// hyperfine -i accepts any exit code, so a broken contender would appear fast. Each contender runs once before.
function assertWorks({ name, command, exits = [0] }: Contender): void {
  const [program = '', ...args] = command
  const { status, stderr, error } = spawnSync(program, args, { encoding: 'utf8', maxBuffer: 1 << 30, env })
  if (error || !exits.includes(status ?? -1)) {
    throw new Error(`${name} does not work: exit ${status}: ${error?.message ?? stderr.slice(0, 500)}`)
  }
}

function peakMiB({ command }: Contender): number {
  const { stderr } = spawnSync('/usr/bin/time', ['-f', 'peak=%M', ...command], {
    encoding: 'utf8',
    maxBuffer: 1 << 30,
    env,
  })
  const peak = /peak=(\d+)/.exec(stderr)
  if (!peak) throw new Error('GNU time printed no peak: install the package "time"')
  return Number(peak[1]) / 1024
}

function run(program: string, args: readonly string[]): void {
  const { status, stderr, error } = spawnSync(program, args, { encoding: 'utf8', env })
  if (status !== 0) throw new Error(`${program} failed: ${error?.message ?? stderr}`)
}

function quoted(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`
}
