import { copyFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { Browser, chromium } from '../reports/browser.ts'
import { expectPageOfKilledRotation } from '../reports/page-rules.ts'
import type { KeyPair } from './certificates.ts'
import { describeOnCluster, openCluster } from './fixture.ts'
import { issueAdministrator } from './prober.ts'
import {
  answersToOldCertificate,
  holdersOf,
  holdersOfKey,
  nodeFiles,
  oldCaOf,
  oldKeyOf,
  staticPods,
} from './rotation-aftermath.ts'
import { killedCode, RotationOperator } from './rotation-operator.ts'

// An interrupted rotation: rolled back from two of its phases, then killed in two, and completed. The tests form one sequence on
// one cluster, in this order.

describeOnCluster('kcert rotate-ca, interrupted', () => {
  let cluster: Awaited<ReturnType<typeof openCluster>>
  let operator: RotationOperator
  let first: { files: Record<string, string>; objects: string; oldCa: string; oldKey: string }
  let oldClient: KeyPair

  beforeAll(async () => {
    cluster = await openCluster({ controlPlanes: 1, workers: 1 })
    operator = await RotationOperator.open(cluster)
    const oldCa = oldCaOf(cluster)
    oldClient = await issueAdministrator(cluster.spec)
    first = { files: nodeFiles(cluster), objects: await publicObjects(), oldCa, oldKey: oldKeyOf(cluster) }
  })
  afterAll(async () => {
    operator?.close()
    await cluster?.close()
  })

  /** Returns the API objects that kcert writes, without resource versions. */
  const publicObjects = async (): Promise<string> => {
    const parts = await Promise.all(
      [
        ['-n', 'kube-public', 'get', 'configmap', 'cluster-info', '-o', 'jsonpath={.data.kubeconfig}'],
        ['-n', 'kube-system', 'get', 'configmap', 'kubeadm-config', '-o', 'jsonpath={.data}'],
        ['-n', 'default', 'get', 'configmap', 'kube-root-ca.crt', '-o', 'jsonpath={.data}'],
      ].map((args) => cluster.kubectl(args)),
    )
    return parts.map(({ stdout }) => stdout).join('\n')
  }

  test.each([5, 9])('after a rollback from phase %i, every file has its original bytes', async (phase) => {
    await operator.run(['--through', String(phase)])
    expect(nodeFiles(cluster)).not.toEqual(first.files)
    await operator.must(['rollback', '--to', '0', '--yes'])
    // The hook uses the administrator's new kubeconfig. After a rollback, the valid one is at the original path.
    copyFileSync(cluster.hostPath('cp1', '/etc/kubernetes/admin.conf'), cluster.kubeconfig)
    const now = nodeFiles(cluster)
    expect(Object.keys(now).filter((name) => now[name] !== first.files[name])).toEqual([])
    expect(Object.keys(now)).toEqual(Object.keys(first.files))
    expect(await publicObjects()).toBe(first.objects)
    await cluster.kubectl(['wait', 'node', '--all', '--for=condition=Ready', '--timeout=180s'])
  })

  test.each([
    [2, /done write cp1:\/etc\/kubernetes\/manifests\/kube-controller-manager\.yaml/],
    [9, /done write \S+:\/var\/lib\/kubelet\/pki\//],
  ])('the same command continues after a kill in phase %i and completes as without it', async (phase, at) => {
    const args = ['--through', String(phase), '--yes']
    expect((await operator.kcert(args, at)).code).toBe(killedCode)
    // In phase 2, the kubelet may complete the rest before the check.
    if (phase === 9) await expectPage(phase)
    await operator.must(args)
  })

  const expectPage = async (phase: number): Promise<void> => {
    const { stdout } = await operator.must(['status', '-o', 'html'])
    expectPageOfKilledRotation(stdout, phase)
    if (chromium === undefined) return
    const file = join(operator.folder, 'status.html')
    writeFileSync(file, stdout)
    const browser = new Browser(chromium)
    try {
      await browser.start()
      for (const width of [320, 1280]) {
        await browser.show(file, width, 'light')
        expect(await browser.shownWidth()).toBeLessThanOrEqual(width)
      }
    } finally {
      await browser.close()
    }
  }

  test('completes the remaining phases, and the cluster is as kubeadm would create it', async () => {
    await operator.run(['--through', '12'])
    expect(staticPods(cluster)).toEqual(
      Object.fromEntries(
        Object.keys(staticPods(cluster)).map((name) => {
          const [node, manifest] = name.split('/')
          return [name, first.files[`${node}:/etc/kubernetes/manifests/${manifest}.yaml 600`]]
        }),
      ),
    )
    expect(Object.keys(nodeFiles(cluster)).filter((name) => name.includes('kcert'))).toEqual([])
    const kubeadm = await cluster.onNode('cp1', ['kubeadm', 'certs', 'check-expiration'])
    expect(kubeadm.stdout).not.toMatch(/invalid|MISSING/i)
  })

  test("the old CA's key is deleted on every node, and the cluster is healthy", async () => {
    expect(holdersOfKey(cluster, first.oldKey)).toEqual([expect.stringMatching(/^cp1:\/var\/lib\/kcert\//)])
    await operator.must(['--destroy-old-key', '--yes'])
    expect(holdersOfKey(cluster, first.oldKey)).toEqual([])
    const again = await operator.must(['--destroy-old-key', '--yes'])
    expect(again.stdout).toContain('nothing left to do')
    await cluster.kubectl(['wait', 'node', '--all', '--for=condition=Ready', '--timeout=180s'])
  })

  test('a worker joins, and trusts only the new CA', async () => {
    await cluster.join('w2')
    expect(await holdersOf(cluster, first.oldCa)).toEqual([])
    const answers = await answersToOldCertificate(cluster, oldClient)
    expect(Object.entries(answers).filter(([, status]) => status !== '401')).toEqual([])
    expect(Object.keys(answers)).toContain('w2/kubelet')
  })
})
