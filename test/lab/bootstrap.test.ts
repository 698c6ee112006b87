import { copyFileSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { BootstrapProgress } from '../../src/bootstrap/progress-report.ts'
import { kcertBeside, type Session } from '../scripts/program.ts'
import { until } from './command.ts'
import { type Cluster, describeOnCluster, openCluster } from './fixture.ts'

// How nodes join a real cluster. One uses kcert's own bootstrap kubeconfig and stops at several steps. Others use kubeadm join
// with the CA cert hash of the old CA or the new CA while cluster-info has both.

describeOnCluster('bootstrap', () => {
  let cluster: Cluster & { close(): Promise<void> }
  let folder: string
  const kcert = (args: readonly string[], stdin = ''): Promise<Session> =>
    kcertBeside(args, { cwd: folder, stdin, env: { KUBECONFIG: cluster.kubeconfig } })
  const done = async (args: readonly string[], stdin = ''): Promise<string> => {
    const { exit, stdout, stderr } = await kcert(args, stdin)
    expect(exit, `kcert ${args.join(' ')}\n${stderr}${stdout}`).toBe(0)
    return stdout
  }
  const progress = async (node: string, tokenId?: string): Promise<BootstrapProgress> => {
    const id = tokenId === undefined ? [] : ['--token-id', tokenId]
    const { stdout, stderr } = await kcert(['bootstrap', 'check', node, ...id, '-o', 'json'])
    expect(stderr).toBe('')
    return JSON.parse(stdout) as BootstrapProgress
  }
  const stopsAt = (step: string, tokenId: string): Promise<void> =>
    until(`w1 stops at ${step}`, 300_000, async () => (await progress('w1', tokenId)).stoppedAt === step)

  /** A kubelet on a busy machine may be Not Ready for a moment. */
  const arrives = (node: string, tokenId?: string): Promise<void> =>
    until(`${node} has joined`, 300_000, async () => (await progress(node, tokenId)).verdict === 'joined')

  beforeAll(async () => {
    cluster = await openCluster({ controlPlanes: 1, workers: 1 })
    folder = mkdtempSync(join(tmpdir(), 'kcert-bootstrap-'))
  })
  afterAll(async () => {
    if (folder) rmSync(folder, { recursive: true })
    await cluster?.close()
  })

  /** Creates a token and a bootstrap kubeconfig with kcert, for a kubelet on w1 that has nothing else. */
  async function bootstrapAgain(): Promise<string> {
    await done(['token', 'create', '--ttl', '15m', '-o', 'token', '--out', 'token', '--force'])
    const id = readFileSync(join(folder, 'token'), 'utf8').slice(0, 6)
    await until('the token signs', 180_000, async () => {
      const { stdout } = await kcert(['token', 'check', id, '-o', 'json'])
      return (JSON.parse(stdout) as { checks: { id: string; outcome: string }[] }).checks.some(
        (check) => check.id === 'signature' && check.outcome === 'ok',
      )
    })
    const out = ['--out', 'bootstrap-kubelet.conf', '--force']
    await done(['bootstrap', 'kubeconfig', '--token-file', 'token', ...out])
    await cluster.onNode('w1', ['systemctl', 'stop', 'kubelet'])
    await cluster.onNode('w1', ['sh', '-c', 'rm -rf /etc/kubernetes/kubelet.conf /var/lib/kubelet/pki'])
    copyFileSync(
      join(folder, 'bootstrap-kubelet.conf'),
      cluster.hostPath('w1', '/etc/kubernetes/bootstrap-kubelet.conf'),
    )
    // Each of these objects is a sign that w1 got further. The garbage collector would delete the objects of an old Node only
    // later.
    for (const own of [['node'], ['csinode'], ['lease', '-n', 'kube-node-lease']])
      await cluster.kubectl(['delete', ...own, 'w1', '--ignore-not-found'])
    await cluster.kubectl(['delete', 'csr', '--all'])
    return id
  }

  const startKubelet = () => cluster.onNode('w1', ['systemctl', 'restart', 'kubelet'], { mayFail: true })

  /** An API server accepts a token for ten seconds after its last use. `token check` uses it. */
  const isForgotten = () => {
    const asBearer = ['--kubeconfig', join(folder, 'bootstrap-kubelet.conf'), 'auth', 'whoami']
    return until('the deleted token is taken no more', 180_000, async () => {
      const { code, stderr } = await cluster.kubectl(asBearer, { mayFail: true })
      return code !== 0 && stderr.includes('Unauthorized')
    })
  }

  test("kubeadm's cluster-info is valid, and its tokens let nodes join", async () => {
    await done(['token', 'create', '--ttl', '15m', '-o', 'token', '--out', 'first-token'])
    await until('it is signed for', 180_000, async () => {
      return (await kcert(['token', 'check', '--token-file', 'first-token'])).exit === 0
    })
    const stdout = await done([
      'cluster-info',
      'verify',
      '--ca',
      cluster.hostPath('cp1', '/etc/kubernetes/pki/ca.crt'),
    ])
    expect(stdout).not.toMatch(/^ {2}(?:NO|\?)/m)
    await arrives('w1')
  })

  test('reports the step at which a node is stopped, and the node joins after each repair', async () => {
    const gone = await bootstrapAgain()
    await done(['token', 'delete', gone])
    await isForgotten()
    await startKubelet()
    await stopsAt('token', gone)

    const id = await bootstrapAgain()
    await cluster.kubectl(['delete', 'clusterrolebinding', 'kubeadm:kubelet-bootstrap'])
    await startKubelet()
    await stopsAt('binding', id)

    await cluster.kubectl(['delete', 'clusterrolebinding', 'kubeadm:node-autoapprove-bootstrap'])
    const rbac = await done(['bootstrap', 'rbac', '-o', 'json'])
    const { items } = JSON.parse(rbac) as { items: { metadata: { name: string } }[] }
    const binding = items.find(({ metadata }) => metadata.name === 'kubeadm:kubelet-bootstrap')
    await cluster.kubectl(['apply', '-f', '-'], { input: JSON.stringify(binding) })
    await startKubelet()
    await stopsAt('approval', id)
    const waiting = await progress('w1', id)
    const approval = waiting.steps.find((step) => step.id === 'approval')!
    expect(approval.next).toBe('kcert bootstrap rbac -o yaml | kubectl apply -f -')
    const name = /^(\S+) is pending/.exec(approval.detail)?.[1] ?? ''
    expect(name).not.toBe('')

    // Without the right, no approver approves it, and neither does kcert.
    expect((await kcert(['csr', 'approve', name])).exit).toBe(5)
    await cluster.kubectl(['apply', '-f', '-'], { input: await done(['bootstrap', 'rbac', '-o', 'yaml']) })
    // kube-controller-manager may be faster.
    await kcert(['csr', 'approve', name])
    await arrives('w1', id)
    expect((await kcert(['token', 'check', id])).exit).toBe(0)
  })

  test('while cluster-info has both CAs, the CA cert hash of either lets a node join', async () => {
    const oldCa = cluster.hostPath('cp1', '/etc/kubernetes/pki/ca.crt')
    await done(['ca', 'init', '--cn', 'kubernetes', '--out', 'new.crt', '--key-out', 'new.key'])
    const both = ['cluster-info', 'update', '--ca', 'new.crt', '--ca', oldCa]
    expect((await kcert(['cluster-info', 'update', '--ca', 'new.crt', '--yes'])).exit).toBe(5)
    await done([...both, '--yes', '--backup', 'before.yaml'])
    const pinOf = async (file: string) => (await done(['cluster-info', 'pin', file, '-o', 'pin'])).trim()

    await cluster.join('w2', { pin: await pinOf('new.crt') })
    await arrives('w2')
    await cluster.join('w3', { pin: await pinOf(oldCa) })
    await arrives('w3')

    await until('every signature is valid', 180_000, async () => {
      const { stdout } = await kcert(['cluster-info', 'show', '-o', 'json'])
      const { signatures } = JSON.parse(stdout) as { signatures: { state: string }[] }
      return signatures.every(({ state }) => state === 'valid')
    })
    await cluster.kubectl(['apply', '-f', join(folder, 'before.yaml')])
    await until('it is signed as before', 180_000, async () => {
      return (await kcert(['cluster-info', 'verify', '--ca', oldCa])).exit === 0
    })
  })
})
