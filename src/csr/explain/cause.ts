import { commandLine } from '../../errors/command-line.ts'
import type { RequestState } from '../life.ts'
import { requestWord } from '../request-name.ts'
import type { ClusterRequest } from '../request-report.ts'
import type { Holder } from './facts.ts'
import type { Explanation } from './report.ts'
import type { OpenFact, Situation } from './situation.ts'

/** What keeps a request where it is, or what became of it. */
export interface Cause {
  readonly id: string
  /**
   * stuck: nothing happens until somebody acts; waiting: the usual course, it will go on by itself; note: worth knowing beside
   * another cause.
   */
  readonly weight: 'stuck' | 'waiting' | 'note'
  readonly detail: string
  /** What to do, as a sentence of a runbook. */
  readonly next: string
  /** Commands that can be pasted, in this order. */
  readonly commands: readonly string[]
}

/** One row of the tables of causes: when it holds, and what it says then. */
export interface CauseRow<Known = Situation> {
  readonly id: string
  readonly weight: Cause['weight']
  readonly holds: (situation: Known) => boolean
  readonly says: (situation: Known) => Omit<Cause, 'id' | 'weight'>
}

/** Returns what every explanation says: the causes of a table that hold, in its order, and what they come to. */
export function explanationOf<Known>(
  causes: readonly CauseRow<Known>[],
  situation: Known,
  state: RequestState,
  open: readonly OpenFact[],
): Pick<Explanation, 'verdict' | 'causes' | 'open'> {
  const found = causes.filter(({ holds }) => holds(situation))
  return {
    verdict: verdictOf(
      state,
      found.map(({ weight }) => weight),
    ),
    causes: found.map(({ id, says }) => {
      const { detail, next, commands } = says(situation)
      return { id, detail, next, commands: [...commands] }
    }),
    open: open.map(({ fact, why }) => ({ fact, why })),
  }
}

function verdictOf(state: RequestState, weights: readonly Cause['weight'][]): Explanation['verdict'] {
  if (state === 'denied' || state === 'failed') return state
  if (weights.includes('stuck')) return 'stuck'
  if (state === 'issued') return 'issued'
  return weights.includes('waiting') ? 'waiting' : 'stuck'
}

/** Returns why a condition is there, to go on with a sentence. */
export function reasonIn(conditions: ClusterRequest['conditions'], type: string): string {
  const { reason, message } = conditions.find((condition) => condition.type === type) ?? {}
  const words = [reason, message].filter((word) => word !== undefined && word !== '')
  return words.length === 0 ? ', without a reason' : `: ${words.join(': ')}`
}

/** Returns who has the right to sign, to go on with a sentence. */
export function signersText(signers: readonly Holder[] = []): string {
  if (signers.length === 0) return ''
  return `, and these have the right: ${signers
    .slice(0, 5)
    .map(({ kind, name }) => `${kind} ${name}`)
    .join(', ')}`
}

/** The name of the object for commands. */
export function wordOf({ object }: Situation): string {
  return requestWord(object.name ?? '')
}

/** How a request is made anew once this one is of no use any more. */
export function anew(situation: Situation): string[] {
  return [commandLine`kubectl delete csr ${wordOf(situation)}`]
}
