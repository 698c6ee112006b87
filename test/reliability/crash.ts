import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { crashPoints, type Tally } from './crash-points.ts'
import { publish, tableOf } from './page.ts'
import { WritingCommands } from './writing-commands.ts'

// `npm run crash-points [-- NAME...] [-- --write]`: every writing command, stopped after each call and with each error at each
// call.

const root = mkdtempSync(join(existsSync('/dev/shm') ? '/dev/shm' : tmpdir(), 'kcert-crash-'))
const wanted = process.argv.slice(2).filter((word) => !word.startsWith('-'))
try {
  const template = join(root, 'template')
  const writers = await WritingCommands.in(template)
  const tallies: Tally[] = []
  for (const command of writers.commands) {
    if (wanted.length > 0 && !wanted.some((word) => command.name.startsWith(word))) continue
    const tally = await crashPoints(command, template, join(root, 'work'), { everyError: true })
    process.stderr.write(`${tally.name}: ${tally.calls} calls, ${tally.losses.length} lost\n`)
    for (const loss of tally.losses.slice(0, 5)) process.stderr.write(`  ${loss}\n`)
    tallies.push(tally)
  }
  await writers.close()
  const sum = (of: (tally: Tally) => number): number => tallies.reduce((total, one) => total + of(one), 0)
  const rows = tallies.map(({ name, calls, all, stops, faults, losses }) => [
    name,
    all,
    calls,
    stops,
    faults,
    losses.length,
  ])
  publish(
    'crash-points',
    tableOf(
      ['command', 'calls', 'of these changing', 'stops', 'calls that failed', 'lost'],
      [
        ...rows,
        [
          'all',
          sum(({ all }) => all),
          sum(({ calls }) => calls),
          sum(({ stops }) => stops),
          sum(({ faults }) => faults),
          sum(({ losses }) => losses.length),
        ],
      ],
    ),
  )
  process.exitCode = sum(({ losses }) => losses.length) === 0 ? 0 : 1
} finally {
  rmSync(root, { recursive: true })
}
