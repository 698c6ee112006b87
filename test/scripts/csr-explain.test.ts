import { expect, test } from 'vitest'
import { clientDescription, requestPem } from '../csr/made-requests.ts'
import { requestsKey } from './cluster-session.ts'
import { kcertBeside } from './program.ts'
import { RequestLife, user } from './request-life.ts'

// The results of `kcert csr explain` on a cluster. src/csr/explain tests each cause separately.

const life = new RequestLife('csr-explain')
const rbac = { group: 'rbac.authorization.k8s.io', version: 'v1' } as const
const system = { namespace: 'kube-system' } as const
const leases = { group: 'coordination.k8s.io', version: 'v1', resource: 'leases', ...system } as const
const pods = { group: '', version: 'v1', resource: 'pods', ...system } as const

interface Explained {
  readonly verdict: string
  readonly causes: readonly {
    readonly id: string
    readonly detail: string
    readonly commands: readonly string[]
  }[]
  readonly unknownFacts: readonly { readonly fact: string; readonly why: string }[]
}

async function explained(kubeconfig?: string): Promise<Explained> {
  const env = kubeconfig === undefined ? life.env : { KUBECONFIG: kubeconfig }
  const { stdout, stderr } = await kcertBeside(['csr', 'explain', life.name, '-o', 'json'], { env })
  expect(stderr).toBe('')
  return JSON.parse(stdout) as Explained
}

function putLease(renewTime: Date): void {
  const metadata = { name: 'kube-controller-manager' }
  life.server.put(leases, {
    metadata,
    spec: { holderIdentity: 'cp-1_5b1c', renewTime: renewTime.toISOString() },
  })
}

function putControllerManager(...command: string[]): void {
  const metadata = { name: 'kube-controller-manager-cp-1', labels: { component: 'kube-controller-manager' } }
  life.server.put(pods, {
    metadata,
    spec: {
      containers: [{ name: 'kube-controller-manager', command: ['kube-controller-manager', ...command] }],
    },
  })
}

function putBootstrapping(): void {
  life.server.put(requestsKey, {
    metadata: { name: life.name },
    spec: {
      request: Buffer.from(requestPem(clientDescription())).toString('base64'),
      signerName: 'kubernetes.io/kube-apiserver-client-kubelet',
      usages: ['digital signature', 'client auth'],
      username: 'system:bootstrap:abcdef',
      groups: ['system:bootstrappers:kubeadm:default-node-token'],
    },
    status: {},
  })
}

test('queries RBAC for a bootstrap token without the right, and names the binding', async () => {
  putBootstrapping()
  putLease(new Date())
  const { verdict, causes, unknownFacts } = await explained()
  expect({ verdict, unknownFacts }).toEqual({ verdict: 'stuck', unknownFacts: [] })
  expect(causes.map(({ id }) => id)).toEqual(['rbac-missing'])
  expect(causes[0]?.commands[0]).toContain('--group=system:bootstrappers:kubeadm:default-node-token')

  life.server.rules = [
    {
      group: 'system:bootstrappers:kubeadm:default-node-token',
      verbs: ['create'],
      groups: ['certificates.k8s.io'],
      resources: ['certificatesigningrequests/nodeclient'],
    },
  ]
  putLease(new Date())
  expect((await explained()).verdict).toBe('waiting')
  putLease(new Date(Date.now() - 3_600_000))
  expect((await explained()).causes.map(({ id }) => id)).toEqual(['controller-manager-down'])
  life.server.rules = []
})

test('detects a controller-manager without a CA by its command line', async () => {
  life.server.signer = undefined
  life.makeRequest()
  await life.run('csr', 'submit', life.at('a.csr'), ...user)
  life.decide('Approved')
  putLease(new Date())
  putControllerManager('--leader-elect=true')
  expect((await explained()).causes.map(({ id }) => id)).toContain('signer-not-configured')
  putLease(new Date())
  putControllerManager(
    '--controllers=*,-csrsigning',
    '--cluster-signing-cert-file=a',
    '--cluster-signing-key-file=b',
  )
  expect((await explained()).causes.map(({ id }) => id)).toContain('signer-off')
})

test('names users who may approve for this signer, and not those for another one', async () => {
  const rule = (resourceNames: string[]) => ({
    apiGroups: ['certificates.k8s.io'],
    resources: ['signers'],
    verbs: ['approve'],
    resourceNames,
  })
  const put = (name: string, resourceNames: string[]): void => {
    life.server.put(
      { ...rbac, resource: 'clusterroles' },
      { metadata: { name }, rules: [rule(resourceNames)] },
    )
    const subjects = [{ kind: 'ServiceAccount', name, namespace: 'approvers' }]
    const roleRef = { apiGroup: rbac.group, kind: 'ClusterRole', name }
    life.server.put({ ...rbac, resource: 'clusterrolebindings' }, { metadata: { name }, roleRef, subjects })
  }
  put('mine', ['example.com/*'])
  put('other', ['example.org/serving'])
  life.makeRequest()
  await life.run(
    'csr',
    'submit',
    life.at('a.csr'),
    '--signer',
    'example.com/serving',
    '--usage',
    'server auth',
  )
  const { causes } = await explained()
  expect(causes[0]).toMatchObject({ id: 'no-approver-for-signer' })
  expect(causes[0]?.detail).toContain('ServiceAccount approvers/mine')
  expect(causes[0]?.detail).not.toContain('approvers/other')
})

test('tells a user who may read only requests what is unknown', async () => {
  putBootstrapping()
  life.server.rules = [
    {
      user: 'reader',
      verbs: ['get'],
      groups: ['certificates.k8s.io'],
      resources: ['certificatesigningrequests'],
    },
  ]
  const kubeconfig = life.server.writeKubeconfig(life.at('reader.conf'), { username: 'reader' })
  const { causes, unknownFacts } = await explained(kubeconfig)
  life.server.rules = []
  expect(causes.map(({ id }) => id)).toEqual(['rbac-unknown'])
  expect(unknownFacts.map(({ fact }) => fact).sort()).toEqual([
    'whether RBAC lets the requester have a kubelet certificate',
    'whether kube-controller-manager runs',
    'why the controller leaves it pending',
  ])
  expect(unknownFacts.map(({ why }) => why).join()).toContain('not allowed')
})
