import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pMap from 'p-map'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Cluster as Connection } from '../../src/cluster/cluster.ts'
import { type Acted, actOn } from '../../src/csr/approval/acting.ts'
import { evaluateByHand } from '../../src/csr/approval/evaluation.ts'
import { noFacts } from '../../src/csr/approval/facts.ts'
import type { RequestObject } from '../../src/csr/requests-api.ts'
import { generatePrivateKey } from '../../src/x509/new-key.ts'
import { openWith } from '../contract/stage.ts'
import { requestPem, someKey } from '../csr/made-requests.ts'
import { filesOfGuide } from '../guides/blocks.ts'
import { kcertBeside, type Session } from '../scripts/program.ts'
import { until } from './command.ts'
import { runFromCheckout } from './cron-jobs.ts'
import { type Cluster, describeOnCluster, openCluster } from './fixture.ts'

// Approvers and signers on a real API server, for behavior that the fake does not cover.

describeOnCluster('approval', () => {
  let cluster: Cluster & { close(): Promise<void> }
  let connection: Connection
  let folder: string
  const kcert = (args: readonly string[], stdin = ''): Promise<Session> =>
    kcertBeside(args, { cwd: folder, stdin, env: { KUBECONFIG: cluster.kubeconfig } })

  beforeAll(async () => {
    cluster = await openCluster({ controlPlanes: 1, workers: 1 })
    folder = mkdtempSync(join(tmpdir(), 'kcert-approval-'))
    connection = await openWith(cluster.kubeconfig)
  })
  afterAll(async () => {
    connection?.close()
    if (folder) rmSync(folder, { recursive: true })
    await cluster?.close()
  })

  test('never approves a swapped object, in 1,000 attempts', async () => {
    const api = connection.requests
    const pem = (key = someKey): string =>
      Buffer.from(requestPem({ subject: { commonName: 'swap' } }, key)).toString('base64')
    const [honest, foreign] = [pem(), pem(generatePrivateKey({ algorithm: 'ECDSA', curve: 'P-256' }))]
    const make = (name: string, request: string): RequestObject => ({
      metadata: { name },
      spec: { request, signerName: 'example.com/swap', usages: ['client auth'] },
    })
    const doing = {
      act: 'approve',
      evaluate: evaluateByHand('approve', noFacts, false),
      conditionFor: () => ({ reason: 'Test', message: 'by a test' }),
    } as const
    const outcomes: Record<string, number> = {}
    const expected = ['approved', 'changed', 'deleted']
    const race = async (index: number): Promise<void> => {
      const name = `swap-${index}`
      const object = await api.create(make(name, honest))
      const approve = async (): Promise<Acted> =>
        actOn(api, { object, evaluation: await doing.evaluate(object) }, doing)
      const swap = async (): Promise<void> => {
        await new Promise((resolve) => setTimeout(resolve, (index % 20) * 0.5))
        await connection.objects.delete({
          group: 'certificates.k8s.io',
          version: 'v1',
          resource: 'certificatesigningrequests',
          name,
        })
        await api.create(make(name, foreign))
      }
      const [{ outcome }] = await Promise.all([approve(), swap()])
      outcomes[outcome] = (outcomes[outcome] ?? 0) + 1
      const after = (await api.get(name))!
      expect(after.spec.request).toBe(foreign)
      expect(after.status?.conditions ?? []).toEqual([])
    }
    await pMap(
      Array.from({ length: 1_000 }, (_, index) => index),
      race,
      { concurrency: 8 },
    )
    process.stderr.write(`swapped objects: ${JSON.stringify(outcomes)}\n`)
    // The swap came early, and late.
    expect(outcomes.approved).toBeGreaterThan(0)
    expect((outcomes.changed ?? 0) + (outcomes.deleted ?? 0)).toBeGreaterThan(0)
    expect(Object.keys(outcomes).filter((name) => !expected.includes(name))).toEqual([])
  })

  test('a user approved by kcert gets a certificate from kube-controller-manager', async () => {
    const made = await kcert([
      'csr',
      'create',
      '--user',
      'ann',
      '--key-out',
      'ann.key',
      '-o',
      'manifest',
      '--out',
      'ann.yaml',
    ])
    expect(made.exit).toBe(0)
    await cluster.kubectl(['create', '-f', join(folder, 'ann.yaml')])
    const { exit, stdout } = await kcert(['csr', 'approve', '-f', 'ann.yaml'])
    expect([exit, stdout]).toEqual([0, expect.stringContaining('approved')])
    const name = /^\s*name: (\S+)$/m.exec(readFileSync(join(folder, 'ann.yaml'), 'utf8'))![1]!
    await until('the certificate is issued', 180_000, async () => {
      const object = await connection.requests.get(name)
      return object?.status?.certificate !== undefined
    })
  })

  test('a custom signer signs approved requests, and the API server accepts the certificate', async () => {
    await kcert(['ca', 'init', '--cn', 'My Example Signer', '--out', 'ca.pem', '--key-out', 'ca-key.pem'])
    const names = ['--dns', 'my-svc.ns.svc.cluster.local', '--ip', '192.0.2.24', '--name', 'my-svc']
    const signer = ['--signer', 'example.com/serving', '--usage', 'digital signature,server auth']
    const made = await kcert([
      ...['csr', 'create', '--cn', 'my-svc', ...names, ...signer],
      ...['--key-out', 'svc.key', '-o', 'manifest', '--out', 'svc.yaml'],
    ])
    expect(made.stderr + made.exit).toBe('0')
    await cluster.kubectl(['create', '-f', join(folder, 'svc.yaml')])
    const pair = ['--ca', 'ca.pem', '--ca-key', 'ca-key.pem']
    expect((await kcert(['ca', 'sign', '--csr', 'my-svc', ...pair])).exit).toBe(3)
    expect((await kcert(['csr', 'approve', 'my-svc'])).exit).toBe(0)
    const signed = await kcert(['ca', 'sign', '--csr-signer', 'example.com/serving', ...pair])
    expect([signed.exit, signed.stdout]).toEqual([0, expect.stringMatching(/my-svc +signed/)])
    const { stdout } = await cluster.kubectl(['get', 'csr', 'my-svc', '-o', 'jsonpath={.status.certificate}'])
    writeFileSync(join(folder, 'svc.crt'), Buffer.from(stdout, 'base64'))
    execFileSync('openssl', ['verify', '-x509_strict', '-CAfile', 'ca.pem', 'svc.crt'], { cwd: folder })
    expect(readFileSync(join(folder, 'ca.issuance-log.jsonl'), 'utf8').trim().split('\n')).toHaveLength(2)
  })

  test('the CronJob of the guide approves only the serving certificate of a new node', async () => {
    const files = filesOfGuide('approve-kubelet-serving')
    const policy = files['policy.yaml']!.replace('api.example.com', cluster.endpoint.split(':')[0]!)
    writeFileSync(join(folder, 'policy.yaml'), policy)
    writeFileSync(join(folder, 'rbac.yaml'), files['rbac.yaml']!)
    writeFileSync(join(folder, 'cronjob.yaml'), runFromCheckout(files['cronjob.yaml']!))
    const map = ['create', 'configmap', 'kcert-approver', '-n', 'kube-system']
    await cluster.kubectl([...map, `--from-file=${join(folder, 'policy.yaml')}`])
    await cluster.kubectl(['apply', '-f', join(folder, 'rbac.yaml'), '-f', join(folder, 'cronjob.yaml')])

    // A node that requests the load balancer's address.
    const impostor = [
      'csr',
      'create',
      '--kubelet-serving',
      'w1',
      '--dns',
      'w1',
      '--ip',
      cluster.endpoint.split(':')[0]!,
    ]
    const made = await kcert([
      ...impostor,
      '--name',
      'impostor',
      '--key-out',
      'i.key',
      '-o',
      'manifest',
      '--out',
      'i.yaml',
    ])
    expect(made.stderr + made.exit).toBe('0')
    const asNode = ['--as=system:node:w1', '--as-group=system:nodes', '--as-group=system:authenticated']
    await cluster.kubectl(['create', '-f', join(folder, 'i.yaml'), ...asNode])

    await cluster.join('w2', { isApprovedElsewhere: true })
    const requests = await list(connection)
    const ofNode = requests.filter(
      ({ spec }) => spec.username === 'system:node:w2' && spec.signerName === 'kubernetes.io/kubelet-serving',
    )
    expect(ofNode.length).toBeGreaterThan(0)
    const approvals = ofNode.flatMap(({ status }) => status?.conditions ?? [])
    expect(approvals.map(({ reason }) => reason)).toContain('ApprovedByPolicy')
    expect(approvals[0]!.message).toBe(
      'kcert csr approve: kubelet-serving: all rules of kubelet-serving are met',
    )

    const left = requests.find(({ metadata }) => metadata.name === 'impostor')!
    expect(left.status?.conditions ?? []).toEqual([])
    const shown = await kcert(['csr', 'approve', '--policy', 'policy.yaml', '--dry-run'])
    expect([shown.exit, shown.stdout]).toEqual([3, expect.stringContaining('impostor')])
    expect((await kcert(['csr', 'approve', 'impostor'])).exit).toBe(5)
  })

  test("the guide's timer does the same as its own user, with only the rights in the guide", async () => {
    await cluster.kubectl([
      'patch',
      'cronjob',
      'kcert-approver',
      '-n',
      'kube-system',
      '-p',
      '{"spec":{"suspend":true}}',
    ])
    const own = ['--key-out', 'approver.key', '--out', 'approver.crt', '--kubeconfig-out', 'approver.conf']
    const asking = kcert(['csr', 'request', '--user', 'kcert-approver', '--name', 'approver', ...own])
    await until('the approver has asked', 120_000, async () => {
      return (await connection.requests.get('approver')) !== undefined
    })
    await cluster.kubectl(['certificate', 'approve', 'approver'])
    expect((await asking).exit).toBe(0)

    const { address } = cluster.nodes().find(({ name }) => name === 'w1')!
    const honest = ['--kubelet-serving', 'w1', '--dns', 'w1', '--ip', address, '--name', 'honest']
    const files = ['--key-out', 'h.key', '-o', 'manifest', '--out', 'h.yaml']
    expect((await kcert(['csr', 'create', ...honest, ...files])).exit).toBe(0)
    const asNode = ['--as=system:node:w1', '--as-group=system:nodes', '--as-group=system:authenticated']
    await cluster.kubectl(['create', '-f', join(folder, 'h.yaml'), ...asNode])

    const service = filesOfGuide('approve-kubelet-serving')['kcert-approve.service']!
    const [, line = ''] = /^ExecStart=\S*\/kcert (.*)$/m.exec(service) ?? []
    const words = line.replaceAll('/etc/kcert/', `${folder}/`).split(' ')
    const done = await kcertBeside(words, { cwd: folder })
    // Exit code 3: the impostor is skipped. The unit treats that as success.
    expect([done.exit, service]).toEqual([3, expect.stringContaining('SuccessExitStatus=3')])
    expect(done.stdout).toMatch(/honest +approved/)
    expect(done.stdout).toMatch(/impostor +skipped/)
    const { stdout } = await cluster.kubectl([
      'get',
      'csr',
      'impostor',
      '-o',
      'jsonpath={.status.conditions}',
    ])
    expect(stdout).toBe('')
  })
})

async function list(connection: Connection): Promise<RequestObject[]> {
  const found = []
  for await (const request of connection.requests.list()) found.push(request)
  return found
}
