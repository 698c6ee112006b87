import { KcertError } from '../../errors/kcert-error.ts'
import type { ObjectCondition, RequestObject, RequestsApi } from '../requests-api.ts'
import type { Decided } from './decision-report.ts'
import type { Act, Evaluation, Evaluator } from './evaluation.ts'

// Approving and denying on a cluster. The request that kcert evaluates (and that a person inspects) and the request that it
// writes to must be the same, even when another client swaps the object under the same name.

/** An object, and the evaluation of it. */
export interface Evaluated {
  readonly object: RequestObject
  readonly evaluation: Evaluation
}

export type Outcome = Decided['outcome']

/** The result for one object. */
export interface Acted {
  readonly name: string
  readonly outcome: Outcome
  /** One fragment for the user. */
  readonly reason: string
  /** The object as last read. */
  readonly object?: RequestObject
  readonly evaluation?: Evaluation
  readonly error?: KcertError
}

export interface ActOptions {
  readonly act: Act
  readonly evaluate: Evaluator
  /** Returns the reason and message of the condition to write. */
  readonly conditionFor: (evaluation: Evaluation) => { readonly reason: string; readonly message: string }
  /** Called right before each attempt to write. Throws a KcertError if the decision must not be written any more. */
  readonly confirm?: (evaluation: Evaluation) => void
}

/** How often kcert reads and retries an object that other clients write to. */
const mostAttempts = 6

/**
 * Approves or denies one evaluated object, and returns the result. Reads it again before each try: UID, specification and request
 * bytes must be the evaluated ones. Evaluates it again when anything else changed. The write names UID and resourceVersion, so
 * that the API server rejects it when the object is swapped after the read. Reads the object again when the outcome of a write is
 * unknown. Failures for this object are returned, not thrown.
 */
export async function actOn(api: RequestsApi, evaluated: Evaluated, options: ActOptions): Promise<Acted> {
  const name = evaluated.object.metadata.name ?? ''
  let last = evaluated
  let written: ObjectCondition | undefined
  let failure: KcertError | undefined
  try {
    for (let attempt = 0; attempt < mostAttempts; attempt++) {
      const object = await api.get(name)
      if (object === undefined)
        return { ...shown(last), outcome: 'deleted', reason: 'deleted after kcert checked it' }
      const swap = differenceOf(evaluated.object, object)
      if (swap !== undefined) return { ...shown(last), outcome: 'changed', reason: swap }
      // kcert writes only to the version that it read and evaluated.
      if (object.metadata.resourceVersion !== last.object.metadata.resourceVersion)
        last = { object, evaluation: await options.evaluate(object) }
      const { evaluation } = last
      const { course, reason } = evaluation
      if (written !== undefined && carries(object, written))
        return { ...shown(last), outcome: done[options.act], reason: seenLater }
      if (course !== 'act') return { ...shown(last), ...unacted(evaluation) }
      // The write did not happen, and the adapter may not retry it any more: the next run finds the object pending.
      if (failure !== undefined && lasting.has(failure.code)) return failed(last, failure)
      written = conditionFor(evaluation, options)
      try {
        const confirm = () => options.confirm?.(evaluation)
        const after = await api.replaceApproval(withCondition(object, written), confirm)
        return { ...shown({ ...last, object: after }), outcome: done[options.act], reason }
      } catch (error) {
        if (!mayPass(error)) throw error
        failure = error
      }
    }
    throw failure
  } catch (error) {
    if (error instanceof KcertError) return failed(last, error)
    throw error
  }
}

const types = { approve: 'Approved', deny: 'Denied' } as const
const done = { approve: 'approved', deny: 'denied' } as const
const planned = { approve: 'would-approve', deny: 'would-deny' } as const
const seenLater = 'the answer was lost, and a second read shows that the write succeeded'

function conditionFor(evaluation: Evaluation, { act, conditionFor: textFor }: ActOptions): ObjectCondition {
  return { type: types[act], status: 'True', ...textFor(evaluation) }
}

/** Returns the object with the condition that would be written. */
export function decidedObject(
  object: RequestObject,
  evaluation: Evaluation,
  options: ActOptions,
): RequestObject {
  return withCondition(object, conditionFor(evaluation, options))
}

/** True when the object has the condition that this run wrote. */
function carries({ status }: RequestObject, { type, reason, message }: ObjectCondition): boolean {
  return (
    status?.conditions?.some(
      (one) => one.type === type && one.reason === reason && one.message === message,
    ) === true
  )
}

/** Returns what acting on an object would do, without doing it. */
export function foreseen({ object, evaluation }: Evaluated, act: Act): Acted {
  const would = { outcome: planned[act], reason: evaluation.reason }
  return { ...shown({ object, evaluation }), ...(evaluation.course === 'act' ? would : unacted(evaluation)) }
}

/** Returns the outcome of an object that kcert does not act on. */
export function unacted({ course, reason }: Evaluation): Pick<Acted, 'outcome' | 'reason' | 'error'> {
  if (course === 'incomplete') {
    const error = new KcertError('KCERT_UNREACHABLE', reason, { fix: 'run it again' })
    return { outcome: 'failed', reason, error }
  }
  return { outcome: course === 'act' ? 'skipped' : course, reason }
}

const lasting: ReadonlySet<string> = new Set(['KCERT_UNREACHABLE', 'KCERT_LOCKED'])
const passing: ReadonlySet<string> = new Set(['KCERT_API_CONFLICT', 'KCERT_API_NOT_FOUND', ...lasting])

/**
 * True for the failure of a write after which kcert reads the object again. After a conflict, another client has changed it.
 * After "not found", the object was deleted or swapped. After a lost connection, it is unknown whether the write happened. So it is
 * when `confirm` stops the retry after a lost connection.
 */
export function mayPass(error: unknown): error is KcertError {
  return error instanceof KcertError && passing.has(error.code)
}

/** Returns the object with one more condition. Every other field, also one unknown to kcert, stays as the API server sent it. */
export function withCondition(object: RequestObject, condition: ObjectCondition): RequestObject {
  const { status = {} } = object
  return { ...object, status: { ...status, conditions: [...(status.conditions ?? []), condition] } }
}

/** Returns why this is not the request that was evaluated; undefined when it is. */
export function differenceOf(evaluated: RequestObject, now: RequestObject): string | undefined {
  if (evaluated.metadata.uid === undefined || evaluated.metadata.uid !== now.metadata.uid)
    return 'another object has this name now'
  if (evaluated.spec.request !== now.spec.request) return 'its request changed after kcert checked it'
  // The API server never changes a specification, so kcert rejects a response with another one.
  const field = specFields.find(
    (key) => JSON.stringify(evaluated.spec[key]) !== JSON.stringify(now.spec[key]),
  )
  return field === undefined ? undefined : `its ${field} changed after kcert checked it`
}

const specFields = [
  'signerName',
  'usages',
  'expirationSeconds',
  'username',
  'uid',
  'groups',
  'extra',
] as const satisfies readonly (keyof RequestObject['spec'])[]

function shown({ object, evaluation }: Evaluated): Pick<Acted, 'name' | 'object' | 'evaluation'> {
  return { name: object.metadata.name ?? '', object, evaluation }
}

function failed(last: Evaluated, error: KcertError): Acted {
  return { ...shown(last), outcome: 'failed', reason: error.message, error }
}
