import { expect, test } from 'vitest'
import { handshakeSubject, helpFor } from '../../src/rotation/handshake-errors.ts'
import { journalLine, readJournal } from '../../src/rotation/journal.ts'
import { sectionNames } from '../../src/rotation/snapshot.ts'
import { verificationReport } from '../../src/rotation/verification-report.ts'
import { SimulatedExecutor } from '../fakes/simulated-cluster-ports.ts'
import { Scene } from './scene.ts'

// Phase 11 on a cluster with constant handshake errors, as on every real cluster.

const checks = { address: '10.0.0.10', everyMs: 2_000, reason: 'EOF' }
const hangingUp = { address: '10.0.0.11', everyMs: 1_000, reason: 'EOF' }
const oldOnly = {
  address: '10.0.0.66',
  everyMs: 1_000,
  reason: 'remote error: tls: unknown certificate authority',
}

function begunScene(...failing: (typeof checks)[]) {
  const scene = new Scene()
  scene.clients.failing.push(...failing)
  return scene
}

function evidenceOf(scene: Scene, key: string) {
  const lines = scene.journal.text.split('\n').filter((line) => line !== '')
  return lines
    .map((line) => JSON.parse(line))
    .filter((entry) => entry.kind === 'evidence' && entry.key === key)
}

test('records in the journal how many handshakes failed before any change', async () => {
  const scene = begunScene(checks, hangingUp)
  await scene.run(1)
  const [measured] = evidenceOf(scene, 'handshake rate cp1/kube-apiserver')
  expect(measured).toMatchObject({ phase: 1, ok: true, rate: { overMs: 20_000 } })
  expect(measured.rate.errors).toBeGreaterThanOrEqual(29)
  expect(measured.rate.errors).toBeLessThanOrEqual(31)
  const first = scene.acts
  await scene.run(1)
  expect(scene.acts).toBe(first)
})

test('accepts TCP checks and clients that close the connection at the rate before phase 1', async () => {
  const scene = begunScene(checks, hangingUp)
  await scene.runAll(1, 11)
  const [watched] = evidenceOf(scene, 'handshake errors cp1/kube-apiserver')
  expect(watched.ok).toBe(true)
  expect(watched.detail).toMatch(
    /^cp1\/kube-apiserver: \d+ TLS handshake errors in 2\d s \(\d+ in 20 s before phase 1\)$/,
  )
})

test('stops phase 11 for one client that does not trust the new certificate, with its address', async () => {
  const scene = begunScene(checks, hangingUp)
  await scene.runAll(1, 10)
  scene.clients.failing.push(oldOnly)
  await expect(scene.run(11)).rejects.toMatchObject({
    code: 'KCERT_ROTATION_CHECK_FAILED',
    why: expect.stringMatching(
      /10\.0\.0\.66 \(remote error: tls: unknown certificate authority, \d+ times\); to accept the risk for one: --waive 10\.0\.0\.66/,
    ),
  })
})

test('waives a failing client by its own address only', async () => {
  const scene = begunScene(checks)
  await scene.runAll(1, 10)
  scene.clients.failing.push(oldOnly)
  scene.settings = { ...scene.settings, waivers: new Set(['10.0.0.6', '10.0.0.10']) }
  await expect(scene.run(11)).rejects.toMatchObject({ code: 'KCERT_ROTATION_CHECK_FAILED' })
  scene.settings = { ...scene.settings, waivers: new Set(['10.0.0.66']) }
  await scene.run(11)
  expect(evidenceOf(scene, 'handshake errors cp1/kube-apiserver').at(-1).detail).toContain(
    'accepted: 10.0.0.66 (remote error: tls: unknown certificate authority',
  )
})

test('stops phase 11 when more clients close the connection than before phase 1, and names them', async () => {
  const scene = begunScene(checks)
  await scene.runAll(1, 10)
  scene.clients.failing.push(hangingUp)
  await expect(scene.run(11)).rejects.toMatchObject({
    code: 'KCERT_ROTATION_CHECK_FAILED',
    why: expect.stringMatching(/before phase 1\): 10\.0\.0\.11 \(EOF, \d+ times\)/),
  })
})

test('compares the counters if the log shows nothing, and reports this', async () => {
  const scene = begunScene(checks)
  scene.clients.hasLogs = false
  await scene.runAll(1, 11)
  const [watched] = evidenceOf(scene, 'handshake errors cp1/kube-apiserver')
  expect(watched.detail).toContain('its log does not show all of them, so kcert compares only their number')
  const louder = begunScene(checks)
  louder.clients.hasLogs = false
  await louder.runAll(1, 10)
  louder.clients.failing.push(oldOnly)
  await expect(louder.run(11)).rejects.toMatchObject({
    code: 'KCERT_ROTATION_CHECK_FAILED',
    why: expect.stringContaining('kcert compares only their number'),
  })
})

test('assumes and reports a rate of 0 for a journal of an earlier kcert, and ignores a waived address', async () => {
  const scene = begunScene(checks)
  await scene.runAll(1, 10)
  forgetRates(scene)
  await expect(scene.run(11)).rejects.toMatchObject({
    code: 'KCERT_ROTATION_CHECK_FAILED',
    why: expect.stringContaining('the journal has no rate from before phase 1, so 0 is assumed'),
  })
  scene.settings = { ...scene.settings, waivers: new Set(['10.0.0.10']) }
  await scene.run(11)
})

test('after phase 12, verify accepts and names the client that was waived', async () => {
  const scene = begunScene(checks)
  await scene.runAll(1, 10)
  scene.clients.failing.push(oldOnly)
  scene.settings = { ...scene.settings, waivers: new Set(['10.0.0.66']) }
  await scene.run(11)
  scene.clients.expectsBridge = false
  await scene.run(12)
  scene.settings = { ...scene.settings, waivers: new Set() }
  const handshakes = await verified(scene)
  expect(handshakes).toMatchObject({ ok: true, findings: [] })
  expect(handshakes.accepted).toHaveLength(3)
  expect(handshakes.accepted?.[0]).toEqual({
    at: 'cp1/kube-apiserver',
    what: expect.stringMatching(
      /^10\.0\.0\.66 \(remote error: tls: unknown certificate authority, \d+ times\)$/,
    ),
  })
  scene.clients.failing.push({ ...oldOnly, address: '10.0.0.67' })
  expect(await verified(scene)).toMatchObject({
    ok: false,
    findings: expect.arrayContaining([
      { at: 'cp1/kube-apiserver', what: expect.stringContaining('--waive 10.0.0.67') },
    ]),
  })
})

test('stops phase 12 at the first API server for a client that trusts only the old CA, unless its address is waived', async () => {
  const scene = begunScene(checks)
  await scene.runAll(1, 11)
  const alone = () =>
    scene.journal.text.split('\n').filter((line) => /"intent".*apiserver\.crt \(certificates\)/.test(line))
  await expect(scene.run(12)).rejects.toMatchObject({
    code: 'KCERT_ROTATION_CHECK_FAILED',
    message: 'not verified: handshake errors cp1/kube-apiserver',
    why: expect.stringContaining('to accept the risk for one: --waive 192.0.2.250'),
  })
  expect(alone()).toHaveLength(1)
  // A watch with an error does not count as done: the same command watches again.
  await expect(scene.run(12)).rejects.toMatchObject({ code: 'KCERT_ROTATION_CHECK_FAILED' })
  expect(alone()).toHaveLength(1)
  scene.settings = { ...scene.settings, waivers: new Set(['192.0.2.250']) }
  await scene.run(12)
  expect(alone()).toHaveLength(3)
  for (const cp of ['cp1', 'cp2', 'cp3']) {
    expect(evidenceOf(scene, `handshake errors ${cp}/kube-apiserver`).at(-1)).toMatchObject({
      phase: 12,
      ok: true,
    })
    expect(evidenceOf(scene, `old trust refused at ${cp}/kube-apiserver`).at(-1)).toMatchObject({ ok: true })
  }
})

test('also waives a waived pod by its address, and no other pod', async () => {
  const scene = begunScene()
  const { observed, target } = await scene.asProcess((rotation) => rotation.observe(sectionNames))
  const [pod, ...others] = observed.pods
  const pods = [
    { ...pod!, address: '10.244.1.7' },
    ...others.map((one) => ({ ...one, address: '10.244.1.8' })),
  ]
  const waivedBy = (...ids: string[]) =>
    handshakeSubject({ ...observed, pods }, { ...target, waivers: new Set(ids) }, 'cp1/kube-apiserver', 1_000)
      .waived
  expect(waivedBy(pod!.id)).toEqual(['10.244.1.7'])
  expect(waivedBy(pod!.id, '10.0.0.66')).toEqual(['10.0.0.66', '10.244.1.7'])
  expect(waivedBy('another/owner')).toEqual([])
})

test('names clients in pods, and suggests a command that restarts their workloads, for any name', async () => {
  const { observed } = await begunScene().asProcess((rotation) => rotation.observe(sectionNames))
  const [pod, other, bare] = observed.pods
  const pods = [
    { ...pod!, id: 'lab/plain-1', workload: 'Deployment lab/plain; touch x', address: '10.244.1.7' },
    { ...other!, id: 'lab/sts-0', workload: 'StatefulSet lab/sts', address: '10.244.1.8' },
    { ...bare!, id: 'lab/bare', workload: undefined, address: '10.244.1.9' },
  ] as typeof observed.pods
  expect(helpFor(['10.244.1.7', '10.244.1.8', '10.0.0.9'], pods, 12)).toEqual({
    why: '; 10.244.1.7 is Pod lab/plain-1 of Deployment lab/plain; touch x; 10.244.1.8 is Pod lab/sts-0 of StatefulSet lab/sts',
    next: "kubectl rollout restart --namespace lab 'deployment/plain; touch x' && kubectl rollout restart --namespace lab statefulset/sts && kcert rotate-ca --phase 12",
  })
  expect(helpFor(['10.244.1.9'], pods, 11)).toEqual({
    why: '; 10.244.1.9 is Pod lab/bare',
    next: 'kcert rotate-ca --phase 11',
  })
})

test('a completion check that waits for a pod names the pod and the command that restarts it', async () => {
  const scene = begunScene(checks)
  await scene.runAll(1, 10)
  scene.clients.failing.push(oldOnly)
  const [pod] = scene.cluster.pods.values()
  pod!.address = oldOnly.address
  await expect(scene.run(11)).rejects.toMatchObject({
    why: expect.stringContaining(`; 10.0.0.66 is Pod ${pod!.id}`),
  })
})

test('unreadable pods do not replace the message of the completion check', async () => {
  const scene = begunScene(checks)
  await scene.runAll(1, 10)
  scene.clients.failing.push(oldOnly)
  const observe = scene.observer.observe.bind(scene.observer)
  let asked = 0
  scene.observer.observe = (sections, ...remembered) => {
    if (sections.join() !== 'published,pods') return observe(sections, ...remembered)
    asked++
    return Promise.reject(new Error('no API server answers'))
  }
  await expect(scene.run(11)).rejects.toMatchObject({
    code: 'KCERT_ROTATION_CHECK_FAILED',
    why: expect.stringContaining('10.0.0.66 (remote error'),
    next: 'kcert rotate-ca --phase 11',
  })
  // Once for each API server, because they are watched in parallel.
  expect(asked).toBe(3)
})

/** Removes the rates, as in a journal of a kcert that did not measure them. */
function forgetRates(scene: Scene): void {
  let last: string | undefined
  let text = ''
  for (const { time, previous: _, ...record } of readJournal(scene.journal.text)) {
    if (record.kind === 'evidence' && record.key.startsWith('handshake rate')) continue
    last = journalLine(record, Date.parse(time), last)
    text += `${last}\n`
  }
  scene.journal.text = text
}

/** Verifies as `kcert rotate-ca verify` does. */
async function verified(scene: Scene) {
  const report = await scene.asProcess(async (rotation) => {
    const { observed, target } = await rotation.observe(sectionNames)
    const executor = new SimulatedExecutor(scene.cluster, scene.clients)
    const apis = observed.components.filter(({ name }) => name === 'kube-apiserver')
    const counted = await Promise.all(
      apis.map(async ({ id: at }) => {
        const subject = handshakeSubject(observed, target, at, 20_000)
        const answer = await executor.probe({ kind: 'probe', phase: 11, subject, deadlineMs: 60_000 })
        return { at, ...answer, atMs: 0 }
      }),
    )
    return verificationReport(observed, target, rotation.history, counted)
  })
  return report.checks.find(({ id }) => id === 'handshake-errors')!
}
