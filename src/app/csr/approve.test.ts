import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setImmediate as turn } from 'node:timers/promises'
import { afterAll, describe, expect, test } from 'vitest'
import { nodeNames, requestPem, servingDescription } from '../../../test/csr/made-requests.ts'
import { fakeFacts } from '../../../test/fakes/approval-facts.ts'
import { type RequestsInMemory, requestsInMemory } from '../../../test/fakes/requests-in-memory.ts'
import { keys, terminalContext } from '../../../test/fakes/terminal-context.ts'
import type { DecisionReport } from '../../csr/approval/decision-report.ts'
import type { Act } from '../../csr/approval/evaluation.ts'
import type { RequestObject } from '../../csr/requests-api.ts'
import { KcertError } from '../../errors/kcert-error.ts'
import { checkSettings, type DecisionSettings, decideRequests } from './approve.ts'

// The meaning of a command line, its effect, and its exit code.

const folder = mkdtempSync(join(tmpdir(), 'kcert-decide-'))
afterAll(() => rmSync(folder, { recursive: true }))

const addresses = [
  ...nodeNames.dns.map((address) => ({ type: 'InternalDNS', address })),
  ...nodeNames.ip.map((address) => ({ type: 'InternalIP', address })),
]
const facts = fakeFacts({
  nodes: [{ name: 'node-1', addresses, isControlPlane: false }],
  addresses: { apiServers: [], serviceCidrs: ['10.96.0.0/12'] },
})
const request = Buffer.from(requestPem(servingDescription())).toString('base64')

function serving(name: string, spec: Partial<RequestObject['spec']> = {}): RequestObject {
  return {
    apiVersion: 'certificates.k8s.io/v1',
    kind: 'CertificateSigningRequest',
    metadata: { name },
    spec: {
      request,
      signerName: 'kubernetes.io/kubelet-serving',
      usages: ['digital signature', 'server auth'],
      username: 'system:node:node-1',
      groups: ['system:nodes', 'system:authenticated'],
      ...spec,
    },
  }
}
const strange = serving('strange', { signerName: 'example.com/own' })
const wrong = serving('wrong', { username: 'ann' })

const nothing: DecisionSettings = {
  names: [],
  file: undefined,
  selector: undefined,
  signer: undefined,
  policy: undefined,
  reason: undefined,
  message: undefined,
  dryRun: false,
  yes: false,
  force: false,
  concurrency: 1,
}

async function decided(
  api: RequestsInMemory,
  settings: Partial<DecisionSettings>,
  {
    act = 'approve',
    context = terminalContext({ input: false }).context,
  }: { act?: Act; context?: ReturnType<typeof terminalContext>['context'] } = {},
) {
  const propose = async ({ dryRun, requests }: DecisionReport) =>
    `proposed${dryRun ? '' : ' (written)'}: ${requests.map(({ name, outcome }) => `${name} ${outcome}`)}\n`
  const { report, exit, wasProposed, wouldSend } = await decideRequests(
    act,
    { ...nothing, ...settings },
    { api, facts, context, propose },
  )
  return {
    report,
    exit,
    wasProposed,
    wouldSend,
    outcomes: report.requests.map(({ name, outcome }) => `${name} ${outcome}`),
  }
}

function clusterOf(...objects: RequestObject[]): RequestsInMemory {
  const api = requestsInMemory()
  for (const object of objects) api.put(object)
  return api
}
const settled = (name: string, type: string): RequestObject => ({
  ...serving(name),
  status: { conditions: [{ type, status: 'True' }] },
})
const conditionOf = (api: RequestsInMemory, name: string) => api.peek(name)?.status?.conditions?.[0]

describe('selection', () => {
  const all = () => clusterOf(serving('a'), settled('b', 'Denied'), strange)

  test.each<[Partial<DecisionSettings>, string[], number]>([
    [{ names: ['a'] }, ['a approved'], 0],
    [{ names: ['a', 'none'] }, ['a approved', 'none not-found'], 3],
    [{ names: ['b'] }, ['b skipped'], 3],
    [{ names: ['a', 'a'] }, ['a approved'], 0],
    [{ names: ['b'], signer: 'kubernetes.io/kubelet-serving', yes: true }, ['b skipped', 'a approved'], 3],
    [{ signer: 'kubernetes.io/kubelet-serving', yes: true }, ['a approved'], 0],
    [{ signer: 'example.org/none' }, [], 0],
    [{ policy: 'builtin' }, ['a approved', 'strange skipped'], 0],
    [{ policy: 'kubelet-serving,kubelet-client' }, ['a approved', 'strange skipped'], 0],
    [{ policy: 'kubelet-client' }, ['a skipped', 'strange skipped'], 0],
    [{ policy: 'kubelet-serving', names: ['strange'] }, ['strange skipped'], 3],
    [{ yes: true }, [], 0],
  ])('%j: %j, exit code %i', async (settings, outcomes, exit) => {
    expect(await decided(all(), settings)).toMatchObject({ outcomes, exit })
  })

  test('does not count an object that is being deleted as pending', async () => {
    const going = {
      ...serving('going'),
      metadata: { name: 'going', deletionTimestamp: '2026-01-01T00:00:00Z' },
    }
    expect(await decided(clusterOf(going), { policy: 'builtin' })).toMatchObject({ outcomes: [], exit: 0 })
  })

  test('passes label selectors to the API server', async () => {
    const api = clusterOf()
    await expect(decided(api, { selector: 'a=b' })).rejects.toThrow('label selectors are not in this fake')
  })

  test('reads a policy file if one of several names is not a built-in policy', async () => {
    await expect(decided(all(), { policy: 'kubelet-serving,none.yaml' })).rejects.toMatchObject({
      code: 'KCERT_FILE_NOT_FOUND',
      message: expect.stringContaining('kubelet-serving,none.yaml'),
    })
  })

  test('reads at most --concurrency requests at the same time', async () => {
    const api = clusterOf(...['a', 'b', 'c'].map((name) => serving(name)))
    let running = 0
    const peaks: number[] = []
    const get: RequestsInMemory['get'] = async (name) => {
      peaks.push(++running)
      await turn()
      running--
      return api.get(name)
    }
    await decided({ ...api, get }, { names: ['a', 'b', 'c'], dryRun: true, concurrency: 2 })
    expect(peaks).toEqual([1, 2, 2])
  })

  test('reads a policy file, and reports the policy that decided', async () => {
    const path = join(folder, 'policy.yaml')
    writeFileSync(
      path,
      'apiVersion: kcert/v1\nkind: ApprovalPolicy\nrules:\n- {builtin: kubelet-serving, name: ours}\n',
      { mode: 0o600 },
    )
    const api = all()
    const { report, outcomes } = await decided(api, { policy: path })
    expect(outcomes).toEqual(['a approved', 'strange skipped'])
    expect([report.by, report.requests[0]!.policy]).toEqual(['policy', 'ours'])
    expect(conditionOf(api, 'a')).toEqual({
      type: 'Approved',
      status: 'True',
      reason: 'ApprovedByPolicy',
      message: 'kcert csr approve: ours: all rules of ours are met',
    })
  })

  test.each<[Partial<DecisionSettings>, Act, string]>([
    [{}, 'approve', 'kcert csr list --pending'],
    [{ names: [], file: [] }, 'deny', 'kcert csr list --pending'],
  ])('rejects settings that select nothing: %j', (settings, act, next) => {
    expect(() => checkSettings(act, { ...nothing, ...settings })).toThrow(
      expect.objectContaining({ code: 'KCERT_USAGE', message: 'no request given', next }),
    )
  })

  test.each<Partial<DecisionSettings>>([
    { names: ['a'] },
    { file: ['a'] },
    { selector: 'a' },
    { signer: 'a' },
    { policy: 'a' },
  ])('accepts settings with %j', (settings) => {
    checkSettings('approve', { ...nothing, ...settings })
  })

  test.each([
    ['Ticket4711', true],
    ['A', true],
    ['A,b:c_d', true],
    ['', false],
    ['7A', false],
    ['A b', false],
    ['A:', false],
    ['A,', false],
    ['-A', false],
  ])('--reason %j is a valid reason: %s', (reason, isWord) => {
    const check = () => checkSettings('approve', { ...nothing, names: ['a'], reason })
    if (isWord) check()
    else
      expect(check).toThrow(
        expect.objectContaining({
          code: 'KCERT_USAGE',
          message: `invalid --reason "${reason}"`,
          why: expect.stringContaining('Ticket4711'),
        }),
      )
  })
})

describe('manifest', () => {
  let count = 0
  const written = (object: unknown): string => {
    const path = join(folder, `${++count}.json`)
    writeFileSync(path, JSON.stringify(object))
    return path
  }
  const changed = (spec: Partial<RequestObject['spec']>, uid?: string): unknown => {
    const object = serving('a', spec)
    return uid === undefined ? object : { ...object, metadata: { name: 'a', uid } }
  }
  const other = Buffer.from(requestPem({ subject: { commonName: 'x' } })).toString('base64')

  test('selects an identical request', async () => {
    const files = [written(serving('a')), written(changed({}, 'u'))]
    for (const file of [files, ...files.map((one) => [one])]) {
      const api = clusterOf({ ...serving('a'), metadata: { name: 'a', uid: 'u' } })
      expect(await decided(api, { file })).toMatchObject({ outcomes: ['a approved'], exit: 0 })
      expect(await decided(clusterOf(), { file })).toMatchObject({ outcomes: ['a not-found'], exit: 3 })
    }
  })

  test('names its requests: one that the policy skips makes the exit code 3', async () => {
    const settings = { file: [written(strange)], policy: 'builtin' }
    expect(await decided(clusterOf(strange), settings)).toMatchObject({
      outcomes: ['strange skipped'],
      exit: 3,
    })
  })

  test('is refused if neither the file nor the object has a readable request', async () => {
    const unreadable = serving('a', { request: '?' })
    const { report } = await decided(clusterOf(unreadable), { file: [written(unreadable)], force: true })
    expect(report.requests[0]).toMatchObject({
      outcome: 'changed',
      reason: expect.stringMatching(/^its request differs from /),
    })
  })

  test.each<[unknown, string]>([
    [changed({ request: other }), 'its request differs from'],
    [changed({ request: '?' }), 'its request differs from'],
    [changed({ signerName: 'a.b/c' }), 'its signerName differs from'],
    [changed({ usages: ['server auth', 'digital signature'] }), 'its usages differ from'],
    [changed({ expirationSeconds: 600 }), 'its expirationSeconds differs from'],
    [changed({}, 'another'), 'its UID differs from'],
  ])('is refused if it differs from the request, no. %#: %s', async (object, reason) => {
    const path = written(object)
    const { report, outcomes, exit } = await decided(clusterOf(serving('a')), { file: [path] })
    expect([outcomes, exit]).toEqual([['a changed'], 5])
    expect(report.requests[0]!.reason).toBe(`${reason} ${path}`)
  })

  test('is refused without a request', async () => {
    const path = written({ kind: 'Secret' })
    await expect(decided(clusterOf(), { file: [path] })).rejects.toMatchObject({
      code: 'KCERT_MANIFEST_MALFORMED',
      message: `${path} contains no CertificateSigningRequest`,
      next: 'kubectl get csr -o yaml > requests.yaml',
    })
  })

  test('is refused without a name', async () => {
    const path = written({ ...serving('a'), metadata: { generateName: 'a-' } })
    await expect(decided(clusterOf(), { file: [path] })).rejects.toMatchObject({
      code: 'KCERT_USAGE',
      message: `a request in ${path} has no name`,
      next: 'kcert csr list --pending',
    })
  })

  test('is also read from standard input, and named so in messages', async () => {
    const { context } = terminalContext({ input: false })
    ;(context.stdin as unknown as { end(text: string): void }).end('kind: Secret\n')
    await expect(decided(clusterOf(), { file: ['-'] }, { context })).rejects.toMatchObject({
      message: 'standard input contains no CertificateSigningRequest',
    })
  })
})

describe('confirmation', () => {
  test('a dry run does not prompt or write', async () => {
    const api = clusterOf(serving('a'), wrong)
    const { report, outcomes, wasProposed } = await decided(api, { names: ['a', 'wrong'], dryRun: true })
    expect([outcomes, wasProposed]).toEqual([['a would-approve', 'wrong refused'], false])
    expect([report.dryRun, report.by, report.action]).toEqual([true, 'manual', 'approve'])
    expect(api.writes).toEqual([])
    const denied = await decided(api, { names: ['a'], dryRun: true }, { act: 'deny' })
    expect(denied.outcomes).toEqual(['a would-deny'])
  })

  test.each<[Act, string]>([
    ['approve', '2 requests would be approved, and there is no terminal to confirm on'],
    ['deny', '2 requests would be denied, and there is no terminal to confirm on'],
  ])('a selection needs a terminal to confirm on: %s', async (act, message) => {
    const api = clusterOf(serving('a'), serving('b'))
    await expect(decided(api, { signer: 'kubernetes.io/kubelet-serving' }, { act })).rejects.toMatchObject({
      code: 'KCERT_USAGE',
      message,
      why: expect.stringContaining('--dry-run'),
    })
    const labelled: RequestsInMemory = { ...api, list: () => api.list() }
    await expect(decided(labelled, { selector: 'a=b' }, { act })).rejects.toMatchObject({ message })
    expect(api.writes).toEqual([])
  })

  test('a selection decided by a policy does not prompt', async () => {
    const settings = { signer: 'kubernetes.io/kubelet-serving', policy: 'builtin' }
    expect(await decided(clusterOf(serving('a')), settings)).toMatchObject({ outcomes: ['a approved'] })
  })

  test.each([
    ['approve', ['y', keys.enter], ['a approved'], 'Approve 1 request? You cannot undo this. (y/N)', 0],
    ['deny', ['y', keys.enter], ['a denied'], 'Deny 1 request? You cannot undo this. (y/N)', 0],
    ['approve', [keys.enter], ['a skipped'], 'Approve 1 request?', 3],
    ['approve', [keys.interrupt], ['a skipped'], 'Approve 1 request?', 3],
  ] as const)('at a terminal, %s %j: %j', async (act, typed, outcomes, question, exit) => {
    const terminal = terminalContext()
    const api = clusterOf(serving('a'))
    const answer = decided(api, { names: ['a'] }, { act, context: terminal.context })
    await terminal.typesAt('(y/N)', ...typed)
    const { report, ...rest } = await answer
    expect(rest).toEqual({ outcomes, exit, wasProposed: true, wouldSend: [] })
    expect(terminal.shown()).toMatch(new RegExp(`^proposed: a would-${act}\n`))
    expect(terminal.shown()).toContain(question)
    expect(report.dryRun).toBe(false)
    if (exit !== 0) expect([api.writes, report.requests[0]!.reason]).toEqual([[], 'declined'])
  })

  test.each<Partial<DecisionSettings>>([
    { names: ['a'], yes: true },
    { names: ['wrong'], yes: true },
    { names: ['wrong'] },
  ])('does not prompt at a terminal with --yes, or if there is nothing to do: %j', async (settings) => {
    const { context, shown } = terminalContext()
    const { wasProposed } = await decided(clusterOf(serving('a'), wrong), settings, { context })
    expect([shown(), wasProposed]).toEqual(['', false])
  })

  test('proposes nothing without a terminal', async () => {
    expect(await decided(clusterOf(serving('a')), { names: ['a'] })).toMatchObject({ wasProposed: false })
  })

  test('skips only the requests that it would decide after no, and exits with 3', async () => {
    const { context, shown, typesAt } = terminalContext()
    const api = clusterOf(serving('a'), serving('b'), settled('c', 'Denied'))
    const settings = { names: ['c'], signer: 'kubernetes.io/kubelet-serving' }
    const answer = decided(api, settings, { act: 'deny', context })
    await typesAt('(y/N)', keys.enter)
    const { outcomes, exit } = await answer
    expect([outcomes, exit]).toEqual([['c already-decided', 'a skipped', 'b skipped'], 3])
    expect(shown()).toContain('Deny 2 requests? You cannot undo this.')
  })

  test('exits with 3 if the operator does not confirm a selection', async () => {
    const { context, typesAt } = terminalContext()
    const answer = decided(clusterOf(strange), { signer: 'example.com/own' }, { act: 'deny', context })
    await typesAt('(y/N)', keys.enter)
    expect(await answer).toMatchObject({ outcomes: ['strange skipped'], exit: 3 })
  })
})

describe('writes', () => {
  test('a dry run returns the objects it would send, each with its condition, and writes nothing', async () => {
    const api = clusterOf(serving('a'), settled('b', 'Denied'))
    const { wouldSend } = await decided(api, { names: ['a', 'b'], dryRun: true, message: 'M' })
    expect(wouldSend).toMatchObject([
      {
        metadata: { name: 'a' },
        status: {
          conditions: [{ type: 'Approved', status: 'True', reason: 'ApprovedByOperator', message: 'M' }],
        },
      },
    ])
    expect(api.writes).toEqual([])
  })

  test.each<[Act, Partial<DecisionSettings>, object]>([
    ['approve', {}, { type: 'Approved', reason: 'ApprovedByOperator', message: 'by kcert csr approve' }],
    ['deny', {}, { type: 'Denied', reason: 'DeniedByOperator', message: 'by kcert csr deny' }],
    ['approve', { reason: 'R', message: 'M' }, { type: 'Approved', reason: 'R', message: 'M' }],
  ])('%s %j: %j', async (act, settings, condition) => {
    const api = clusterOf(serving('a'))
    await decided(api, { names: ['a'], ...settings }, { act })
    expect(conditionOf(api, 'a')).toEqual({ status: 'True', ...condition })
  })

  test('refuses to approve dangerous requests by name, except with --force', async () => {
    const api = clusterOf(wrong)
    expect(await decided(api, { names: ['wrong'] })).toMatchObject({ outcomes: ['wrong refused'], exit: 5 })
    expect(await decided(api, { names: ['wrong'], force: true })).toMatchObject({
      outcomes: ['wrong approved'],
      exit: 0,
    })
  })

  test.each<[string, Act, number]>([
    ['wrong', 'approve', 3],
    ['strange', 'approve', 0],
    ['wrong', 'deny', 0],
  ])('with a policy that skips %s, %s exits with %i', async (name, act, exit) => {
    const object = name === 'wrong' ? wrong : strange
    expect(await decided(clusterOf(object), { policy: 'builtin' }, { act })).toMatchObject({
      outcomes: [`${name} skipped`],
      exit,
    })
  })

  test('skips the rest after three unanswered requests in a row, and resets the count after an answer', async () => {
    const names = ['a', 'b', 'c', 'd', 'e', 'wrong']
    const error = new KcertError('KCERT_UNREACHABLE', 'no answer')
    const run = async (isCut: (write: number) => boolean) => {
      const api = clusterOf(...names.slice(0, -1).map((name) => serving(name)), wrong)
      let write = 0
      api.fault = (call) =>
        call === 'replaceApproval' && isCut(++write) ? { error, when: 'before' } : undefined
      return { ...(await decided(api, { names })), tried: () => write }
    }
    const silent = await run(() => true)
    expect(silent.outcomes[5]).toBe('wrong refused')
    expect(silent.report.requests.slice(0, 5).map(({ reason }) => reason)).toEqual([
      ...['no answer', 'no answer', 'no answer'],
      ...Array(2).fill('not tried, because the API server could not be reached for the previous requests'),
    ])
    expect([silent.exit, silent.tried()]).toEqual([4, 3])
    expect(silent.report.requests[4]).toMatchObject({
      outcome: 'failed',
      error: { code: 'KCERT_UNREACHABLE', fix: 'run the same command again, which is safe' },
    })
    const flaky = await run((write) => write !== 3)
    expect(flaky.outcomes).toEqual([
      'a failed',
      'b failed',
      'c approved',
      'd failed',
      'e failed',
      'wrong refused',
    ])
    expect(flaky.tried()).toBe(5)
  })

  test('reports a request that was deleted after the check, and exits with 3', async () => {
    const api = clusterOf(serving('a'))
    let reads = 0
    api.meanwhile = (call) => {
      if (call === 'get' && ++reads === 2) api.remove('a')
    }
    expect(await decided(api, { names: ['a'] })).toMatchObject({ outcomes: ['a deleted'], exit: 3 })
  })

  test.each<[Act, string, boolean]>([
    ['approve', 'approved', false],
    ['deny', 'denied', true],
  ])('reports progress on standard error for many requests: %s', async (act, done, output) => {
    const { context, shown } = terminalContext({ input: false, output })
    const names = Array.from({ length: 100 }, (_, at) => `n${at}`)
    const api = clusterOf(...names.map((name) => serving(name)))
    await decided(api, { names, concurrency: 16 }, { act, context })
    const lineEnd = output ? '\r\u001b[K' : '\n'
    const next = output ? `\r\u001b[K${done} 1 of 100` : `${done} 10 of 100`
    expect(shown()).toContain(`checked 100 of 100${lineEnd}${next}`)
    expect(shown().endsWith(`${done} 100 of 100${lineEnd}`)).toBe(true)
  })
})
