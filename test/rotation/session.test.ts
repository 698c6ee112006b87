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

// The commands of rotate-ca on the simulated cluster: their output, questions and effects.

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

test('before any change, shows the phases and the first command', async () => {
  const operator = new SimulatedOperator(new Scene(small))
  const status = await operator.command((session) => session.status())
  expect(violations('RotationStatus', status)).toEqual([])
  expect(status).toMatchObject({ state: 'not-started', next: { command: 'kcert rotate-ca --phase 1' } })
  await expect(renderProgress(status, wide)).toMatchFileSnapshot(golden('not-started'))
})

test('the whole plan names servers, clients, changes, restarts and affected objects, but no secret', async () => {
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
    foreign: [{ server: 'service/default/agg' }],
    caBundles: [{ id: 'APIService v1.agg' }, { id: 'ValidatingWebhookConfiguration guard' }],
  })
  expect(plan.blastRadius.barePods).toHaveLength(1)
  await expect(renderPlan(plan, wide)).toMatchFileSnapshot(golden('plan'))
  expect(scene.files()).toEqual(files)
  expect(scene.journal.text).toBe('')
})

test('the plan names once for each object what kubectl apply would restore, with the next step', async () => {
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
    '  manifests applied with kubectl contain the old CA and would restore it: APIService v1.agg. Put both CAs into their caBundle after phase 1 and before phase 9, and only the new CA after phase 12 (see kcert rotate-ca plan --sources)\n',
  )
})

test('a dry run of a phase shows what a run then does, and writes nothing', async () => {
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

test('all twelve phases fail no client, and completed work is not repeated', async () => {
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

test('refuses a phase by name while an earlier phase is incomplete, and does nothing', async () => {
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

test('halfway, shows pending items, each proof with its age, and the next command', async () => {
  const scene = new Scene(small)
  const operator = new SimulatedOperator(scene)
  await operator.command((session) => session.run(upTo(5)), yes)
  await scene.cluster.time.pass(3_600_000)
  const status = await operator.command((session) => session.status())
  expect(status.next?.command).toBe('kcert rotate-ca --phase 7')
  expect(violations('RotationStatus', status)).toEqual([])
  await expect(renderStatus(status, wide)).toMatchFileSnapshot(golden('status-5'))
  const verification = await operator.command((session) => session.verify())
  expect(verification.ok).toBe(false)
  await expect(renderVerification(verification, wide)).toMatchFileSnapshot(golden('verify-5'))
})

test('continues where it stopped when run again in the middle of a phase', async () => {
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
])('the HTML status shows a rotation that was killed in phase %i', async (phase, at) => {
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

test('a declined plan does nothing, records nothing, and exits with 3', async () => {
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

test('asks nothing in a phase that only reads, and requires a typed word in one without an undo', async () => {
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

test('Ctrl-C stops between two actions, and the next run continues', async () => {
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

test('--pause-between nodes asks before each further node, and stops when declined', async () => {
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

test('rolls back phase by phase to the given one, and starts again with another CA', async () => {
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
  expect((await operator.command((session) => session.status())).state).toBe('not-started')
  expect((await operator.command((session) => session.rollback(0), yes)).report.phases).toEqual([])
  await operator.command((session) => session.run(upTo(10)), yes)
  expect(scene.newCa().digest).not.toBe(firstCa)
  scene.cluster.reissueHandlers(scene.newCa())
  scene.clients.expectsBridge = false
  expect((await operator.command((session) => session.run(upTo(12)), yes)).exit).toBe(exitCodes.done)
  expect(scene.clients.failures).toEqual([])
})

test('runs the hooks of the operator before and after each phase with actions, and each node in it', async () => {
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

test('a failed hook stops the phase before any change, and the after-phase hooks still run', async () => {
  const scene = new Scene(small)
  const operator = new SimulatedOperator(scene)
  await operator.command((session) => session.run([1]), yes)
  const [files, notes] = [scene.files(), [] as string[]]
  const runHook = hookRunner({ PATH: process.env.PATH }, (text) => notes.push(text))
  const hooks: Hook[] = [
    { when: 'before-node', argv: ['sh', '-c', 'echo "$KCERT_WHEN $KCERT_PHASE $KCERT_NODE"; exit 7'] },
    { when: 'after-phase', argv: ['echo', 'finished'] },
  ]
  const { code, why } = await stop(
    operator.command((session) => session.run([2]), { ...yes, options: { hooks, runHook } }),
  )
  expect([code, why]).toEqual(['KCERT_ROTATION_HOOK', 'it exited with status 7'])
  expect(notes.join('\n')).toContain('    before-node 2 cp2')
  expect(notes.at(-1)).toBe('    finished')
  expect(scene.files()).toEqual(files)
})

test('uses a supplied CA instead of one that phase 1 would create, but not with the old key', async () => {
  const scene = new Scene(small)
  const operator = new SimulatedOperator(scene)
  const given = { cluster: scene.cluster.makeCa('our-own-ca', true) }
  const plan = await operator.command((session) => session.plan(), { settings: { given } })
  expect(plan.cas[0]?.newCa).toEqual({ generation: 'new', subject: 'CN=our-own-ca' })
  const same = { cluster: { ...scene.cluster.oldCa, subject: 'CN=renamed' } }
  const refused = await stop(
    operator.command((session) => session.run([1]), { ...yes, settings: { given: same } }),
  )
  expect(refused.message).toContain('the new cluster CA has the key of the old one')
})

test('applies the choices for the rotation to later commands without the flags', async () => {
  const scene = new Scene(small)
  const operator = new SimulatedOperator(scene)
  await operator.command((session) => session.run([1]), {
    ...yes,
    settings: { cas: ['cluster'], withBridge: false },
  })
  const status = await operator.command((session) => session.status())
  expect(status.cas.map(({ ca, hasBridge }) => [ca, hasBridge])).toEqual([['cluster', false]])
})

test('does not confirm with --yes a question that only the operator can answer, and names the flag that does', async () => {
  const scene = new Scene(small)
  scene.cluster.startPod(undefined, 'lonely')
  const { id } = [...scene.cluster.pods.values()].find(({ workload }) => workload === undefined)!
  const operator = new SimulatedOperator(scene)
  const { code } = await stop(operator.command((session) => session.run(upTo(4)), yes))
  expect(code).toBe('KCERT_ROTATION_CHECK_FAILED')
  expect(operator.stderr).toContain(`--waive ${id}`)
  const waived = { ...yes, settings: { waivers: new Set([id]) } }
  expect((await operator.command((session) => session.run([4]), waived)).exit).toBe(exitCodes.done)
})

test('escapes names with cursor movements', async () => {
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

test('shows the current wait and its duration on the last line of a terminal', async () => {
  const scene = new Scene(small)
  const operator = new SimulatedOperator(scene)
  await operator.command((session) => session.run(upTo(4)), { ...yes, isTerminal: true })
  expect(operator.stderr).toMatch(/\r\u001b\[K {2}… \d+ s \d pending: Pod default\//)
  expect(operator.stderr.replace(/\r\u001b\[K[^\n]*?(?=\r|$)/g, '')).toContain('phase 4 complete')
})
