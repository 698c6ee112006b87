import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import { expect, test } from 'vitest'
import { type UpdateSettings, updateClusterInfo } from '../../src/app/cluster-info/update.ts'
import { readClusterInfo, signatureState } from '../../src/bootstrap/cluster-info.ts'
import { signKubeconfig } from '../../src/bootstrap/signature.ts'
import type { Context } from '../../src/cli/context.ts'
import { systemClock } from '../../src/system/clock.ts'
import type { Certificate } from '../../src/x509/certificate.ts'
import { fakeCluster } from '../cluster/fake-cluster.ts'
import { codeOf } from '../contract/errors.ts'
import type { AccessRule } from '../fakes/api-server-access.ts'
import { clusterInfoData, clusterInfoText, putClusterInfo, putToken, someToken } from './joining.ts'
import { someCa } from './some-ca.ts'

// What `kcert cluster-info update` writes, and when it writes nothing.

const other = someCa('kubernetes', new Date())
const context = {
  clock: systemClock,
  stdinIsTerminal: false,
  stderr: new PassThrough(),
} as unknown as Context

function settingsFor(cas: readonly Certificate[], changes: Partial<UpdateSettings> = {}): UpdateSettings {
  return {
    cas,
    ...{ dryRun: false, yes: true, force: false, backup: undefined, waitMs: 60_000, timeoutMs: 60_000 },
    ...changes,
  }
}

async function stage(options: Parameters<typeof fakeCluster>[0] = {}, user?: { username: string }) {
  const found = await fakeCluster(options, user && { user })
  const token = someToken()
  putToken(found.server, token)
  putClusterInfo(found.server, [token])
  const ca = found.server.signingCa.certificate
  const update = (changes: Partial<UpdateSettings> = {}, cas = [other.certificate, ca]) =>
    updateClusterInfo(found.cluster, settingsFor(cas, changes), context)
  const data = () => clusterInfoData(found.server)
  const writes = () => found.server.calls.filter(({ verb }) => verb === 'update')
  return { ...found, token, ca, update, data, writes }
}

test('changes only the CAs: comments, order and other fields stay, and every signature is valid', async () => {
  const { server, token, update, data } = await stage()
  const before = data().kubeconfig!
  const { report, exit } = await update()
  expect(exit).toBe(0)
  expect(report.outcome).toBe('updated')
  const after = data()
  const line = /certificate-authority-data: \S+/
  expect(after.kubeconfig!.replace(line, '')).toBe(before.replace(line, ''))
  const info = await readClusterInfo(after)
  expect(info.cas.map(({ fingerprintSha256 }) => fingerprintSha256)).toEqual([
    other.certificate.fingerprintSha256,
    server.signingCa.certificate.fingerprintSha256,
  ])
  expect(signatureState(info, token)).toBe('valid')
  expect(report.signatures).toEqual([{ tokenId: token.id, state: 'valid' }])
  expect(report.diff.filter((text) => /^[+-]/.test(text))).toHaveLength(2)
})

test('writes nothing when the CAs are unchanged', async () => {
  const { update, writes, ca } = await stage()
  const { report } = await update({}, [ca])
  expect([report.outcome, report.diff, writes()]).toEqual(['unchanged', [], []])
})

test('a dry run shows the change and writes nothing, neither on the server nor locally', async () => {
  const { update, writes, folder } = await stage()
  const { report, exit } = await update({ dryRun: true, yes: false, backup: join(folder, 'backup.yaml') })
  expect([exit, report.outcome, report.backup, writes()]).toEqual([0, 'would-update', undefined, []])
  expect(report.diff.some((text) => text.startsWith('+ '))).toBe(true)
})

test('rejects a CA that the served chain does not lead to, and --force writes it with a warning', async () => {
  const { update, writes } = await stage()
  expect(await codeOf(update({}, [other.certificate]))).toBe('KCERT_TRUST_LOST')
  expect(writes()).toEqual([])
  const { report } = await update({ force: true }, [other.certificate])
  expect(report.outcome).toBe('updated')
  expect(report.notices[0]).toContain('joining nodes would not trust')
})

test('writes nothing without a terminal and without --yes', async () => {
  const { update, writes } = await stage()
  expect(await codeOf(update({ yes: false }))).toBe('KCERT_UNCONFIRMED')
  expect(writes()).toEqual([])
})

test('saves the original object in the backup, ready for kubectl apply', async () => {
  const { update, folder, data } = await stage()
  const before = data()
  const backup = join(folder, 'backup.yaml')
  const { report } = await update({ backup })
  expect(report.backup).toBe(backup)
  const { parse } = await import('yaml')
  expect(parse(readFileSync(backup, 'utf8'))).toEqual({
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: {
      name: 'cluster-info',
      namespace: 'kube-public',
      annotations: { 'example.com/owner': 'ops' },
    },
    data: before,
  })
})

test('accepts signatures that the signer writes during the update', async () => {
  const { server, token, update, data, writes } = await stage()
  server.faults.add({ kind: 'conflict', verb: 'update', resource: 'configmaps', times: 2 })
  const { report } = await update()
  expect([report.outcome, writes().length]).toEqual(['updated', 3])
  expect(signatureState(await readClusterInfo(data()), token)).toBe('valid')
})

test('never overwrites a concurrent change of the text', async () => {
  const { server, token, cluster, data } = await stage()
  const theirs = clusterInfoText(server).replace('OPS-17', 'OPS-18')
  const get = cluster.objects.get
  let isFirst = true
  // Between the read and the write.
  const meddled = {
    ...cluster,
    connection: cluster.connection,
    objects: {
      ...cluster.objects,
      get: async (resource: Parameters<typeof get>[0]) => {
        const object = await get(resource)
        if (resource.name === 'cluster-info' && isFirst) {
          isFirst = false
          putClusterInfo(server, [token], theirs)
        }
        return object
      },
    },
  }
  const settings = settingsFor([other.certificate, server.signingCa.certificate])
  expect(await codeOf(updateClusterInfo(meddled, settings, context))).toBe('KCERT_API_CONFLICT')
  expect(data().kubeconfig).toBe(theirs)
})

test('without permission to read tokens, removes the signatures and waits until the signer restores them', async () => {
  const rules: AccessRule[] = [
    { user: 'ops', verbs: ['get', 'update'], groups: [''], resources: ['configmaps'] },
  ]
  const { server, token, update, data } = await stage({ rules }, { username: 'ops' })
  const key = `jws-kubeconfig-${token.id}`
  const signer = setInterval(() => {
    const { kubeconfig, ...rest } = data()
    if (!(key in rest)) putClusterInfo(server, [token], kubeconfig)
  }, 50)
  try {
    const { report } = await update()
    expect(report.outcome).toBe('updated')
    expect(report.signatures).toEqual([{ tokenId: token.id, state: 'unknown' }])
    expect(data()[key]).toBe(signKubeconfig(data().kubeconfig!, token))
  } finally {
    clearInterval(signer)
  }
})

test('reports a signature that does not arrive in time, with the command to check it', async () => {
  const rules: AccessRule[] = [
    { user: 'ops', verbs: ['get', 'update'], groups: [''], resources: ['configmaps'] },
  ]
  const { update } = await stage({ rules }, { username: 'ops' })
  expect(await codeOf(update({ waitMs: 1 }))).toBe('KCERT_CLUSTER_INFO_UNSIGNED')
})

test('does not sign when more than the CA is wrong', async () => {
  const { server, update, writes } = await stage()
  putClusterInfo(
    server,
    [],
    clusterInfoText(server).replace('users: null', 'users: [{name: a, user: {token: t}}]'),
  )
  expect(await codeOf(update())).toBe('KCERT_EDIT_REFUSED')
  expect(writes()).toEqual([])
})
