import { commandLine } from '../../errors/command-line.ts'
import type { RequestState } from '../life.ts'
import { requestWord } from '../request-name.ts'
import type { ClusterRequest } from '../request-report.ts'
import type { Holder } from './facts.ts'
import type { Explanation } from './report.ts'
import type { Situation, UnknownFact } from './situation.ts'

/** One cause for the state of a request: when it applies, and its text. */
export interface CauseRow<Known = Situation> {
  readonly id: string
  /** waiting: normal, no action needed. note: additional to another cause. Otherwise, nothing happens until a person acts. */
  readonly weight?: 'waiting' | 'note'
  readonly holds: (situation: Known) => boolean
  readonly detail: Text<Known>
  /** The fix, as an imperative clause. */
  readonly fix: Text<Known>
  /** Commands to paste, in order. */
  readonly commands?: (situation: Known) => string | readonly string[]
}

type Text<Known> = string | ((situation: Known) => string)

/** Returns the common fields of an explanation: the causes of a table that apply, in order, and the verdict. */
export function explanationOf<Known>(
  causes: readonly CauseRow<Known>[],
  situation: Known,
  state: RequestState,
  open: readonly UnknownFact[],
): Pick<Explanation, 'verdict' | 'causes' | 'unknownFacts'> {
  const found = causes.filter(({ holds }) => holds(situation))
  const textOf = (text: Text<Known>): string => (typeof text === 'string' ? text : text(situation))
  return {
    verdict: verdictOf(state, new Set(found.map(({ weight = 'stuck' }) => weight))),
    causes: found.map(({ id, detail, fix, commands }) => ({
      id,
      detail: textOf(detail),
      fix: textOf(fix),
      next: textOf(fix),
      commands: [commands?.(situation) ?? []].flat(),
    })),
    unknownFacts: [...open],
  }
}

function verdictOf(state: RequestState, weights: ReadonlySet<string>): Explanation['verdict'] {
  if (state === 'denied' || state === 'failed') return state
  if (weights.has('stuck')) return 'stuck'
  if (state === 'issued') return 'issued'
  return weights.has('waiting') ? 'waiting' : 'stuck'
}

/** Returns the reason of a condition, as the end of a sentence. */
export function reasonIn(conditions: readonly ClusterRequest['conditions'][number][], type: string): string {
  const { reason, message } = conditions.find((condition) => condition.type === type) ?? {}
  const words = [reason, message].filter(Boolean)
  return words.length === 0 ? ', without a reason' : `: ${words.join(': ')}`
}

/** Returns who may sign, as the end of a sentence. */
export function signersText(signers: readonly Holder[] = []): string {
  const names = signers.slice(0, 5).map(({ kind, name }) => `${kind} ${name}`)
  return names.length === 0 ? '' : `; these programs may sign: ${names.join(', ')}`
}

/** Returns the name of the object for commands. */
export function wordOf({ object }: Situation): string {
  return requestWord(object.name ?? '')
}

/** Returns the commands that delete the object, so that it can be created again. */
export function deleteObject(situation: Situation): string[] {
  return [commandLine`kubectl delete csr ${wordOf(situation)}`]
}

/** Returns the detail of the first broken rule of the signer. */
export const brokenText = ({ broken: [rule] }: Situation): string => rule?.detail ?? ''
export const brokenFix = ({ broken: [rule] }: Situation): string =>
  [rule?.fix, 'delete this object first'].join('; ')
