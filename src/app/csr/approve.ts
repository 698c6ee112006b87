import pMap from 'p-map'
import type { Context } from '../../cli/context.ts'
import { readText } from '../../cli/input.ts'
import { progressOn } from '../../cli/progress.ts'
import { canAsk, confirm } from '../../cli/prompts.ts'
import { type Acted, actOn, decidedObject, type Evaluated, foreseen } from '../../csr/approval/acting.ts'
import { decisionReport } from '../../csr/approval/decided.ts'
import type { DecisionReport } from '../../csr/approval/decision-report.ts'
import {
  type Act,
  type Evaluation,
  type Evaluator,
  evaluateByHand,
  evaluateByPolicy,
} from '../../csr/approval/evaluation.ts'
import type { ApprovalFacts } from '../../csr/approval/facts.ts'
import { isPending } from '../../csr/life.ts'
import { readSigningRequests } from '../../csr/manifest-reading.ts'
import { readRequests } from '../../csr/many-requests.ts'
import { signingRequestOfObject } from '../../csr/request-object.ts'
import type { RequestObject, RequestsApi } from '../../csr/requests-api.ts'
import type { SigningRequest } from '../../csr/signing-request.ts'
import { type ExitCode, exitCodeOf, exitCodes, worstExit } from '../../errors/codes.ts'
import { commandLine } from '../../errors/command-line.ts'
import { given } from '../../errors/given.ts'
import { KcertError } from '../../errors/kcert-error.ts'
import { policiesOf } from './policies.ts'

// `kcert csr approve` and `kcert csr deny`: select the requests, read them, decide, then write. Each step covers all requests.

/** The settings from the command line. */
export interface DecisionSettings {
  readonly names: readonly string[]
  readonly file: readonly string[] | undefined
  readonly selector: string | undefined
  readonly signer: string | undefined
  readonly policy: string | undefined
  readonly reason: string | undefined
  readonly message: string | undefined
  readonly dryRun: boolean
  readonly yes: boolean
  readonly force: boolean
  readonly concurrency: number
}

export interface DecisionPorts {
  readonly api: RequestsApi
  readonly facts: ApprovalFacts
  readonly context: Context
  /** Returns the text that the operator reads before confirming. */
  readonly propose: (report: DecisionReport) => Promise<string>
}

export interface DecisionAnswer {
  readonly report: DecisionReport
  readonly exit: ExitCode
  /** Whether the operator saw the requests and their rules before confirming. */
  readonly wasProposed: boolean
  /** For a dry run: the objects that would be sent, each with its new condition. */
  readonly wouldSend: readonly RequestObject[]
}

/** Approves or denies the requests that the command line selects. Returns the outcome of each. */
export async function decideRequests(
  act: Act,
  settings: DecisionSettings,
  ports: DecisionPorts,
): Promise<DecisionAnswer> {
  const { api, facts, context } = ports
  const policies = settings.policy === undefined ? undefined : await policiesOf(settings.policy, context)
  const evaluate: Evaluator =
    policies === undefined
      ? evaluateByHand(act, facts, settings.force)
      : evaluateByPolicy(act, policies, facts)
  const selected = await selectRequests(settings, ports)
  const all = { concurrency: settings.concurrency }

  const evaluating = progressOn(context, 'checked', selected.length)
  const evaluated = await pMap(
    selected,
    async (one): Promise<Acted | Evaluated> => {
      const result = 'outcome' in one ? one : { object: one, evaluation: await evaluate(one) }
      evaluating.step()
      return result
    },
    all,
  )
  evaluating.end()

  const by = policies === undefined ? 'manual' : 'policy'
  const plannedFor = (one: Acted | Evaluated): Acted => ('outcome' in one ? one : foreseen(one, act))
  const planned = evaluated.map(plannedFor)
  const report = (acted: readonly Acted[], dryRun: boolean) => decisionReport(acted, { act, by, dryRun })
  const todo = evaluated.filter(
    (one): one is Evaluated => !('outcome' in one) && one.evaluation.course === 'act',
  )
  const options = {
    act,
    evaluate,
    conditionFor: (evaluation: Evaluation) => conditionOf(act, settings, evaluation),
  }
  if (settings.dryRun) {
    const wouldSend = todo.map(({ object, evaluation }) => decidedObject(object, evaluation, options))
    return { ...answer(report(planned, true), settings, false), wouldSend }
  }
  const asks = todo.length > 0 && !settings.yes && canAsk(context)
  if (todo.length > 0 && !(await isAgreed(act, settings, todo.length, () => report(planned, true), ports))) {
    const left = planned.map((one) =>
      one.outcome.startsWith('would-') ? { ...one, outcome: 'skipped' as const, reason: 'declined' } : one,
    )
    return answer(report(left, false), settings, asks)
  }

  const breaker = circuitBreaker(Math.max(fewestUnanswered, settings.concurrency))
  const acting = progressOn(context, act === 'approve' ? 'approved' : 'denied', todo.length)
  const acted = await pMap(
    evaluated,
    async (one) => {
      if ('outcome' in one || one.evaluation.course !== 'act') return plannedFor(one)
      const result = breaker.isOpen() ? untried(plannedFor(one)) : await actOn(api, one, options)
      breaker.note(result.error?.code === 'KCERT_UNREACHABLE')
      acting.step()
      return result
    },
    all,
  )
  acting.end()
  return answer(report(acted, false), settings, asks)
}

const fewestUnanswered = 3

/** Opens after this many requests in a row without an answer, so that the rest do not each wait for a timeout. */
function circuitBreaker(limit: number): { note(isUnanswered: boolean): void; isOpen(): boolean } {
  let unanswered = 0
  return {
    note(isUnanswered) {
      unanswered = isUnanswered ? unanswered + 1 : 0
    },
    isOpen: () => unanswered >= limit,
  }
}

function untried(planned: Acted): Acted {
  const reason = 'not tried, because the API server could not be reached for the previous requests'
  const error = new KcertError('KCERT_UNREACHABLE', reason, {
    fix: 'run the same command again, which is safe',
  })
  return { ...planned, outcome: 'failed', reason, error }
}

/** Throws KCERT_USAGE if the settings select nothing, or contradict each other. */
export function checkSettings(
  act: Act,
  { names, file, selector, signer, policy, reason }: DecisionSettings,
): void {
  if (reason !== undefined && !/^[A-Za-z](?:[A-Za-z0-9_,:]*[A-Za-z0-9_])?$/.test(reason))
    throw new KcertError('KCERT_USAGE', `invalid --reason "${reason}"`, {
      why: 'the reason of a condition is in CamelCase, such as Ticket4711; --message takes free text',
      next: commandLine`kcert csr ${act} --help`,
    })
  const means = [names.length, file?.length, selector, signer, policy]
  if (means.some(Boolean)) return
  throw new KcertError('KCERT_USAGE', 'no request given', {
    why: 'name requests, or select them with -f, -l, --signer or --policy',
    next: 'kcert csr list --pending',
  })
}

/** Returns the selected objects, each once, in the order of the command line. Missing objects already have an outcome. */
async function selectRequests(
  { names, file = [], selector, signer, policy, concurrency }: DecisionSettings,
  { api, context }: DecisionPorts,
): Promise<(RequestObject | Acted)[]> {
  const found = new Map<string, RequestObject | Acted>()
  const wanted: { name: string; expected?: SigningRequest; source?: string }[] = names.map((name) => ({
    name,
  }))
  for (const source of file) wanted.push(...(await expectedIn(source, context)))
  const objects = await readRequests(
    api,
    wanted.map(({ name }) => name),
    { concurrency },
  )
  for (const [index, { name, expected, source }] of wanted.entries()) {
    const object = objects[index]
    const difference = expected && object && differenceFromFile(expected, object)
    if (object === undefined)
      found.set(name, { name, outcome: 'not-found', reason: 'no CertificateSigningRequest of this name' })
    else if (difference === undefined) found.set(name, object)
    else found.set(name, { name, outcome: 'changed', reason: `${difference} ${source}`, object })
  }
  if (selector !== undefined || signer !== undefined || (policy !== undefined && wanted.length === 0)) {
    const selection = given({ labelSelector: selector, signerName: signer })
    for await (const object of api.list(selection)) {
      const name = object.metadata.name ?? ''
      if (!found.has(name) && isPending(object)) found.set(name, object)
    }
  }
  return [...found.values()]
}

async function expectedIn(
  source: string,
  context: Context,
): Promise<{ name: string; expected: SigningRequest; source: string }[]> {
  const requests = await readSigningRequests(await readText(source, context))
  const place = source === '-' ? 'standard input' : source
  if (requests.length === 0)
    throw new KcertError('KCERT_MANIFEST_MALFORMED', `${place} contains no CertificateSigningRequest`, {
      next: 'kubectl get csr -o yaml > requests.yaml',
    })
  return requests.map((expected) => {
    if (expected.name !== undefined) return { name: expected.name, expected, source: place }
    throw new KcertError('KCERT_USAGE', `a request in ${place} has no name`, {
      why: 'the API server chose one when the object was created (generateName)',
      next: 'kcert csr list --pending',
    })
  })
}

/** Returns how the object differs from the file. Fields that the file does not set may have any value. */
function differenceFromFile(expected: SigningRequest, object: RequestObject): string | undefined {
  const now = signingRequestOfObject(object)
  const isSame = Buffer.compare(expected.request ?? Buffer.of(), now.request ?? Buffer.of()) === 0
  if (expected.request === undefined || !isSame) return 'its request differs from'
  if (expected.signerName !== now.signerName) return 'its signerName differs from'
  if (JSON.stringify(expected.usages) !== JSON.stringify(now.usages)) return 'its usages differ from'
  if (expected.expirationSeconds !== now.expirationSeconds) return 'its expirationSeconds differs from'
  return expected.uid !== undefined && expected.uid !== now.uid ? 'its UID differs from' : undefined
}

/**
 * Returns true if no confirmation is needed, or the operator confirms. Throws KCERT_USAGE if there is no terminal to confirm on.
 */
async function isAgreed(
  act: Act,
  settings: DecisionSettings,
  count: number,
  plan: () => DecisionReport,
  { context, propose }: DecisionPorts,
): Promise<boolean> {
  if (settings.yes) return true
  if (!canAsk(context)) {
    const isSelection = settings.selector !== undefined || settings.signer !== undefined
    // The operator named each request, or a policy decides: that is already a decision.
    if (settings.policy !== undefined || !isSelection) return true
    throw new KcertError(
      'KCERT_USAGE',
      `${count} requests would be ${decided[act]}, and there is no terminal to confirm on`,
      {
        why: 'a selection may contain more than you expect; check it with --dry-run, then add --yes',
        next: 'kcert csr list --pending',
      },
    )
  }
  context.stderr.write(await propose(plan()))
  const what = `${count.toLocaleString('en')} request${count === 1 ? '' : 's'}`
  return confirm(context, `${act === 'approve' ? 'Approve' : 'Deny'} ${what}? You cannot undo this.`)
}

const decided = { approve: 'approved', deny: 'denied' } as const

function conditionOf(act: Act, settings: DecisionSettings, { verdict, reason }: Evaluation) {
  const command = commandLine`kcert csr ${act}`
  const byPolicy = settings.policy !== undefined
  const words = { approve: 'Approved', deny: 'Denied' } as const
  return {
    reason: settings.reason ?? `${words[act]}By${byPolicy ? 'Policy' : 'Operator'}`,
    message: settings.message ?? (byPolicy ? `${command}: ${verdict.policy}: ${reason}` : `by ${command}`),
  }
}

function answer(report: DecisionReport, settings: DecisionSettings, wasProposed: boolean): DecisionAnswer {
  return { report, exit: exitOf(report, settings), wasProposed, wouldSend: [] }
}

/** Returns the exit code. A request that was not named and has no policy does not change it. */
function exitOf({ action, requests }: DecisionReport, settings: DecisionSettings): ExitCode {
  const isNamed = settings.names.length > 0 || (settings.file?.length ?? 0) > 0
  const codes = requests.map(({ outcome, policy, error }): ExitCode => {
    if (error !== undefined) return exitCodeOf(error.code)
    if (outcome === 'refused' || outcome === 'changed') return exitCodes.refused
    if (outcome !== 'deleted' && outcome !== 'not-found' && outcome !== 'skipped') return exitCodes.done
    const isExpected =
      isNamed || settings.policy === undefined || (action === 'approve' && policy !== undefined)
    return isExpected ? exitCodes.no : exitCodes.done
  })
  return worstExit(codes)
}
