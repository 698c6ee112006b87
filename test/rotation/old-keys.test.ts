import { chmodSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { keyArchive } from '../../src/app/rotate-ca/key-archive.ts'
import { type Retirement, retireOldKeys } from '../../src/app/rotate-ca/retire-old-keys.ts'
import type { Operator } from '../../src/app/rotate-ca/session.ts'
import { exitCodes } from '../../src/errors/codes.ts'
import { renderOldKeys } from '../../src/output/rotation/old-keys.ts'
import { renderProgress } from '../../src/output/rotation/status.ts'
import { readJournal } from '../../src/rotation/journal.ts'
import type { KeyArchive } from '../../src/rotation/old-keys.ts'
import { manualRotation } from '../../src/rotation/phase-table.ts'
import { keyIdFor } from '../../src/rotation/service-account-key/key-id.ts'
import { keyPlaybook } from '../../src/rotation/service-account-key/playbook.ts'
import type { Settings } from '../../src/rotation/target-reading.ts'
import { SimulatedJournal, SimulatedOldKeys } from '../fakes/simulated-cluster-ports.ts'
import { violations } from '../scripts/schemas.ts'
import { SimulatedOperator, wide } from './operator.ts'
import { Killed, Scene } from './scene.ts'

// Archiving and destroying the old CA's key after phase 12 is complete, on the simulated cluster.

const small = { controlPlanes: 2, workers: 1 } as const
const folder = mkdtempSync(join(tmpdir(), 'kcert-old-keys-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

/** A rotation takes a second, so each test continues from a copy of one that is finished. */
let ended: { files: ReturnType<typeof filesOf>; journal: string; scene: Scene }
let scene: Scene
let archiveCount = 0

function filesOf({ cluster }: Scene) {
  return new Map([...cluster.files].map(([key, file]) => [key, { ...file }]))
}

async function rotated(settings: Partial<Settings> = {}): Promise<Scene> {
  const made = new Scene(small, settings)
  await made.runAll()
  return made
}

beforeAll(async () => {
  const made = await rotated()
  ended = { files: filesOf(made), journal: made.journal.text, scene: made }
})

beforeEach(() => {
  scene = ended.scene
  scene.cluster.files.clear()
  for (const [key, file] of ended.files) scene.cluster.files.set(key, { ...file })
  scene.journal.text = ended.journal
  scene.journal.isBroken = false
  for (const node of scene.cluster.nodes.values()) node.isUnreachable = false
})

interface RetireOptions extends Partial<Retirement> {
  readonly kill?: (act: string) => void
  readonly answers?: (question: string) => boolean
  readonly journal?: SimulatedJournal
  readonly on?: Scene
}

const said: string[] = []

function retire({ kill = () => {}, answers, journal, on = scene, ...settings }: RetireOptions = {}) {
  const { cluster, observer } = on
  const oldKeys = new SimulatedOldKeys(cluster)
  oldKeys.kill = kill
  const answer = answers && (async (question: string) => answers(question))
  const operator: Operator = {
    choose: answer,
    type: answer,
    showPlan: () => {},
    tell: () => {},
    note: (text) => said.push(text),
    interrupted: new AbortController().signal,
  }
  const pace = { now: cluster.time.now, sleep: cluster.time.sleep }
  const render = (report: Parameters<Retirement['render']>[0]) => renderOldKeys(report, wide)
  return cluster.time.until(
    retireOldKeys(
      { observer, oldKeys, journal: journal ?? on.journal, pace },
      { table: manualRotation, dryRun: false, yes: true, render, ...settings },
      operator,
    ),
  )
}

function archive(name = `archive-${archiveCount++}`): KeyArchive {
  return keyArchive(name, folder)
}

/** Returns the files, including kcert's own, that contain an old CA's key. */
function holders({ cluster }: Scene = scene): string[] {
  const { oldCa, oldFrontProxyCa } = cluster
  return [...cluster.files].flatMap(([key, { text }]) => {
    if (key.endsWith('.jsonl')) return []
    const contains = cluster.parsedContentOf(text)
    const spki = contains.kind === 'key' || contains.kind === 'pair' ? contains.spki : undefined
    return spki === oldCa.spki || spki === oldFrontProxyCa.spki ? [key] : []
  })
}

/** Returns added, changed and removed files. */
function differences(before: ReadonlyMap<string, { text: string; mode: number }>): string[] {
  const now = scene.cluster.files
  return [...new Set([...before.keys(), ...now.keys()])].filter(
    (key) => before.get(key)?.text !== now.get(key)?.text || before.get(key)?.mode !== now.get(key)?.mode,
  )
}

test('after a rotation, status reports where the old key is, and the two commands', async () => {
  const operator = new SimulatedOperator(scene)
  const status = await operator.command((session) => session.status())
  expect(violations('RotationStatus', status)).toEqual([])
  expect(status.state).toBe('finished')
  expect(status.oldKeys?.files.map(({ node, path }) => `${node}:${path}`).sort()).toEqual(holders().sort())
  expect(renderProgress(status, wide)).toMatch(
    /\nthe old CA's key is still on cp1, cp2, readable only by root \(4 files\); to archive or destroy it:\n {2}kcert rotate-ca --archive-old-key old-keys\n {2}kcert rotate-ca --destroy-old-key\n$/,
  )
})

test('destroy removes the keys from every node, changes nothing else, and records it in the journal', async () => {
  const old = holders()
  expect(old).toHaveLength(4)
  const { report, exit } = await retire()
  expect(violations('RotationOldKeys', report)).toEqual([])
  expect([report.outcome, exit]).toEqual(['done', exitCodes.done])
  expect(holders()).toEqual([])
  expect(differences(ended.files).sort()).toEqual(old.sort())
  const entries = readJournal(scene.journal.text).slice(readJournal(ended.journal).length)
  expect(entries.map(({ kind }) => kind)).toEqual(old.flatMap(() => ['intent', 'done']))
  for (const key of old) expect(scene.journal.text).toContain(`"what":"destroy ${key} (key of the old `)
  // The rotation still counts as finished, and its status contains no more keys.
  const status = await new SimulatedOperator(scene).command((session) => session.status())
  expect([status.state, status.oldKeys]).toEqual(['finished', undefined])
})

test('a second run reports that nothing is left', async () => {
  await retire()
  const journal = scene.journal.text
  const { report, exit } = await retire()
  expect([report.outcome, exit, report.files]).toEqual(['nothing-left', exitCodes.done, []])
  expect(renderOldKeys(report, wide)).toContain('nothing left to do')
  expect(scene.journal.text).toBe(journal)
})

test('archive writes key and certificate with mode 0600, then removes them from the nodes', async () => {
  const to = archive()
  const { cluster } = scene
  const { report, exit } = await retire({ archive: to })
  expect(violations('RotationOldKeys', report)).toEqual([])
  expect([report.outcome, exit]).toEqual(['done', exitCodes.done])
  const [cluster12, proxy12] = [cluster.oldCa.spki, cluster.oldFrontProxyCa.spki].map((spki) =>
    spki.slice(0, 12),
  )
  expect(readdirSync(to.folder).sort()).toEqual([
    `ca-old-${cluster12}.crt`,
    `ca-old-${cluster12}.key`,
    `front-proxy-ca-old-${proxy12}.crt`,
    `front-proxy-ca-old-${proxy12}.key`,
  ])
  for (const name of readdirSync(to.folder).filter((one) => one.endsWith('.key'))) {
    expect(statSync(join(to.folder, name)).mode & 0o777).toBe(0o600)
  }
  const text = readFileSync(join(to.folder, `ca-old-${cluster12}.key`), 'utf8')
  expect(cluster.parsedContentOf(text)).toEqual({ kind: 'key', spki: cluster.oldCa.spki })
  expect(holders()).toEqual([])
  expect([...report.archived].sort()).toEqual(
    readdirSync(to.folder)
      .sort()
      .map((name) => join(to.folder, name)),
  )
})

test.each(['destroy', 'archive'] as const)(
  '%s has the same result when killed before and during each action and run again',
  async (action) => {
    const to = action === 'archive' ? { archive: archive() } : {}
    const killed = new Set<string>()
    let runs = 0
    for (;;) {
      try {
        const { report } = await retire({
          ...to,
          kill: (act) => {
            if (killed.has(act)) return
            killed.add(act)
            throw new Killed()
          },
        })
        expect(report.outcome).toBe('done')
        break
      } catch (error) {
        if (!(error instanceof Killed)) throw error
        runs++
      }
    }
    // Four files, two steps each.
    expect(runs).toBe(8)
    expect(holders()).toEqual([])
    expect(differences(ended.files)).toHaveLength(4)
    if ('archive' in to) expect(readdirSync(to.archive.folder)).toHaveLength(4)
  },
)

test('a run after one that was killed before the removal uses the archived file', async () => {
  const to = archive()
  await expect(
    retire({
      archive: to,
      kill: () => {
        throw new Killed()
      },
    }),
  ).rejects.toThrow(Killed)
  const before = readdirSync(to.folder).map((name) => [name, statSync(join(to.folder, name)).ino])
  expect(before).toHaveLength(4)
  expect(holders()).toHaveLength(4)
  await retire({ archive: to })
  expect(readdirSync(to.folder).map((name) => [name, statSync(join(to.folder, name)).ino])).toEqual(before)
  expect(holders()).toEqual([])
})

test('never overwrites an archive, and removes no key whose archive file has other content or permissions', async () => {
  const to = archive()
  const name = `ca-old-${scene.cluster.oldCa.spki.slice(0, 12)}.key`
  await to.keep(name, 'not that key', 0o600)
  await expect(retire({ archive: to })).rejects.toMatchObject({ code: 'KCERT_FILE_EXISTS' })
  expect(readFileSync(join(to.folder, name), 'utf8')).toBe('not that key')
  expect(holders()).toHaveLength(4)
  // The right bytes, but readable by other users.
  const key = [...ended.files].find(([at]) => at === holders()[0])![1].text
  const open = archive()
  await open.keep(name, key, 0o600)
  chmodSync(join(open.folder, name), 0o644)
  await expect(retire({ archive: open })).rejects.toMatchObject({ code: 'KCERT_FILE_EXISTS' })
  expect(holders()).toHaveLength(4)
})

test('keeps the files on an unreachable node until the next run, and names it with exit code 4', async () => {
  scene.cluster.nodes.get('cp2')!.isUnreachable = true
  const first = await retire()
  expect([first.report.outcome, first.exit]).toEqual(['incomplete', exitCodes.unreachable])
  expect(first.report.unreachable).toMatchObject([{ node: 'cp2' }])
  expect(renderOldKeys(first.report, wide)).toContain('run the same command again when cp2 is reachable')
  expect(holders().every((key) => key.startsWith('cp2:'))).toBe(true)
  scene.cluster.nodes.get('cp2')!.isUnreachable = false
  const second = await retire()
  expect([second.report.outcome, second.exit]).toEqual(['done', exitCodes.done])
  expect(holders()).toEqual([])
})

test('a node that becomes unreachable midway does not delay the others', async () => {
  const { report, exit } = await retire({
    kill: (act) => {
      if (act.startsWith('overwrite cp1:')) scene.cluster.nodes.get('cp1')!.isUnreachable = true
    },
  })
  expect([report.outcome, exit]).toEqual(['incomplete', exitCodes.unreachable])
  expect(report.files.filter(({ state }) => state === 'removed').map(({ node }) => node)).toEqual([
    'cp2',
    'cp2',
  ])
})

test('names and skips an encrypted key that may be the key of the old CA, with exit code 3', async () => {
  const { cluster } = scene
  const sealed = '-----BEGIN ENCRYPTED PRIVATE KEY-----'
  const copy = `/var/lib/kcert/copies/by-digest/${'ab'.repeat(32)}`
  const places = [`cp1:${copy}`, 'cp2:/etc/kubernetes/pki/front-proxy-ca.key']
  cluster.write('cp1', copy, sealed, 0o600)
  cluster.write('cp2', '/etc/kubernetes/pki/front-proxy-ca.key', sealed, 0o600)
  const dry = await retire({ dryRun: true })
  expect([dry.report.outcome, dry.exit]).toEqual(['planned', exitCodes.no])
  const { report, exit } = await retire()
  expect(violations('RotationOldKeys', report)).toEqual([])
  expect([report.outcome, exit]).toEqual(['incomplete', exitCodes.no])
  expect(holders()).toEqual([])
  expect(report.encrypted.map(({ node, path }) => `${node}:${path}`)).toEqual(places)
  for (const key of places) expect(cluster.files.get(key)?.text).toBe(sealed)
  const text = renderOldKeys(report, wide)
  expect(text).toContain(
    `skipped: cp1:${copy}: the key is encrypted, so kcert cannot tell whether it is the old CA's`,
  )
  expect(text).toContain(`next: openssl pkey -in ${copy} -pubout -outform DER | sha256sum\n`)
  expect(text).toContain(
    `if it prints ${cluster.oldCa.spki} or ${cluster.oldFrontProxyCa.spki}, move the key to a safe place`,
  )
  expect(text).toMatch(/\nincomplete: for you to check: 2 encrypted keys that may be the old CA's\n$/)
  // On a second run, only these are left, and the status names them.
  const again = await retire()
  expect([again.report.outcome, again.exit]).toEqual(['incomplete', exitCodes.no])
  const status = await new SimulatedOperator(scene).command((session) => session.status())
  expect(violations('RotationStatus', status)).toEqual([])
  expect(renderProgress(status, wide)).toContain(
    "2 encrypted keys on cp1, cp2 may be the old CA's; to list the files and how to check them: kcert rotate-ca --destroy-old-key --dry-run",
  )
})

test('names an encrypted key next to the CA of a kubelet on a worker, too', async () => {
  scene.cluster.write('w1', '/etc/kubernetes/pki/ca.key', '-----BEGIN ENCRYPTED PRIVATE KEY-----', 0o600)
  const { report, exit } = await retire()
  expect([report.outcome, exit]).toEqual(['incomplete', exitCodes.no])
  expect(report.encrypted.map(({ node, path }) => `${node}:${path}`)).toEqual([
    'w1:/etc/kubernetes/pki/ca.key',
  ])
})

test('is refused before phase 12 is complete, and without a journal', async () => {
  const until11 = ended.journal.slice(0, ended.journal.lastIndexOf('{"time"'))
  const early = new SimulatedJournal()
  early.text = until11
  await expect(retire({ journal: early })).rejects.toMatchObject({
    code: 'KCERT_ROTATION_REFUSED',
    message: 'the rotation is not finished',
    next: 'kcert rotate-ca',
  })
  await expect(retire({ journal: new SimulatedJournal() })).rejects.toMatchObject({
    code: 'KCERT_ROTATION_REFUSED',
    next: 'kcert rotate-ca status',
  })
  expect(holders()).toHaveLength(4)
})

test('keeps a key that is in use: a cluster that returned to the old CA', async () => {
  const { cluster } = scene
  cluster.write('cp2', '/etc/kubernetes/pki/ca.crt', { certificates: [cluster.oldCa.digest] })
  await expect(retire()).rejects.toMatchObject({
    code: 'KCERT_ROTATION_REFUSED',
    message: expect.stringContaining('the key of the old cluster CA is in use: cp2/'),
  })
  expect(holders()).toHaveLength(4)
})

test('removes only the front-proxy key after a rotation of the front-proxy CA alone', async () => {
  const alone = await rotated({ cas: ['front-proxy'] })
  const { cluster } = alone
  const before = holders(alone)
  const { report } = await retire({ on: alone })
  expect(report.files.map(({ ca }) => ca)).toEqual(['front-proxy', 'front-proxy'])
  const left = holders(alone)
  expect(left).toContain('cp1:/etc/kubernetes/pki/ca.key')
  expect(before.filter((key) => !left.includes(key))).toHaveLength(2)
  expect(left.map((key) => cluster.parsedContentOf(cluster.files.get(key)!.text))).toEqual(
    left.map(() => ({ kind: 'key', spki: cluster.oldCa.spki })),
  )
})

test('shows the keys and asks; declining and a dry run change nothing; requires --yes without a terminal', async () => {
  said.length = 0
  const questions: string[] = []
  const declined = await retire({
    yes: false,
    answers: (question) => {
      questions.push(question)
      return false
    },
  })
  expect([declined.report.outcome, declined.exit]).toEqual(['declined', exitCodes.no])
  expect(questions).toEqual([expect.stringContaining('Type "destroy" to continue')])
  expect(said.join('\n')).toMatch(
    /cp1 +key of the cluster CA +present +\/var\/lib\/kcert\/copies\/by-digest\/[0-9a-f]{12}…/,
  )
  const dry = await retire({ dryRun: true })
  expect([dry.report.outcome, dry.exit]).toEqual(['planned', exitCodes.done])
  await expect(retire({ yes: false })).rejects.toMatchObject({ code: 'KCERT_ROTATION_UNCONFIRMED' })
  expect(differences(ended.files)).toEqual([])
  expect(scene.journal.text).toBe(ended.journal)
})

test('destroys nothing when the journal cannot be written', async () => {
  scene.journal.isBroken = true
  await expect(retire()).rejects.toMatchObject({ code: 'KCERT_FILE_NOT_WRITTEN' })
  expect(differences(ended.files)).toEqual([])
})

describe('after a rotation of the service account key', () => {
  const settings = { proof: 'audit', waivers: new Set(['audit-log']) } as const
  let rotatedKey: Scene
  let files: ReturnType<typeof filesOf>
  let journal: string

  beforeAll(async () => {
    rotatedKey = new Scene(
      { ...small, hasTokens: true },
      { ...settings, acceptedVersions: new Set(['1.36']) },
      keyPlaybook,
    )
    for (let phase = 1; phase <= 8; phase++) await rotatedKey.asProcess((rotation) => rotation.run(phase))
    files = filesOf(rotatedKey)
    journal = rotatedKey.journal.text
  })

  beforeEach(() => {
    rotatedKey.cluster.files.clear()
    for (const [key, file] of files) rotatedKey.cluster.files.set(key, { ...file })
    rotatedKey.journal.text = journal
    said.length = 0
  })

  const retireKey = (options: RetireOptions = {}) =>
    retire({ on: rotatedKey, table: keyPlaybook, ...options })
  const statusOf = () =>
    new SimulatedOperator(rotatedKey).command((session) => session.status(), { settings })
  /** Returns the files that contain the old private key. */
  const keyHolders = () =>
    [...rotatedKey.cluster.files].flatMap(([key, { text }]) => {
      const contains = key.endsWith('.jsonl') ? undefined : rotatedKey.cluster.parsedContentOf(text)
      return contains?.kind === 'key' && contains.spki === rotatedKey.cluster.oldKey ? [key] : []
    })

  test('status names the nodes that still have the old key, and the commands', async () => {
    const status = await statusOf()
    expect(violations('RotationStatus', status)).toEqual([])
    expect(status.state).toBe('finished')
    const keyId = keyIdFor(rotatedKey.cluster.oldKey!)
    expect(status.oldKeys?.files.map(({ node, path }) => `${node}:${path}`)).toEqual(keyHolders())
    expect(status.oldKeys?.files).toMatchObject([
      { node: 'cp1', keyId },
      { node: 'cp2', keyId },
    ])
    expect(renderProgress(status, wide)).toMatch(
      /\nthe old service account key is still on cp1, cp2, readable only by root \(2 files\); to archive or destroy it:\n {2}kcert rotate-sa-key --archive-old-key old-keys\n {2}kcert rotate-sa-key --destroy-old-key\n$/,
    )
  })

  test('destroy removes it from every node, and status says nothing more about it', async () => {
    const old = keyHolders()
    expect(old).toHaveLength(2)
    const answers = (question: string): boolean => question.includes('Type "destroy"')
    const { report, exit } = await retireKey({ yes: false, answers })
    expect(violations('RotationOldKeys', report)).toEqual([])
    expect([report.outcome, exit]).toEqual(['done', exitCodes.done])
    expect(said[0]).toContain(`old service account key, key ID ${keyIdFor(rotatedKey.cluster.oldKey!)}`)
    expect(renderOldKeys(report, wide)).toContain(
      "done: the old service account key is no longer in kcert's folders",
    )
    expect(keyHolders()).toEqual([])
    for (const key of old)
      expect(rotatedKey.journal.text).toContain(`"what":"destroy ${key} (old service account key)"`)
    // The new key and all public keys stay.
    const gone = [...files.keys()].filter((key) => !rotatedKey.cluster.files.has(key))
    expect(gone.sort()).toEqual(old.sort())
    expect((await statusOf()).oldKeys).toBeUndefined()
    expect((await retireKey()).report.outcome).toBe('nothing-left')
  })

  test('archive has the same result when killed before and during each action and run again', async () => {
    const to = archive()
    const killed = new Set<string>()
    const kill = (act: string): void => {
      if (killed.has(act)) return
      killed.add(act)
      throw new Killed()
    }
    const untilDone = async (): Promise<void> => {
      try {
        await retireKey({ archive: to, kill })
      } catch (error) {
        if (!(error instanceof Killed)) throw error
        await untilDone()
      }
    }
    await untilDone()
    expect(killed.size).toBe(4)
    expect(keyHolders()).toEqual([])
    const name = `sa-old-${rotatedKey.cluster.oldKey!.slice(0, 12)}.key`
    expect(readdirSync(to.folder)).toEqual([name])
    expect(statSync(join(to.folder, name)).mode & 0o777).toBe(0o600)
    expect(rotatedKey.cluster.parsedContentOf(readFileSync(join(to.folder, name), 'utf8'))).toEqual({
      kind: 'key',
      spki: rotatedKey.cluster.oldKey,
    })
  })

  test('an encrypted key of a CA does not count', async () => {
    rotatedKey.cluster.write(
      'cp1',
      '/etc/kubernetes/pki/ca.key',
      '-----BEGIN ENCRYPTED PRIVATE KEY-----',
      0o600,
    )
    const { report, exit } = await retireKey()
    expect([report.outcome, exit, report.encrypted]).toEqual(['done', exitCodes.done, []])
  })

  test('is refused before the last phase, and while an API server still verifies with the key', async () => {
    const early = new SimulatedJournal()
    early.text = journal.slice(0, journal.lastIndexOf('{"time"'))
    await expect(retireKey({ journal: early })).rejects.toMatchObject({
      code: 'KCERT_ROTATION_REFUSED',
      message: 'the rotation is not finished',
      next: 'kcert rotate-sa-key',
    })
    const { cluster } = rotatedKey
    cluster.write('cp2', '/etc/kubernetes/pki/sa.pub', { publicKeys: [cluster.oldKey!] })
    await expect(retireKey()).rejects.toMatchObject({
      code: 'KCERT_ROTATION_REFUSED',
      message: 'the old service account key is in use: cp2/kube-apiserver reads /etc/kubernetes/pki/sa.pub',
    })
    expect(keyHolders()).toHaveLength(2)
  })

  test('reads back: a copy that appears during the removal is named, with exit code 3', async () => {
    const path = `/var/lib/kcert/copies/by-digest/${'cd'.repeat(32)}`
    const { text } = rotatedKey.cluster.files.get(keyHolders()[0]!)!
    const first = await retireKey({
      kill: (act) => {
        if (act.startsWith('remove cp2:')) rotatedKey.cluster.write('cp1', path, text, 0o600)
      },
    })
    expect([first.report.outcome, first.exit]).toEqual(['incomplete', exitCodes.no])
    expect(first.report.files.map(({ path: at, state }) => [at === path, state])).toEqual([
      [false, 'removed'],
      [false, 'removed'],
      [true, 'present'],
    ])
    expect(renderOldKeys(first.report, wide)).toContain(
      'incomplete: 1 file found after the removal: run the same command again',
    )
    expect((await retireKey()).report.outcome).toBe('done')
    expect(keyHolders()).toEqual([])
  })
})
