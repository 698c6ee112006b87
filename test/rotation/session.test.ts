import { expect, test } from 'vitest'
import { type Hook, hookRunner } from '../../src/app/rotate-ca/hooks.ts'
import { exitCodes } from '../../src/errors/codes.ts'
import { KcertError } from '../../src/errors/kcert-error.ts'
import { renderStatusHtml } from '../../src/output/rotation/html.ts'
import { renderPlan } from '../../src/output/rotation/plan.ts'
import { renderRun } from '../../src/output/rotation/run.ts'
import { renderProgress, renderStatus } from '../../src/output/rotation/status.ts'
import { renderVerification } from '../../src/output/rotation/verification.ts'
import { readJournal } from '../../src/rotation/journal.ts'
import { expectPageOfKilledRotation } from '../reports/page-rules.ts'
import { violations } from '../scripts/schemas.ts'
import { SimulatedOperator, wide } from './operator.ts'
import { Killed, Scene } from './scene.ts'

// The commands of rotate-ca on the simulated cluster: what an operator reads and answers, and what comes of it.

const small = { controlPlanes: 2, workers: 1 } as const
const yes = { yes: true } as const
const upTo = (last: number): number[] => Array.from({ length: last }, (_, index) => index + 1)

async function stop(work: Promise<unknown>): Promise<KcertError> {
  try {
    await work
  } catch (error) {
    if (error instanceof KcertError) return error
    throw error
  }
  throw new Error('nothing stopped it')
}

function golden(name: string): string {
  return `../golden/rotation-${name}.txt`
}

test('before anything is done: the phases, and the command that begins', async () => {
  const operator = new SimulatedOperator(new Scene(small))
  const status = await operator.command((session) => session.status())
  expect(violations('RotationStatus', status)).toEqual([])
  expect(status).toMatchObject({ state: 'not-begun', next: { command: 'kcert rotate-ca --phase 1' } })
  await expect(renderProgress(status, wide)).toMatchFileSnapshot(golden('not-begun'))
})

test('the whole plan names servers, clients, changes, restarts and affected objects, and no secret', async () => {
  const scene = new Scene(small)
  scene.cluster.startPod(undefined, 'lonely')
  const operator = new SimulatedOperator(scene)
  const files = scene.files()
  const plan = await operator.command((session) => session.plan())
  expect(violations('RotationPlan', plan)).toEqual([])
  expect(plan.blockers).toEqual([])
  expect(plan.restarts.filter(({ process }) => process.endsWith('/kube-apiserver'))).toEqual([])
  expect(plan.blastRadius).toMatchObject({
    joinTokens: ['abcdef'],
    foreign: [{ presenter: 'service/default/agg' }],
    caBundles: [{ id: 'APIService v1.agg' }, { id: 'ValidatingWebhookConfiguration guard' }],
  })
  expect(plan.blastRadius.barePods).toHaveLength(1)
  await expect(renderPlan(plan, wide)).toMatchFileSnapshot(golden('plan'))
  expect(scene.files()).toEqual(files)
  expect(scene.journal.text).toBe('')
})

test('the plan names what kubectl apply would bring back, once for each object, and says what to do', async () => {
  const scene = new Scene(small)
  const { cluster } = scene
  const handler = cluster.objects.get('APIService v1.agg')!
  handler.data = { ...handler.data, applied: [cluster.oldCa.digest] }
  const guard = cluster.objects.get('ValidatingWebhookConfiguration guard')!
  guard.data = { ...guard.data, applied: [cluster.oldFrontProxyCa.digest] }
  const operator = new SimulatedOperator(scene)
  const plan = await operator.command((session) => session.plan())
  expect(violations('RotationPlan', plan)).toEqual([])
  expect(plan.blastRadius.appliedBundles).toEqual(['APIService v1.agg'])
  expect(renderPlan(plan, wide)).toContain(
    '  manifests applied with kubectl contain the old CA and would restore it: APIService v1.agg. Put both CAs into their caBundle after phase 9, and only the new CA after phase 12\n',
  )
})

test('a dry run of a phase is what a run does then, and writes nothing', async () => {
  const scene = new Scene(small)
  const operator = new SimulatedOperator(scene)
  await operator.command((session) => session.run([1]), yes)
  const [files, journal] = [scene.files(), scene.journal.text]
  const plan = await operator.command((session) => session.dryRun([2]))
  expect(violations('RotationPlan', plan)).toEqual([])
  await expect(renderPlan(plan, wide)).toMatchFileSnapshot(golden('dry-run-2'))
  expect([scene.files(), scene.journal.text]).toEqual([files, journal])
  operator.stderr = ''
  await operator.command((session) => session.run([2]), yes)
  await expect(operator.stderr.replace(/ \(\d+(\.\d)? s\)/g, ' (… s)')).toMatchFileSnapshot(
    golden('progress-2'),
  )
  const done = readJournal(scene.journal.text).flatMap((entry) =>
    entry.kind === 'done' && entry.phase === 2 ? [entry.what] : [],
  )
  const planned = plan.phases[0]!.steps.filter(({ kind }) => kind !== 'wait' && kind !== 'probe')
  expect(done).toEqual(planned.map(({ what }) => what))
})

test('all twelve phases: no client fails, and what holds already is not done again', async () => {
  const scene = new Scene(small)
  const operator = new SimulatedOperator(scene)
  const first = await operator.command((session) => session.run(upTo(10)), yes)
  expect(first.exit).toBe(exitCodes.done)
  scene.cluster.reissueHandlers(scene.newCa())
  scene.clients.expectsBridge = false
  const { report, exit } = await operator.command((session) => session.run(upTo(12)), yes)
  expect(exit).toBe(exitCodes.done)
  expect(violations('RotationRun', report)).toEqual([])
  expect(report.next).toBeUndefined()
  expect(scene.clients.failures).toEqual([])
  expect(scene.remainsOfOldCa()).toEqual([])
  await expect(renderRun(report, wide).replace(/ (\d+ (?:s|min)|a moment) +/g, ' … ')).toMatchFileSnapshot(
    golden('run'),
  )
  const status = await operator.command((session) => session.status())
  expect(violations('RotationStatus', status)).toEqual([])
  expect(status.state).toBe('finished')
  const verification = await operator.command((session) => session.verify())
  expect(violations('RotationVerification', verification)).toEqual([])
  expect(verification.checks.filter(({ ok }) => !ok)).toEqual([])
})

test('a phase before which another must hold is refused by name, and nothing is done', async () => {
  const scene = new Scene(small)
  const operator = new SimulatedOperator(scene)
  await operator.command((session) => session.run([1]), yes)
  const { acts } = scene
  const { code, message, next } = await stop(operator.command((session) => session.run([5]), yes))
  expect(code).toBe('KCERT_ROTATION_REFUSED')
  expect(message).toContain('phase 5 cannot start before phase 2 is complete')
  expect(next).toBe('kcert rotate-ca --phase 2')
  expect(scene.acts).toBe(acts)
  expect((await stop(operator.command((session) => session.dryRun([9])))).code).toBe('KCERT_ROTATION_REFUSED')
})

test('half way: what is open, each proof with its age, and the next command', async () => {
  const scene = new Scene(small)
  const operator = new SimulatedOperator(scene)
  await operator.command((session) => session.run(upTo(5)), yes)
  await scene.cluster.time.pass(3_600_000)
  const status = await operator.command((session) => session.status())
  expect(status.next?.command).toBe('kcert rotate-ca --phase 7')
  expect(violations('RotationStatus', status)).toEqual([])
  await expect(renderStatus(status, wide)).toMatchFileSnapshot(golden('status-5'))
  const verification = await operator.command((session) => session.verify())
  expect(verification.holds).toBe(false)
  await expect(renderVerification(verification, wide)).toMatchFileSnapshot(golden('verify-5'))
})

test('stopped in the middle of a phase and run again, it goes on where it stood', async () => {
  const scene = new Scene(small)
  const operator = new SimulatedOperator(scene)
  await operator.command((session) => session.run(upTo(6)), yes)
  scene.cluster.nodes.get('cp2')!.isDiskFull = true
  const stopped = await stop(operator.command((session) => session.run(upTo(12)), yes))
  expect(stopped.code).toBe('KCERT_FILE_NOT_WRITTEN')
  expect(operator.stderr).toContain('phase 7 stopped')
  scene.cluster.nodes.get('cp2')!.isDiskFull = false
  await operator.command((session) => session.run(upTo(10)), yes)
  scene.cluster.reissueHandlers(scene.newCa())
  scene.clients.expectsBridge = false
  const { exit } = await operator.command((session) => session.run(upTo(12)), yes)
  expect(exit).toBe(exitCodes.done)
  expect(scene.clients.failures).toEqual([])
})

test.each([
  [2, /^write-file cp1 .*kube-controller-manager\.yaml$/],
  [9, /^write-file \S+ \/var\/lib\/kubelet\/pki\//],
])('the page of a rotation that was killed in phase %i shows its state', async (phase, at) => {
  const scene = new Scene(small)
  const operator = new SimulatedOperator(scene)
  await operator.command((session) => session.run(upTo(phase - 1)), yes)
  scene.kill = ({ action }) =>
    action.kind === 'write-file' && at.test(`${action.kind} ${action.node} ${action.path}`)
      ? 'after'
      : undefined
  await expect(scene.run(phase)).rejects.toBeInstanceOf(Killed)
  expectPageOfKilledRotation(renderStatusHtml(await operator.command((session) => session.status())), phase)
})

test('a plan that is declined does nothing, writes nothing down, and ends with 3', async () => {
  const scene = new Scene(small)
  const operator = new SimulatedOperator(scene)
  const [files, journal] = [scene.files(), scene.journal.text]
  const { report, exit } = await operator.command((session) => session.run([1, 2]), { answers: () => false })
  expect(exit).toBe(exitCodes.no)
  expect(report).toMatchObject({ outcome: 'declined', phases: [{ number: 1, outcome: 'declined' }] })
  expect(operator.questions).toEqual(['Run phase 1?'])
  expect([scene.files(), scene.journal.text]).toEqual([files, journal])
})

test('is refused without a terminal and without --yes, and names the flag', async () => {
  const scene = new Scene(small)
  const operator = new SimulatedOperator(scene)
  const error = await stop(operator.command((session) => session.run([1])))
  expect([error.code, error.exitCode]).toEqual(['KCERT_ROTATION_UNCONFIRMED', exitCodes.refused])
  expect(error.why).toContain('--yes')
  expect(error.next).toMatch(/^kcert rotate-ca .*--phase 1 --dry-run$/)
  const pausing = { ...yes, options: { pauseBetween: 'nodes' as const } }
  expect((await stop(operator.command((session) => session.run([1]), pausing))).code).toBe('KCERT_USAGE')
})

test('a phase that only reads asks nothing; one without a way back wants the word typed', async () => {
  const scene = new Scene(small)
  const operator = new SimulatedOperator(scene)
  await operator.command((session) => session.run(upTo(2)), yes)
  await operator.command((session) => session.run([3]))
  await operator.command((session) => session.run(upTo(10)), yes)
  scene.cluster.reissueHandlers(scene.newCa())
  await operator.command((session) => session.run([11]))
  expect(operator.questions).toEqual([])
  await operator.command((session) => session.run([12]), { answers: () => false })
  expect(operator.questions).toEqual(['Run phase 12? It cannot be undone. Type "drop" to continue:'])
})

test('Ctrl-C stops between two acts, and the next run goes on', async () => {
  const scene = new Scene(small)
  const operator = new SimulatedOperator(scene)
  const ctrlC = new AbortController()
  await operator.command((session) => session.run([1]), yes)
  const stopped = await stop(
    operator.command(
      (session) => {
        void scene.cluster.time.sleep(5_000).then(() => ctrlC.abort())
        return session.run([2])
      },
      { ...yes, interrupted: ctrlC.signal },
    ),
  )
  expect(stopped.code).toBe('KCERT_ROTATION_INTERRUPTED')
  const entries = readJournal(scene.journal.text)
  const intents = entries.filter(({ kind }) => kind === 'intent').length
  const ended = entries.filter(({ kind }) => kind === 'done' || kind === 'failed').length
  expect(ended).toBe(intents)
  expect((await operator.command((session) => session.run([2]), yes)).exit).toBe(exitCodes.done)
  expect(scene.clients.failures).toEqual([])
})

test('--pause-between nodes asks before each further node, and a no stops there', async () => {
  const scene = new Scene(small)
  const operator = new SimulatedOperator(scene)
  const manner = (answers: (question: string) => boolean) => ({
    ...yes,
    settings: { atOnce: 1 },
    answers,
    options: { pauseBetween: 'nodes' as const },
  })
  await operator.command((session) => session.run([1]), yes)
  const stopped = await stop(
    operator.command(
      (session) => session.run([2]),
      manner((question) => !question.includes('cp1')),
    ),
  )
  expect(stopped.message).toBe('stopped before node cp1')
  expect(operator.questions).toEqual(['Continue with node cp1?'])
  await operator.command(
    (session) => session.run([2]),
    manner(() => true),
  )
  expect(scene.clients.failures).toEqual([])
})

test('--pause-between phases asks before each further phase', async () => {
  const operator = new SimulatedOperator(new Scene(small))
  const { report, exit } = await operator.command((session) => session.run([1, 2, 3]), {
    ...yes,
    answers: (question) => question.includes('phase 2'),
    options: { pauseBetween: 'phases' },
  })
  expect(operator.questions).toEqual(['Continue with phase 2?', 'Continue with phase 3?'])
  expect(report.phases.map(({ number }) => number)).toEqual([1, 2])
  expect(exit).toBe(exitCodes.no)
})

test('is rolled back phase by phase down to the given one, and started again with another CA', async () => {
  const scene = new Scene(small)
  const operator = new SimulatedOperator(scene)
  const files = scene.files()
  await operator.command((session) => session.run(upTo(7)), yes)
  const firstCa = scene.newCa().digest
  const dry = await operator.command((session) => session.dryRollback(undefined))
  expect(dry.phases.map(({ number }) => number)).toEqual([7])
  const last = await operator.command((session) => session.rollback(undefined), yes)
  expect(last.report.phases.map(({ number }) => number)).toEqual([7])
  expect(violations('RotationRun', last.report)).toEqual([])
  await operator.command((session) => session.rollback(0), yes)
  await scene.cluster.time.pass(120_000)
  expect(scene.files()).toEqual(files)
  expect((await operator.command((session) => session.status())).state).toBe('not-begun')
  expect((await operator.command((session) => session.rollback(0), yes)).report.phases).toEqual([])
  await operator.command((session) => session.run(upTo(10)), yes)
  expect(scene.newCa().digest).not.toBe(firstCa)
  scene.cluster.reissueHandlers(scene.newCa())
  scene.clients.expectsBridge = false
  expect((await operator.command((session) => session.run(upTo(12)), yes)).exit).toBe(exitCodes.done)
  expect(scene.clients.failures).toEqual([])
})

test("the operator's hooks run before and after each phase that does something, and each node of it", async () => {
  const scene = new Scene(small)
  const operator = new SimulatedOperator(scene)
  const ran: string[] = []
  const hook = (when: Hook['when'], more: Partial<Hook> = {}): Hook => ({ when, argv: ['true'], ...more })
  const options = {
    hooks: [
      hook('before-phase'),
      hook('after-phase'),
      hook('before-node', { nodes: ['cp1', 'cp2'] }),
      hook('after-node', { phases: [2] }),
    ],
    runHook: async ({ when }: Hook, { phase, node }: { phase: number; node?: string }) => {
      ran.push([when, phase, node].filter(Boolean).join(' '))
    },
  }
  await operator.command((session) => session.run([1]), yes)
  await operator.command((session) => session.run([1, 2]), { ...yes, options })
  expect(ran).toEqual([
    'before-phase 2',
    'before-node 2 cp2',
    'after-node 2 cp2',
    'before-node 2 cp1',
    'after-node 2 cp1',
    'after-phase 2',
  ])
})

test('a hook that fails stops the phase before anything is done, and what was begun is ended', async () => {
  const scene = new Scene(small)
  const operator = new SimulatedOperator(scene)
  await operator.command((session) => session.run([1]), yes)
  const [files, notes] = [scene.files(), [] as string[]]
  const runHook = hookRunner({ PATH: process.env.PATH }, (text) => notes.push(text))
  const hooks: Hook[] = [
    { when: 'before-node', argv: ['sh', '-c', 'echo "$KCERT_WHEN $KCERT_PHASE $KCERT_NODE"; exit 7'] },
    { when: 'after-phase', argv: ['echo', 'ended'] },
  ]
  const { code, why } = await stop(
    operator.command((session) => session.run([2]), { ...yes, options: { hooks, runHook } }),
  )
  expect([code, why]).toEqual(['KCERT_ROTATION_HOOK', 'it ended with status 7'])
  expect(notes.join('\n')).toContain('    before-node 2 cp2')
  expect(notes.at(-1)).toBe('    ended')
  expect(scene.files()).toEqual(files)
})

test('a CA of the operator takes the place of one that phase 1 would make, and not with the old key', async () => {
  const scene = new Scene(small)
  const operator = new SimulatedOperator(scene)
  const given = { cluster: scene.cluster.makeCa('our-own-ca', true) }
  const plan = await operator.command((session) => session.plan(), { settings: { given } })
  expect(plan.authorities[0]?.newCa).toEqual({ generation: 'new', subject: 'CN=our-own-ca' })
  const same = { cluster: { ...scene.cluster.oldCa, subject: 'CN=renamed' } }
  const refused = await stop(
    operator.command((session) => session.run([1]), { ...yes, settings: { given: same } }),
  )
  expect(refused.message).toContain('the new cluster CA has the key of the old one')
})

test('what was chosen for the rotation holds for later commands that do not say it', async () => {
  const scene = new Scene(small)
  const operator = new SimulatedOperator(scene)
  await operator.command((session) => session.run([1]), {
    ...yes,
    settings: { cas: ['cluster'], withBridge: false },
  })
  const status = await operator.command((session) => session.status())
  expect(status.authorities.map(({ ca, hasBridge }) => [ca, hasBridge])).toEqual([['cluster', false]])
})

test('a question that only the operator can answer is not answered by --yes: the flag that does is named', async () => {
  const scene = new Scene(small)
  scene.cluster.startPod(undefined, 'lonely')
  const { id } = [...scene.cluster.pods.values()].find(({ workload }) => workload === undefined)!
  const operator = new SimulatedOperator(scene)
  const { code } = await stop(operator.command((session) => session.run(upTo(4)), yes))
  expect(code).toBe('KCERT_ROTATION_GATE')
  expect(operator.stderr).toContain(`--waive ${id}`)
  const waived = { ...yes, settings: { waivers: new Set([id]) } }
  expect((await operator.command((session) => session.run([4]), waived)).exit).toBe(exitCodes.done)
})

test('names that move the cursor are shown as escapes', async () => {
  const scene = new Scene(small)
  const hostile = 'Deployment default/\u001b[2J\u202eevil'
  scene.cluster.addWorkload(hostile, { rereads: false })
  scene.cluster.startPod(hostile)
  const operator = new SimulatedOperator(scene)
  const plan = await operator.command((session) => session.plan())
  await operator.command((session) => session.run(upTo(4)), yes)
  const shown = renderPlan(plan, wide) + operator.stderr
  expect(shown).toContain('\\u001b[2J\\u202eevil')
  expect(shown).not.toMatch(/[\u001b\u202e]/)
})

test('on a terminal the last line says what is waited for and for how long', async () => {
  const scene = new Scene(small)
  const operator = new SimulatedOperator(scene)
  await operator.command((session) => session.run(upTo(4)), { ...yes, isTerminal: true })
  expect(operator.stderr).toMatch(/\r\u001b\[K {2}… \d+ s \d pending: Pod default\//)
  expect(operator.stderr.replace(/\r\u001b\[K[^\n]*?(?=\r|$)/g, '')).toContain('phase 4 complete')
})
