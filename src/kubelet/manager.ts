import {
  certificateWaitMs,
  type Draw,
  pauseAfterMs,
  restedMs,
  restMs,
  rotationDeadlineMs,
} from './schedule.ts'
import { type HeldCertificate, isSameTemplate, type Template, unmetBy } from './template.ts'

// A certificate's owner as a step function: what has happened, and when, leads to a new state and to what is to be done. Nothing is
// done here, and no time passes. The rules are those of client-go's certificate manager.

/** Between two steps. */
export interface ManagerState {
  readonly held: HeldCertificate | undefined
  /** When `held` came; undefined for one that was there at the start. */
  readonly heldSinceMs: number | undefined
  /** Renew as soon as there is a template, once. */
  readonly isForced: boolean
  /** What was asked for last. */
  readonly lastRequested: Template | undefined
  readonly isServerHealthy: boolean
  /** Of the request that is under way, or was last; answers to earlier ones are passed over. */
  readonly attempt: number
  readonly doing: Doing
}

export type Doing =
  | { readonly at: 'off' }
  /** A second, before it is seen anew what there is to do. */
  | { readonly at: 'rest'; readonly untilMs: number }
  /** The certificate is renewed then. */
  | { readonly at: 'deadline'; readonly untilMs: number }
  /** A try failed. */
  | { readonly at: 'pause'; readonly untilMs: number; readonly failedTries: number }
  | { readonly at: 'request'; readonly template: Template; readonly failedTries: number }
  | { readonly at: 'wait'; readonly untilMs: number; readonly failedTries: number }
  | { readonly at: 'store'; readonly failedTries: number }

export type ManagerEvent =
  | { readonly kind: 'start' }
  | { readonly kind: 'stop' }
  /** Time has passed. */
  | { readonly kind: 'time' }
  /** The template may be another. */
  | { readonly kind: 'template' }
  /** The operator wants a new certificate now. */
  | { readonly kind: 'force' }
  | { readonly kind: 'requested'; readonly attempt: number }
  | { readonly kind: 'not-requested'; readonly attempt: number; readonly isServerHealthy: boolean }
  | { readonly kind: 'issued'; readonly attempt: number }
  /** Denied, failed, deleted, or no certificate that can be used. */
  | { readonly kind: 'not-issued'; readonly attempt: number }
  | { readonly kind: 'stored'; readonly attempt: number; readonly certificate: HeldCertificate }
  | { readonly kind: 'not-stored'; readonly attempt: number }

export type Effect =
  /** Make a new key and a request, and send it. */
  | { readonly do: 'request'; readonly attempt: number; readonly template: Template }
  /** Wait for the certificate. */
  | { readonly do: 'wait'; readonly attempt: number }
  | { readonly do: 'cancel'; readonly attempt: number }
  | { readonly do: 'store'; readonly attempt: number }
  /** `usedSeconds`: how old the certificate before it was; absent for the first. */
  | { readonly do: 'tell-renewed'; readonly usedSeconds?: number }
  | { readonly do: 'tell-failed' }

/** The world at a step. */
export interface Moment {
  readonly nowMs: number
  /** Undefined while it is not known what to ask for, such as a node without addresses: nothing is asked for then. */
  readonly template: Template | undefined
  readonly draw: Draw
}

export interface Step {
  readonly state: ManagerState
  readonly effects: readonly Effect[]
}

/**
 * Returns the state before the start. `present` is what the store holds, expired or not; `forceRenewal` renews it at once, as is done with
 * a certificate that came from elsewhere.
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
    doing: { at: 'off' },
  }
}

/** Returns the certificate to use; an expired one is not offered. */
export function currentCertificate({ held }: ManagerState, nowMs: number): HeldCertificate | undefined {
  return held !== undefined && nowMs <= held.notAfterMs ? held : undefined
}

/** Returns when a step is due by the time alone; undefined while something else is waited for. */
export function wakesAtMs({ doing }: ManagerState): number | undefined {
  return 'untilMs' in doing ? doing.untilMs : undefined
}

/** Returns the new state, and the actions to take. An event that does not fit changes nothing. */
export function step(state: ManagerState, event: ManagerEvent, moment: Moment): Step {
  if ('attempt' in event && event.attempt !== state.attempt) return unchanged(state)
  switch (event.kind) {
    case 'start':
      return state.doing.at === 'off' ? round(state, moment) : unchanged(state)
    case 'stop':
      return stopped(state)
    case 'time':
      return onTime(state, moment)
    case 'template':
      return onTemplate(state, moment)
    case 'force':
      return forced(state, moment)
    default:
      return onAnswer(state, event, moment)
  }
}

function onTime(state: ManagerState, moment: Moment): Step {
  const { doing } = state
  if (!('untilMs' in doing) || moment.nowMs < doing.untilMs) return unchanged(state)
  switch (doing.at) {
    case 'rest':
      return round(state, moment)
    case 'deadline':
      return request(state, 0, moment)
    case 'pause':
      return request(state, doing.failedTries, moment)
    case 'wait':
      return withCancel(state, failed(state, doing.failedTries, moment))
  }
}

/** Sees what there is to do. */
function round(state: ManagerState, moment: Moment): Step {
  const { held, heldSinceMs, isForced } = state
  if (isForced || held === undefined || unmetBy(held, moment.template) !== undefined)
    return request(state, 0, moment)
  const drawnMs = rotationDeadlineMs(held, moment.draw)
  const untilMs = heldSinceMs === undefined ? drawnMs : Math.max(drawnMs, restedMs(held, heldSinceMs))
  if (untilMs <= moment.nowMs) return request(state, 0, moment)
  return moved(state, { at: 'deadline', untilMs })
}

/** Asks for a certificate by what the template says now. */
function request(state: ManagerState, failedTries: number, { nowMs, template }: Moment): Step {
  if (template === undefined) return moved(state, { at: 'rest', untilMs: nowMs + restMs })
  const attempt = state.attempt + 1
  // client-go forgets that it was forced also where there was no template to ask by; here it is remembered until it is done.
  const next = { ...state, attempt, isForced: false }
  return moved(next, { at: 'request', template, failedTries }, { do: 'request', attempt, template })
}

type Answer = Extract<ManagerEvent, { readonly attempt: number }>

function onAnswer(state: ManagerState, event: Answer, moment: Moment): Step {
  const { doing, attempt } = state
  if (event.kind === 'stored')
    return doing.at === 'store' ? renewed(state, event.certificate, moment) : unchanged(state)
  if (event.kind === 'requested') return requested(state, moment)
  if (!('failedTries' in doing) || doing.at !== answered[event.kind]) return unchanged(state)
  const { failedTries } = doing
  switch (event.kind) {
    case 'not-requested':
      return failed({ ...state, isServerHealthy: event.isServerHealthy }, failedTries, moment)
    case 'issued':
      return moved(state, { at: 'store', failedTries }, { do: 'store', attempt })
    default:
      return failed(state, failedTries, moment)
  }
}

/** What each answer is an answer to. */
const answered = {
  'not-requested': 'request',
  issued: 'wait',
  'not-issued': 'wait',
  'not-stored': 'store',
} as const

function requested(state: ManagerState, { nowMs }: Moment): Step {
  const { doing, attempt } = state
  if (doing.at !== 'request') return unchanged(state)
  const { template, failedTries } = doing
  const waiting = { at: 'wait', untilMs: nowMs + certificateWaitMs, failedTries } as const
  return moved({ ...state, lastRequested: template }, waiting, { do: 'wait', attempt })
}

function renewed(state: ManagerState, certificate: HeldCertificate, { nowMs }: Moment): Step {
  const before = state.held
  const usedSeconds = before === undefined ? {} : { usedSeconds: (nowMs - before.notBeforeMs) / 1000 }
  const next = { ...state, held: certificate, heldSinceMs: nowMs, isServerHealthy: true }
  return moved(next, { at: 'rest', untilMs: nowMs + restMs }, { do: 'tell-renewed', ...usedSeconds })
}

function failed(state: ManagerState, failedTries: number, { nowMs, draw }: Moment): Step {
  const tries = failedTries + 1
  const untilMs = nowMs + pauseAfterMs(tries, draw)
  return moved(state, { at: 'pause', untilMs, failedTries: tries }, { do: 'tell-failed' })
}

function onTemplate(state: ManagerState, moment: Moment): Step {
  const { held, lastRequested, doing } = state
  const { template } = moment
  if (unmetBy(held, template) === undefined || isSameTemplate(lastRequested, template))
    return unchanged(state)
  if (doing.at === 'deadline') return request(state, 0, moment)
  if (doing.at === 'wait') return withCancel(state, failed(state, doing.failedTries, moment))
  return unchanged(state)
}

function forced(state: ManagerState, moment: Moment): Step {
  const { doing } = state
  if (doing.at === 'deadline') return request({ ...state, isForced: true }, 0, moment)
  if (doing.at === 'pause') return request(state, doing.failedTries, moment)
  // The pending request is for the desired certificate.
  return doing.at === 'rest' || doing.at === 'off'
    ? unchanged({ ...state, isForced: true })
    : unchanged(state)
}

function stopped(state: ManagerState): Step {
  const { at } = state.doing
  const off = moved(state, { at: 'off' })
  return at === 'request' || at === 'wait' ? withCancel(state, off) : off
}

/** What is still to come of the attempt is passed over. */
function withCancel({ attempt }: ManagerState, { state, effects }: Step): Step {
  return { state: { ...state, attempt: attempt + 1 }, effects: [{ do: 'cancel', attempt }, ...effects] }
}

function unchanged(state: ManagerState): Step {
  return { state, effects: [] }
}

function moved(state: ManagerState, doing: Doing, ...effects: readonly Effect[]): Step {
  return { state: { ...state, doing }, effects }
}
