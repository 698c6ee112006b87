import { commandLine, fixed } from '../errors/command-line.ts'
import { choicesIn, isOfFinished, type JournalEntry, sinceRollback } from './journal.ts'
import type { Refusal } from './phase.ts'
import type { PhaseTable } from './phase-table.ts'
import type { Settings } from './target-reading.ts'

// The choices that stay the same from the first change on, until all phases are rolled back.

const rows = {
  keyType: {
    flag: '--algorithm',
    byDefault: undefined,
    why: 'all its CAs and certificates get keys of one type',
  },
  etcdClients: {
    flag: '--etcd-clients',
    byDefault: 'known',
    why: 'it decides which clients members of etcd accept from phase 2 on',
  },
} as const

type FixedChoice = keyof typeof rows

/** Returns why these flags cannot continue the rotation in the journal. */
export function changedChoices(
  table: PhaseTable,
  entries: readonly JournalEntry[],
  given: Pick<Settings, FixedChoice>,
): readonly Refusal[] {
  const hasBegun = sinceRollback(entries, table).some(({ kind }) => kind === 'intent')
  if (!hasBegun || isOfFinished(entries, table)) return []
  const choices = choicesIn(entries, table)
  return (Object.keys(rows) as FixedChoice[]).flatMap((name) => {
    const [begunWith, now] = [choices?.[name] ?? rows[name].byDefault, given[name]]
    return now === undefined || now === begunWith ? [] : [changedChoice(table, name, begunWith, now)]
  })
}

/** Returns the refusal of another choice than the one with which the rotation began. */
export function changedChoice(
  { command }: PhaseTable,
  name: FixedChoice,
  begunWith: string | undefined,
  now: string,
): Refusal {
  const { flag, why } = rows[name]
  const begun = begunWith === undefined ? `without ${flag}` : `with ${flag} ${begunWith}`
  return {
    what: `this rotation began ${begun}, not with ${now}`,
    why: `${why}. Continue without the flag, or roll back all phases first`,
    next: commandLine`${fixed(command)} rollback --to 0`,
  }
}
