import { commandLine } from '../../errors/command-line.ts'
import { requestWord } from '../request-name.ts'
import type { Situation } from './situation.ts'

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
export interface CauseRow {
  readonly id: string
  readonly weight: Cause['weight']
  readonly holds: (situation: Situation) => boolean
  readonly says: (situation: Situation) => Omit<Cause, 'id' | 'weight'>
}

/** The name of the object for commands. */
export function wordOf({ object }: Situation): string {
  return requestWord(object.name ?? '')
}

/** How a request is made anew once this one is of no use any more. */
export function anew(situation: Situation): string[] {
  return [commandLine`kubectl delete csr ${wordOf(situation)}`]
}
