import {
  certificateWaitMs,
  type Draw,
  pauseAfterMs,
  restedMs,
  restMs,
  rotationDeadlineMs,
} from './schedule.ts'
import { type HeldCertificate, isSameTemplate, type Template, unmetBy } from './template.ts'

// The certificate manager as a step function: an event and its time yield a new state and the actions to take. It performs no
// action and reads no clock. The rules are those of client-go's certificate manager.

/** The state between two steps. */
export interface ManagerState {
  readonly held: HeldCertificate | undefined
  /** When `held` arrived; undefined for the certificate at the start. */
  readonly heldSinceMs: number | undefined
  /** Renew once, as soon as there is a template. */
  readonly isForced: boolean
  readonly lastRequested: Template | undefined
  readonly isServerHealthy: boolean
  /** The number of the current or last request; results of earlier ones are ignored. */
  readonly attempt: number
  readonly activity: Activity
}

export type Activity =
  | { readonly at: 'off' }
  /** A second before the next check. */
  | { readonly at: 'rest'; readonly untilMs: number }
  /** The certificate is renewed at this time. */
  | { readonly at: 'deadline'; readonly untilMs: number }
  /** The backoff after a failed try. */
  | { readonly at: 'pause'; readonly untilMs: number; readonly failedTries: number }
  | { readonly at: 'request'; readonly template: Template; readonly failedTries: number }
  | { readonly at: 'wait'; readonly untilMs: number; readonly failedTries: number }
  | { readonly at: 'store'; readonly failedTries: number }

export type ManagerEvent =
  | { readonly kind: 'start' }
  | { readonly kind: 'stop' }
  /** Time has passed. */
  | { readonly kind: 'time' }
  /** The template may have changed. */
  | { readonly kind: 'template' }
  /** The operator wants a new certificate now. */
  | { readonly kind: 'force' }
  | { readonly kind: 'requested'; readonly attempt: number }
  | { readonly kind: 'not-requested'; readonly attempt: number; readonly isServerHealthy: boolean }
  | { readonly kind: 'issued'; readonly attempt: number }
  /** Denied, failed, deleted, or without a usable certificate. */
  | { readonly kind: 'not-issued'; readonly attempt: number }
  | { readonly kind: 'stored'; readonly attempt: number; readonly certificate: HeldCertificate }
  | { readonly kind: 'not-stored'; readonly attempt: number }

export type Effect =
  /** Create a key and a request, and submit it. */
  | { readonly do: 'request'; readonly attempt: number; readonly template: Template }
  /** Wait for the certificate. */
  | { readonly do: 'wait'; readonly attempt: number }
  | { readonly do: 'cancel'; readonly attempt: number }
  | { readonly do: 'store'; readonly attempt: number }
  /** `usedSeconds`: the age of the replaced certificate; absent for the first. */
  | { readonly do: 'tell-renewed'; readonly usedSeconds?: number }
  | { readonly do: 'tell-failed' }

export interface StepInput {
  readonly nowMs: number
  /** Undefined while unknown, such as for a node without addresses: nothing is requested then. */
  readonly template: Template | undefined
  readonly draw: Draw
}

export interface Step {
  readonly state: ManagerState
  readonly effects: readonly Effect[]
}

/**
 * Returns the state before the start. `present` is the certificate in the store, expired or not; `forceRenewal` renews it at
 * once, as for a certificate from another source.
 */
export function managerState(
  present: HeldCertificate | undefined,
  nowMs: number,
  { forceRenewal = false }: { readonly forceRenewal?: boolean } = {},
): ManagerState {
  const isUsable = present !== undefined && nowMs < present.notAfterMs
  return {
    held: isUsable ? present : undefined,
    heldSinceMs: undefined,
    isForced: forceRenewal || !isUsable,
    lastRequested: undefined,
    isServerHealthy: false,
    attempt: 0,
    activity: { at: 'off' },
  }
}

/** Returns the certificate to use; undefined for an expired one. */
export function currentCertificate({ held }: ManagerState, nowMs: number): HeldCertificate | undefined {
  return held !== undefined && nowMs <= held.notAfterMs ? held : undefined
}

/** Returns the time of the next step; undefined while waiting for another event. */
export function wakesAtMs({ activity }: ManagerState): number | undefined {
  return 'untilMs' in activity ? activity.untilMs : undefined
}

/** Returns the new state, and the actions to take. An event that does not fit changes nothing. */
export function step(state: ManagerState, event: ManagerEvent, input: StepInput): Step {
  if ('attempt' in event && event.attempt !== state.attempt) return unchanged(state)
  switch (event.kind) {
    case 'start':
      return state.activity.at === 'off' ? round(state, input) : unchanged(state)
    case 'stop':
      return stopped(state)
    case 'time':
      return onTime(state, input)
    case 'template':
      return onTemplate(state, input)
    case 'force':
      return forced(state, input)
    default:
      return onAnswer(state, event, input)
  }
}

function onTime(state: ManagerState, input: StepInput): Step {
  const { activity } = state
  if (!('untilMs' in activity) || input.nowMs < activity.untilMs) return unchanged(state)
  switch (activity.at) {
    case 'rest':
      return round(state, input)
    case 'deadline':
      return request(state, 0, input)
    case 'pause':
      return request(state, activity.failedTries, input)
    case 'wait':
      return withCancel(state, failed(state, activity.failedTries, input))
  }
}

/** Returns the next action in the current state. */
function round(state: ManagerState, input: StepInput): Step {
  const { held, heldSinceMs, isForced } = state
  if (isForced || held === undefined || unmetBy(held, input.template) !== undefined)
    return request(state, 0, input)
  const drawnMs = rotationDeadlineMs(held, input.draw)
  const untilMs = heldSinceMs === undefined ? drawnMs : Math.max(drawnMs, restedMs(held, heldSinceMs))
  if (untilMs <= input.nowMs) return request(state, 0, input)
  return moved(state, { at: 'deadline', untilMs })
}

/** Requests a certificate with the current template. */
function request(state: ManagerState, failedTries: number, { nowMs, template }: StepInput): Step {
  if (template === undefined) return moved(state, { at: 'rest', untilMs: nowMs + restMs })
  const attempt = state.attempt + 1
  // client-go forgets a forced renewal when there is no template; kcert remembers it until it is done.
  const next = { ...state, attempt, isForced: false }
  return moved(next, { at: 'request', template, failedTries }, { do: 'request', attempt, template })
}

type Answer = Extract<ManagerEvent, { readonly attempt: number }>

function onAnswer(state: ManagerState, event: Answer, input: StepInput): Step {
  const { activity, attempt } = state
  if (event.kind === 'stored')
    return activity.at === 'store' ? renewed(state, event.certificate, input) : unchanged(state)
  if (event.kind === 'requested') return requested(state, input)
  if (!('failedTries' in activity) || activity.at !== answered[event.kind]) return unchanged(state)
  const { failedTries } = activity
  switch (event.kind) {
    case 'not-requested':
      return failed({ ...state, isServerHealthy: event.isServerHealthy }, failedTries, input)
    case 'issued':
      return moved(state, { at: 'store', failedTries }, { do: 'store', attempt })
    default:
      return failed(state, failedTries, input)
  }
}

/** The action that each result belongs to. */
const answered = {
  'not-requested': 'request',
  issued: 'wait',
  'not-issued': 'wait',
  'not-stored': 'store',
} as const

function requested(state: ManagerState, { nowMs }: StepInput): Step {
  const { activity, attempt } = state
  if (activity.at !== 'request') return unchanged(state)
  const { template, failedTries } = activity
  const waiting = { at: 'wait', untilMs: nowMs + certificateWaitMs, failedTries } as const
  return moved({ ...state, lastRequested: template }, waiting, { do: 'wait', attempt })
}

function renewed(state: ManagerState, certificate: HeldCertificate, { nowMs }: StepInput): Step {
  const before = state.held
  const usedSeconds = before === undefined ? {} : { usedSeconds: (nowMs - before.notBeforeMs) / 1000 }
  const next = { ...state, held: certificate, heldSinceMs: nowMs, isServerHealthy: true }
  return moved(next, { at: 'rest', untilMs: nowMs + restMs }, { do: 'tell-renewed', ...usedSeconds })
}

function failed(state: ManagerState, failedTries: number, { nowMs, draw }: StepInput): Step {
  const tries = failedTries + 1
  const untilMs = nowMs + pauseAfterMs(tries, draw)
  return moved(state, { at: 'pause', untilMs, failedTries: tries }, { do: 'tell-failed' })
}

function onTemplate(state: ManagerState, input: StepInput): Step {
  const { held, lastRequested, activity } = state
  const { template } = input
  if (unmetBy(held, template) === undefined || isSameTemplate(lastRequested, template))
    return unchanged(state)
  if (activity.at === 'deadline') return request(state, 0, input)
  if (activity.at === 'wait') return withCancel(state, failed(state, activity.failedTries, input))
  return unchanged(state)
}

function forced(state: ManagerState, input: StepInput): Step {
  const { activity } = state
  if (activity.at === 'deadline') return request({ ...state, isForced: true }, 0, input)
  if (activity.at === 'pause') return request(state, activity.failedTries, input)
  // The pending request is for the desired certificate.
  return activity.at === 'rest' || activity.at === 'off'
    ? unchanged({ ...state, isForced: true })
    : unchanged(state)
}

function stopped(state: ManagerState): Step {
  const { at } = state.activity
  const off = moved(state, { at: 'off' })
  return at === 'request' || at === 'wait' ? withCancel(state, off) : off
}

/** Adds a cancellation; later results of the attempt are ignored. */
function withCancel({ attempt }: ManagerState, { state, effects }: Step): Step {
  return { state: { ...state, attempt: attempt + 1 }, effects: [{ do: 'cancel', attempt }, ...effects] }
}

function unchanged(state: ManagerState): Step {
  return { state, effects: [] }
}

function moved(state: ManagerState, activity: Activity, ...effects: readonly Effect[]): Step {
  return { state: { ...state, activity }, effects }
}
