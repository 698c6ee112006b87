import { copyFileSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { BootstrapProgress } from '../../src/bootstrap/progress-report.ts'
import { kcertBeside, type Session } from '../scripts/program.ts'
import { until } from './command.ts'
import { type Cluster, describeOnCluster, openCluster } from './fixture.ts'

// How nodes come into a real cluster: by kcert's own bootstrap kubeconfig, stopped at several steps on the way; and by kubeadm join
// with a pin of the old CA or of the new one while cluster-info holds both.

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
    until(`${node} has arrived`, 300_000, async () => (await progress(node, tokenId)).verdict === 'arrived')

  beforeAll(async () => {
    cluster = await openCluster({ controlPlanes: 1, workers: 1 })
    folder = mkdtempSync(join(tmpdir(), 'kcert-bootstrap-'))
  })
  afterAll(async () => {
    if (folder) rmSync(folder, { recursive: true })
    await cluster?.close()
  })

  /** A token and a bootstrap kubeconfig by kcert, and a kubelet on w1 that has nothing else. */
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
    // Each of them is a sign that w1 came further. What an old Node owns would go only when the garbage collector looks.
    for (const own of [['node'], ['csinode'], ['lease', '-n', 'kube-node-lease']])
      await cluster.kubectl(['delete', ...own, 'w1', '--ignore-not-found'])
    await cluster.kubectl(['delete', 'csr', '--all'])
    return id
  }

  const startKubelet = () => cluster.onNode('w1', ['systemctl', 'restart', 'kubelet'], { mayFail: true })

  /** An API server goes on taking a token that it took in the last ten seconds, as `token check` has it do. */
  const isForgotten = () => {
    const asBearer = ['--kubeconfig', join(folder, 'bootstrap-kubelet.conf'), 'auth', 'whoami']
    return until('the deleted token is taken no more', 180_000, async () => {
      const { code, stderr } = await cluster.kubectl(asBearer, { mayFail: true })
      return code !== 0 && stderr.includes('Unauthorized')
    })
  }

  test('what kubeadm has made is right, and its tokens let newcomers in', async () => {
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

  test('a node that was stopped at each step is found there, and arrives when it is mended', async () => {
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
    const [, name = ''] = /kcert csr approve (\S+)$/.exec(approval.next ?? '')!

    // Without the right nobody approves it, kcert neither.
    expect((await kcert(['csr', 'approve', name])).exit).toBe(5)
    await cluster.kubectl(['apply', '-f', '-'], { input: await done(['bootstrap', 'rbac', '-o', 'yaml']) })
    // kube-controller-manager may be quicker.
    await kcert(['csr', 'approve', name])
    await arrives('w1', id)
    expect((await kcert(['token', 'check', id])).exit).toBe(0)
  })

  test('while cluster-info holds both CAs, a pin of the new one and a pin of the old one let a node join', async () => {
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

    await until('every signature stands', 180_000, async () => {
      const { stdout } = await kcert(['cluster-info', 'show', '-o', 'json'])
      const { signatures } = JSON.parse(stdout) as { signatures: { state: string }[] }
      return signatures.every(({ state }) => state === 'stands')
    })
    await cluster.kubectl(['apply', '-f', join(folder, 'before.yaml')])
    await until('it is signed as before', 180_000, async () => {
      return (await kcert(['cluster-info', 'verify', '--ca', oldCa])).exit === 0
    })
  })
})
