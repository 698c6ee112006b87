import { execFileSync } from 'node:child_process'
import { X509Certificate } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { connect, createServer } from 'node:tls'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { PodRequest } from '../../src/csr/pods/report.ts'
import type { InspectionReport } from '../../src/inspection/report.ts'
import { kcertBeside, type Session } from '../scripts/program.ts'
import { run } from './command.ts'
import { type Cluster, describeOnCluster, openCluster } from './fixture.ts'
import { kubectlCommand } from './kubectl.ts'
import { defaultMinor, releases } from './spec.ts'

// The requester's and reader's commands with a real API server and a real kube-controller-manager.

const binding = 'kubeadm:node-autoapprove-bootstrap'

describeOnCluster('the life of a request', () => {
  let lab: Cluster & { close(): Promise<void> }
  let folder: string
  beforeAll(async () => {
    lab = await openCluster({ controlPlanes: 1, workers: 1 })
    folder = mkdtempSync(join(tmpdir(), 'kcert-csr-life-'))
  })
  afterAll(async () => {
    if (folder !== undefined) rmSync(folder, { recursive: true })
    await lab?.close()
  })

  const at = (file: string): string => join(folder, file)
  const kcert = (args: readonly string[], kubeconfig = lab.kubeconfig): Promise<Session> =>
    kcertBeside(args, { env: { KUBECONFIG: kubeconfig } })
  const userFiles = (name: string): string[] => ['--key-out', at(`${name}.pem`), '--out', at(`${name}.crt`)]

  test('creates a user in one run: another user approves, and the kubeconfig authenticates to the API server', async () => {
    const running = kcert([
      'csr',
      'request',
      '--user',
      'ann',
      '--org',
      'dev',
      ...userFiles('ann'),
      '--kubeconfig-out',
      at('ann.conf'),
    ])
    await until(async () => (await kcert(['csr', 'describe', 'ann'])).exit === 0)
    await lab.kubectl(['certificate', 'approve', 'ann'])
    expect(await running).toMatchObject({ exit: 0 })
    const { stdout } = await lab.kubectl(['--kubeconfig', at('ann.conf'), 'auth', 'whoami', '-o', 'json'])
    expect(JSON.parse(stdout).status.userInfo).toMatchObject({
      username: 'ann',
      groups: ['dev', 'system:authenticated'],
    })

    const described = await kcert(['csr', 'describe', 'ann', '-o', 'json'])
    const [request] = JSON.parse(described.stdout).requests
    expect(request).toMatchObject({ state: 'issued', condition: 'Approved,Issued' })
    expect(request.certificates[0].extendedKeyUsage).toEqual(['clientAuth'])
    const { stdout: printed } = await lab.kubectl(['get', 'csr', 'ann', '--no-headers'])
    expect(printed).toContain(request.condition)
  })

  test('for a user without rights, each refusal names the command that grants the missing right, until all steps succeed', async () => {
    const [kubectl = ''] = await kubectlCommand([])
    const path = [dirname(kubectl), process.env.PATH].join(':')
    const env = { PATH: path, HOME: folder, KUBECONFIG: lab.kubeconfig }
    const rights: string[] = []
    const doAsAnn = async (...args: string[]): Promise<void> => {
      await until(async () => {
        const { exit, stdout, stderr } = await kcert(args, at('ann.conf'))
        if (exit === 0) return true
        const [, command] = /(?:next: (?=kubectl create)|fix: .* run: )(.*)/.exec(stdout + stderr) ?? []
        expect(command, stdout + stderr).toBeDefined()
        // The API server may not have observed a right that was just granted.
        if (rights.includes(command!)) return false
        rights.push(command!)
        await run(['bash', '-c', command!.replaceAll('USER', 'ann')], { env })
        return false
      })
    }
    const submit = ['csr', 'submit', at('ann.csr'), '--signer']
    const ca = ['--ca', at('rights-ca.pem'), '--ca-key', at('rights-ca.key')]
    expect(
      (
        await kcert([
          'ca',
          'init',
          '--cn',
          'x',
          '--out',
          at('rights-ca.pem'),
          '--key-out',
          at('rights-ca.key'),
        ])
      ).exit,
    ).toBe(0)
    await doAsAnn('csr', 'list')
    await doAsAnn('csr', 'describe', 'ann')
    await doAsAnn(...submit, 'kubernetes.io/kube-apiserver-client', '--name', 'ann-2')
    await doAsAnn('csr', 'approve', 'ann-2')
    await doAsAnn(...submit, 'example.com/rights', '--usage', 'client auth', '--name', 'ann-3')
    await doAsAnn('csr', 'approve', 'ann-3')
    await doAsAnn('ca', 'sign', '--csr', 'ann-3', ...ca, '--usage', 'client auth')
    const given = rights.map((command) => /create clusterrolebinding (\S+)/.exec(command)?.[1])
    expect(given).toEqual([
      'list-certificatesigningrequests',
      'get-certificatesigningrequests',
      'create-certificatesigningrequests',
      'update-certificatesigningrequests-approval',
      'approve-kubernetes.io:kube-apiserver-client',
      'approve-example.com:rights',
      'update-certificatesigningrequests-status',
      'sign-example.com:rights',
    ])
  })

  test('escapes a name that would move the cursor and that the API server accepts, and the command of explain denies it', async () => {
    const name = 'evil\u001b[31m\u202e\n; id'
    const request = Buffer.from(readFileSync(at('ann.csr'))).toString('base64')
    const spec = { request, signerName: 'example.com/evil', usages: ['client auth'] }
    const object = {
      apiVersion: 'certificates.k8s.io/v1',
      kind: 'CertificateSigningRequest',
      metadata: { name },
      spec,
    }
    writeFileSync(at('evil.json'), JSON.stringify(object))
    await lab.kubectl([
      'create',
      '--raw',
      '/apis/certificates.k8s.io/v1/certificatesigningrequests',
      '-f',
      at('evil.json'),
    ])
    for (const args of [
      ['list'],
      ['list', '-o', 'name'],
      ['list', '-o', 'json'],
      ['explain', name],
      ['describe', name],
    ]) {
      const { stdout, stderr } = await kcert(['csr', ...args])
      expect(stdout).toContain('evil\\u001b')
      expect(stdout + stderr).not.toMatch(/[\u001b\u202e]/)
    }
    const denied = await kcert(['csr', 'deny', name, '--reason', 'Odd'])
    expect(denied.exit, denied.stdout + denied.stderr).toBe(0)
    expect((await kcert(['csr', 'explain', name])).stdout).toContain('DENIED')
  })

  test('does not send usages that the signer rejects; if forced and approved, the request fails, and explain names the reason', async () => {
    const made = await kcert([
      'csr',
      'create',
      '--user',
      'bea',
      '--key-out',
      at('bea.pem'),
      '--out',
      at('bea.csr'),
    ])
    expect(made.exit).toBe(0)
    const args = [
      'csr',
      'submit',
      at('bea.csr'),
      '--signer',
      'kubernetes.io/kube-apiserver-client',
      '--usage',
      'server auth',
    ]
    expect((await kcert(args)).stderr).toContain('KCERT_CSR_SIGNER_REFUSED')
    expect((await kcert([...args, '--force'])).exit).toBe(0)
    await lab.kubectl(['certificate', 'approve', 'bea'])
    const fetched = await kcert(['csr', 'fetch', 'bea', '--wait', '3m'])
    expect(fetched).toMatchObject({ exit: 3 })
    const { stdout, exit } = await kcert(['csr', 'explain', 'bea'])
    expect(exit).toBe(3)
    expect(stdout).toContain('signer-refused')
    expect(stdout).toContain('SignerValidationFailure')
    expect(stdout).toContain('it requires usage client auth')
  })

  test('for a node whose certificate may not be approved, the command of explain creates the binding, and it is issued', async () => {
    await lab.kubectl(['delete', 'clusterrolebinding', binding])
    const bootstrap = await bootstrapKubeconfig()
    const running = kcert(
      ['csr', 'request', '--kubelet-client', 'w9', ...userFiles('w9'), '--wait', '5m'],
      bootstrap,
    )
    const name = 'kubelet-client-w9'
    await until(async () => (await kcert(['csr', 'describe', name])).exit === 0)
    const explained = await kcert(['csr', 'explain', name, '-o', 'json'])
    expect(explained.exit).toBe(3)
    const { verdict, causes, unknownFacts } = JSON.parse(explained.stdout)
    expect({ verdict, unknownFacts, ids: causes.map(({ id }: { id: string }) => id) }).toEqual({
      verdict: 'stuck',
      unknownFacts: [],
      ids: ['rbac-missing'],
    })
    expect(causes[0].commands).toEqual([
      `kubectl create clusterrolebinding ${binding} --clusterrole=system:certificates.k8s.io:certificatesigningrequests:nodeclient --group=system:bootstrappers:kubeadm:default-node-token`,
    ])
    await shell(causes[0].commands[0])
    expect(await running).toMatchObject({ exit: 0 })
    const subject = execFileSync('openssl', ['x509', '-noout', '-subject', '-in', at('w9.crt')], {
      encoding: 'utf8',
    })
    expect(subject).toContain('system:node:w9')
    expect((await kcert(['csr', 'explain', name])).exit).toBe(0)
  })

  test('for an approved request of an unknown signer, explain reports that no signer may sign it', async () => {
    const made = await kcert([
      'csr',
      'create',
      '--service',
      'web.shop',
      '--key-out',
      at('web.pem'),
      '--out',
      at('web.csr'),
    ])
    expect(made.exit).toBe(0)
    const args = ['csr', 'submit', at('web.csr'), '--name', 'web', '--signer', 'example.com/serving']
    expect((await kcert([...args, '--usage', 'server auth', '--dry-run'])).stdout).toContain(
      'would be created',
    )
    expect((await kcert(['csr', 'describe', 'web'])).exit).toBe(3)
    expect((await kcert([...args, '--usage', 'server auth'])).exit).toBe(0)
    expect((await kcert([...args, '--usage', 'server auth'])).stdout).toContain('already exists')
    expect((await kcert(['csr', 'explain', 'web'])).stdout).toContain('no-approver-for-signer')
    await lab.kubectl(['certificate', 'approve', 'web'])
    const { stdout } = await kcert(['csr', 'explain', 'web'])
    expect(stdout).toContain('signer-absent')
    expect(stdout).toContain('kcert ca sign --csr web --ca ca.pem --ca-key ca-key.pem')
  })

  test('for a custom signer, the Secret and the ConfigMap that fetch creates serve TLS to clients that trust the CA', async () => {
    const ca = ['--out', at('ca.pem'), '--key-out', at('ca-key.pem')]
    expect((await kcert(['ca', 'init', '--cn', 'My Example Signer', ...ca])).exit).toBe(0)
    const sign = ['ca', 'sign', '--csr', 'web', '--ca', at('ca.pem'), '--ca-key', at('ca-key.pem')]
    expect((await kcert(sign)).stdout).toMatch(/web +signed/)
    const fetched = await kcert([
      ...['csr', 'fetch', 'web', '--key', at('web.pem'), '--ca', at('ca.pem'), '-o', 'manifest'],
      ...['--secret', 'web.default', '--configmap', 'web-ca.default', '--print-key'],
    ])
    expect(fetched.exit).toBe(0)
    await lab.kubectl(['apply', '-f', '-'], { input: fetched.stdout })
    const dataOf = async (object: string): Promise<Record<string, string>> =>
      JSON.parse((await lab.kubectl(['get', object, '-o', 'jsonpath={.data}'])).stdout)
    const [secret, trust] = [await dataOf('secret/web'), await dataOf('configmap/web-ca')]
    const [cert, key] = ['tls.crt', 'tls.key'].map((name) => Buffer.from(secret[name]!, 'base64'))
    const server = createServer({ cert: cert!, key: key! })
    server.on('tlsClientError', () => {})
    await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening))
    const { port } = server.address() as AddressInfo
    const isTrusted = (signingCa: string | undefined): Promise<boolean> =>
      new Promise((done) => {
        const socket = connect({ port, servername: 'web.shop.svc', ca: signingCa ?? [] }, () => {
          socket.destroy()
          done(true)
        })
        socket.on('error', () => done(false))
      })
    expect([await isTrusted(trust['ca.crt']), await isTrusted(undefined)]).toEqual([true, false])
    await new Promise((closed) => server.close(closed))
  })

  test('for kubelets that wait for serving certificates, list shows them, explain and check show the next step', async () => {
    const listed = await kcert(['csr', 'list', '--signer', 'kubernetes.io/kubelet-serving', '-o', 'json'])
    const { requests } = JSON.parse(listed.stdout)
    const { stdout } = await lab.kubectl([
      'get',
      'csr',
      '--field-selector',
      'spec.signerName=kubernetes.io/kubelet-serving',
      '-o',
      'name',
    ])
    expect(
      requests
        .map(({ name }: { name: string }) => `certificatesigningrequest.certificates.k8s.io/${name}`)
        .sort(),
    ).toEqual(stdout.trim().split('\n').sort())
    const [first] = requests
    const checked = await kcert(['csr', 'check', first.name, '--cluster', '-o', 'json'])
    expect(JSON.parse(checked.stdout).isSubmitted).toBe(true)
  })

  test("for a pod's certificate, shows pending without a signer, the cause if it is stuck, and the issued certificate", async (context) => {
    const { stdout: kinds } = await lab.kubectl([
      'api-resources',
      '--api-group=certificates.k8s.io',
      '-o',
      'name',
    ])
    if (!kinds.includes('podcertificaterequests')) return context.skip('this minor does not serve them')
    const source = {
      signerName: 'example.com/mesh',
      keyType: 'ECDSAP256',
      credentialBundlePath: 'bundle.pem',
    }
    const pod = {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: 'mesh', namespace: 'default' },
      spec: {
        containers: [
          {
            name: 'pause',
            image: `registry.k8s.io/pause:${releases[defaultMinor].pause}`,
            volumeMounts: [{ name: 'certificate', mountPath: '/certificate' }],
          },
        ],
        volumes: [{ name: 'certificate', projected: { sources: [{ podCertificate: source }] } }],
      },
    }
    await lab.kubectl(['apply', '-f', '-'], { input: JSON.stringify(pod) })
    const listed = async (): Promise<PodRequest[]> => {
      const { stdout, stderr } = await kcert(['csr', 'list', '--pods', '-n', 'default', '-o', 'json'])
      expect(stderr).toBe('')
      return JSON.parse(stdout).requests
    }
    await until(async () => (await listed()).length === 1)
    const [pending] = await listed()
    expect(pending).toMatchObject({
      state: 'pending',
      signerName: 'example.com/mesh',
      podName: 'mesh',
      serviceAccountName: 'default',
    })
    const name = `podcertificaterequest/${pending!.name}`
    const explained = await kcert(['csr', 'explain', name, '-n', 'default'])
    expect(explained.exit).toBe(3)
    expect(explained.stdout).toContain('signer-absent')

    const { stdout } = await lab.kubectl(['get', name, '-o', 'json'])
    const object = JSON.parse(stdout)
    writeFileSync(at('mesh.der'), Buffer.from(object.spec.stubPKCS10Request, 'base64'))
    const signing = ['-CA', at('ca.pem'), '-CAkey', at('ca-key.pem'), '-days', '1', '-out', at('mesh.pem')]
    writeFileSync(at('mesh.cnf'), 'extendedKeyUsage=clientAuth\nsubjectAltName=DNS:mesh.default\n')
    await run([
      'openssl',
      'x509',
      '-req',
      '-inform',
      'DER',
      '-in',
      at('mesh.der'),
      '-extfile',
      at('mesh.cnf'),
      ...signing,
    ])
    const { validFromDate, validToDate } = new X509Certificate(readFileSync(at('mesh.pem')))
    const middle = new Date((validFromDate.getTime() + validToDate.getTime()) / 2)
    const seconds = (date: Date): string => `${date.toISOString().slice(0, 19)}Z`
    const status = {
      conditions: [
        {
          type: 'Issued',
          status: 'True',
          reason: 'Signed',
          message: 'by a test',
          lastTransitionTime: seconds(new Date()),
        },
      ],
      certificateChain: readFileSync(at('mesh.pem'), 'utf8'),
      notBefore: seconds(validFromDate),
      beginRefreshAt: seconds(middle),
      notAfter: seconds(validToDate),
    }
    await lab.kubectl([
      'patch',
      name,
      '--subresource=status',
      '--type=merge',
      '-p',
      JSON.stringify({ status }),
    ])
    expect(await listed()).toMatchObject([{ state: 'issued', notAfter: seconds(validToDate) }])
    expect((await kcert(['csr', 'explain', name, '-n', 'default'])).exit).toBe(0)
    await lab.kubectl(['wait', 'pod', 'mesh', '--for=condition=Ready', '--timeout=180s'])
    const inspected = await kcert(['inspect', '--cluster', '-o', 'json'])
    const { certificates } = JSON.parse(inspected.stdout) as InspectionReport
    const ofPod = certificates.filter(({ source }) => source.includes(pending!.name))
    expect(ofPod).toMatchObject([{ notAfter: seconds(validToDate) }])
  })

  test('detects a stopped kube-controller-manager by its Lease', async () => {
    await kcert(['csr', 'request', '--user', 'cy', ...userFiles('cy'), '--wait', '1s'])
    const manifest = lab.hostPath('cp1', '/etc/kubernetes/manifests/kube-controller-manager.yaml')
    const text = readFileSync(manifest, 'utf8')
    expect(text).toContain('--cluster-signing-cert-file')
    await lab.onNode('cp1', [
      'mv',
      '/etc/kubernetes/manifests/kube-controller-manager.yaml',
      '/root/kcm.yaml',
    ])
    await lab.kubectl(['certificate', 'approve', 'cy'])
    await until(async () => (await kcert(['csr', 'explain', 'cy'])).stdout.includes('signer-down'), 300_000)
    await lab.onNode('cp1', [
      'mv',
      '/root/kcm.yaml',
      '/etc/kubernetes/manifests/kube-controller-manager.yaml',
    ])
    expect(
      (await kcert(['csr', 'fetch', 'cy', '--wait', '6m', '--key', at('cy.pem'), '--out', at('cy.crt')]))
        .exit,
    ).toBe(0)
  })

  /** Runs a command of a message unchanged, with the administrator's kubectl. */
  async function shell(command: string): Promise<void> {
    const [kubectl = ''] = await kubectlCommand([])
    execFileSync('sh', ['-c', command], {
      env: { PATH: `${dirname(kubectl)}:${process.env.PATH}`, KUBECONFIG: lab.kubeconfig },
    })
  }

  /** Returns a kubeconfig with a bootstrap token, as kubeadm join would create it. */
  async function bootstrapKubeconfig(): Promise<string> {
    const [id, secret] = ['abcdef', '0123456789abcdef']
    await lab.kubectl([
      'create',
      'secret',
      'generic',
      `bootstrap-token-${id}`,
      '-n',
      'kube-system',
      '--type',
      'bootstrap.kubernetes.io/token',
      `--from-literal=token-id=${id}`,
      `--from-literal=token-secret=${secret}`,
      '--from-literal=usage-bootstrap-authentication=true',
      '--from-literal=auth-extra-groups=system:bootstrappers:kubeadm:default-node-token',
    ])
    const { stdout } = await lab.kubectl(['config', 'view', '--raw', '--flatten', '-o', 'json'])
    const config = JSON.parse(stdout)
    for (const { user } of config.users) {
      for (const field of Object.keys(user)) delete user[field]
      user.token = `${id}.${secret}`
    }
    writeFileSync(at('bootstrap.conf'), JSON.stringify(config), { mode: 0o600 })
    return at('bootstrap.conf')
  }
})

async function until(holds: () => Promise<boolean>, timeoutMs = 180_000): Promise<void> {
  const end = performance.now() + timeoutMs
  while (!(await holds())) {
    if (performance.now() > end) throw new Error('it did not come to be')
    await new Promise((resolve) => setTimeout(resolve, 500))
  }
}
