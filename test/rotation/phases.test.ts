import { createHash } from 'node:crypto'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { describe, expect, test, vi } from 'vitest'
import { phaseNumbered } from '../../src/rotation/playbook.ts'
import { type SectionName, sectionNames } from '../../src/rotation/snapshot.ts'
import { otherStates } from './other-states.ts'
import {
  type Changes,
  difference,
  oneChanged,
  otherTargets,
  type State,
  saidBy,
  shapes,
  statesOf,
} from './phase-states.ts'

// Every phase on the state before and after it, and on both with one change. test/golden/rotation-phase-*.json contains the
// resulting pending items, steps, refusals and remarks. KCERT_GOLDEN=write writes the current output; review the difference
// before you commit it.

type StatusText = Record<string, readonly string[]>
type Golden = Record<string, Record<string, StatusText>>

const isWriting = process.env.KCERT_GOLDEN === 'write'
const numbers = Array.from({ length: 12 }, (_, index) => index + 1)
const only: Readonly<Record<string, readonly number[]>> = {
  kubeadm: numbers,
  'every flag': [5, 6, 9, 12],
  'by hand': [2, 9, 12],
  'leaked key': [4, 7, 12],
}
const whens = ['before', 'after'] as const
const subjects = [...sectionNames, 'target', ...Object.keys(otherStates)]

const everything = sectionNames.join(' ')

/** ID, earlier phases, risk, and the sections that the observer fetches. */
const facts: Readonly<Record<number, readonly string[]>> = {
  1: ['distribute', '', 'writes', 'nodes components kubelets kubeconfigs files copies evidence kubeadm'],
  2: ['publish-both', '1', 'restarts', 'components files leases kubeadm published pods evidence'],
  3: ['await-published', '2', 'reads', 'published components pods'],
  4: ['restart-pods', '3', 'restarts', 'published pods workloads'],
  5: [
    'trust-both',
    '2',
    'writes',
    'nodes components kubelets files leases extensionAuthentication clusterInfo evidence',
  ],
  6: ['scheduler-trusts-both', '2', 'writes', 'components files evidence'],
  7: ['kubeconfigs', '5,6', 'restarts', 'components files kubeconfigs leases kubeadm evidence'],
  8: ['cloud-controller-manager', '1', 'restarts', 'components files leases'],
  9: [
    'present-new',
    '4,5,6,7,8',
    'restarts',
    'nodes components kubelets files published pods backends workloads caBundles extensionAuthentication handshakes evidence',
  ],
  10: ['cluster-info', '9', 'writes', 'clusterInfo'],
  11: ['verify', '9,10', 'reads', 'components kubelets files published pods stored handshakes evidence'],
  12: ['drop-old', '11', 'irreversible', everything],
}

/** Longest text that a person reviews before a commit. */
const mostLetters = { section: 600, other: 1_500 }

/** Keeps one of several cases that differ only in a name or a path. Long lists are shortened. */
function distinct(
  changes: Changes,
  said: (name: string) => readonly string[],
  known: Set<string>,
): StatusText {
  const kept: StatusText = {}
  for (const name of changes.keys()) {
    const lines = said(name)
    const text = lines.join('\n')
    const form = text
      .replaceAll(/\b(?:cp|w)\d\b/g, 'N')
      .replaceAll(/(?:\/[\w.-]+)+/g, 'P')
      .replaceAll(/kube-(?:apiserver|controller-manager|scheduler|proxy)/g, 'C')
    if (lines.length === 0 || text.length > mostLetters.section || known.has(form)) continue
    known.add(form)
    kept[name] = lines
  }
  return kept
}

/** Returns the output for each target and state: the name of an earlier one with the same output, or a digest if it is long. */
function each(changes: Changes, said: (name: string) => readonly string[]): StatusText {
  const kept: StatusText = {}
  const names = new Map<string, string>()
  for (const name of changes.keys()) {
    const lines = shortened(said(name))
    const text = lines.join('\n')
    const same = names.get(text)
    kept[name] = same === undefined ? lines : [`as ${same}`]
    if (same === undefined) names.set(text, name)
  }
  return kept
}

function shortened(lines: readonly string[]): readonly string[] {
  const text = lines.join('\n')
  if (text.length <= mostLetters.other) return lines
  return [`${lines.length} lines, SHA-256 ${createHash('sha256').update(text).digest('hex')}`]
}

describe.each(numbers)('phase %i', (number) => {
  const phase = phaseNumbered(number)
  const path = `test/golden/rotation-phase-${number}.json`
  const golden = (existsSync(path) ? JSON.parse(readFileSync(path, 'utf8')) : {}) as Golden
  const known = new Set<string>()
  for (const shape of Object.keys(shapes).filter((one) => only[one]!.includes(number))) {
    for (const when of whens) {
      const key = `${shape}, ${when}`
      const states = async () => {
        const all = await statesOf(shape)
        const [before, after] = [all[number - 1]!, all[number]!]
        return when === 'before' ? ([before, after] as const) : ([after, before] as const)
      }
      test(`${key}: as it is`, async () => {
        const [state] = await states()
        const lines = saidBy(phase, state)
        if (isWriting) golden[key] = { '': { 'as it is': lines } }
        expect(lines).toEqual(golden[key]!['']!['as it is'])
      })
      for (const subject of subjects) {
        test(`${key}: ${subject}`, async () => {
          const [state, other] = await states()
          const others =
            subject === 'target' ? (_: unknown, one: State) => otherTargets(one) : otherStates[subject]
          const changes =
            others === undefined
              ? oneChanged(state, other, subject as SectionName)
              : others(await statesOf(shape), state, number)
          const base = saidBy(phase, state)
          const said = (name: string) => difference(base, saidBy(phase, changes.get(name)!()))
          if (isWriting)
            golden[key]![subject] =
              others === undefined ? distinct(changes, said, known) : each(changes, said)
          const expected = golden[key]![subject]!
          const now =
            others === undefined
              ? Object.fromEntries(Object.keys(expected).map((name) => [name, said(name)]))
              : each(changes, said)
          expect(now).toEqual(expected)
        })
      }
    }
  }
  test('has the expected facts, and the same report when loaded again', async () => {
    vi.resetModules()
    const playbook = await import('../../src/rotation/playbook.ts')
    const loaded = playbook.phaseNumbered(number)
    const { id, after, risk, sees } = loaded
    expect([id, after.join(), risk, sees.join(' ')]).toEqual(facts[number])
    for (const shape of Object.keys(shapes).filter((one) => only[one]!.includes(number))) {
      const all = await statesOf(shape)
      for (const [index, when] of whens.entries()) {
        const lines = saidBy(loaded, all[number - 1 + index]!)
        expect(lines).toEqual(golden[`${shape}, ${when}`]!['']!['as it is'])
      }
    }
  })
  test.runIf(isWriting)('written', () => {
    writeFileSync(path, `${JSON.stringify(golden, null, 1)}\n`)
  })
})
