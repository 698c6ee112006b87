import { generateKeyPairSync, type KeyObject } from 'node:crypto'
import { expect, test } from 'vitest'
import {
  clientDescription,
  clientRequest,
  servingDescription,
  servingRequest,
  someKey,
  submitted,
} from '../../../test/csr/made-requests.ts'
import { issueCertificate } from '../../x509/issuing.ts'
import { writePem } from '../../x509/pem.ts'
import type { ControllerEvent } from '../controller-events.ts'
import type { RequestCondition, SigningRequest } from '../signing-request.ts'
import { causes, explain } from './explain.ts'
import type { ControllerManager, ExplainFacts, Holder } from './facts.ts'
import type { Explanation } from './report.ts'
import { readSituation } from './situation.ts'

const now = new Date('2026-11-21T10:00:00Z')
const made = { creationTimestamp: '2026-11-21T09:00:00Z' }

interface Cluster {
  readonly manager?: ControllerManager | 'absent'
  readonly allowed?: readonly string[]
  readonly approvers?: readonly Holder[]
  readonly signers?: readonly Holder[]
  readonly leftPending?: ControllerEvent
  readonly failing?: string
}

const alive: ControllerManager = {
  renewedAt: new Date('2026-11-21T09:59:55Z'),
  holder: 'cp-1_5b1c',
  commandLine: [
    'kube-controller-manager',
    '--controllers=*,bootstrapsigner,tokencleaner',
    '--cluster-signing-cert-file=/etc/kubernetes/pki/ca.crt',
    '--cluster-signing-key-file=/etc/kubernetes/pki/ca.key',
  ],
}

function factsOf({ manager, allowed, approvers, signers, leftPending, failing }: Cluster): ExplainFacts {
  const answer = async <Fact>(fact: Fact): Promise<Fact> => {
    if (failing !== undefined) throw new Error(failing)
    return fact
  }
  return {
    readLeftPending: () => answer(leftPending ?? 'none'),
    isAllowed: ({ user, resource }) => answer(allowed?.includes(`${user} ${resource.subresource}`)),
    readControllerManager: () => answer(manager),
    findHolders: (verb) => answer(verb === 'approve' ? approvers : signers),
  }
}

async function explained(
  object: SigningRequest,
  cluster: Cluster = {},
  decidedBy?: string,
): Promise<Explanation> {
  return explain(await readSituation(object, decidedBy, factsOf(cluster), now))
}

function condition(type: string, minutesAgo: number, reason = '', message = ''): RequestCondition {
  const lastUpdateTime = new Date(now.getTime() - minutesAgo * 60_000).toISOString()
  return { type, status: 'True', reason, message, lastUpdateTime }
}

function certificateFor(key: KeyObject, notAfter = '2027-11-21T00:00:00Z'): Uint8Array {
  const der = issueCertificate(
    {
      subject: { commonName: 'x' },
      issuer: { commonName: 'ca' },
      serialNumber: '01',
      notBefore: new Date('2026-11-20T00:00:00Z'),
      notAfter: new Date(notAfter),
      publicKey: key,
    },
    someKey,
  )
  return Buffer.from(writePem('CERTIFICATE', der))
}

const bootstrapper: Partial<SigningRequest> = {
  ...made,
  username: 'system:bootstrap:abcdef',
  groups: ['system:bootstrappers', 'system:bootstrappers:kubeadm:default-node-token', 'system:authenticated'],
}

const user = (fields: Partial<SigningRequest> = {}): SigningRequest =>
  submitted(
    { subject: { commonName: 'ann', organization: ['dev'] } },
    {
      ...made,
      name: 'ann',
      username: 'kubernetes-admin',
      signerName: 'kubernetes.io/kube-apiserver-client',
      usages: ['digital signature', 'client auth'],
      ...fields,
    },
  )

const service = (fields: Partial<SigningRequest> = {}): SigningRequest =>
  submitted(servingDescription(), {
    ...made,
    name: 'my-svc.my-namespace',
    signerName: 'example.com/serving',
    usages: ['digital signature', 'server auth'],
    ...fields,
  })

const approvedNow = { conditions: [condition('Approved', 0)] }
const approvedLongAgo = { conditions: [condition('Approved', 30)] }
const otherKey = generateKeyPairSync('ec', { namedCurve: 'P-256' }).publicKey

interface Row {
  readonly id: string
  readonly verdict: Explanation['verdict']
  readonly object: SigningRequest
  readonly cluster?: Cluster
  readonly says: RegExp
  readonly command?: string
}

const rows: readonly Row[] = [
  {
    id: 'controller-left-pending',
    verdict: 'stuck',
    object: user({ uid: 'uid-1' }),
    cluster: {
      leftPending: {
        reason: 'NotApproved',
        message:
          'policy kubelet-serving: identity met, entitlement unmet; own-names: "x" is not a name of the Node',
        time: '2026-11-21T09:30:00Z',
      },
    },
    says: /Event of kcert-controller at 2026-11-21T09:30:00Z says: policy kubelet-serving: identity met, .*own-names/,
    command: 'kcert csr check ann --cluster',
  },
  {
    id: 'being-deleted',
    verdict: 'stuck',
    object: user({ deletionTimestamp: '2026-11-21T09:30:00Z' }),
    says: /finalizer/,
  },
  {
    id: 'denied',
    verdict: 'denied',
    object: user({ conditions: [condition('Denied', 5, 'NotToday', 'ask Bob first')] }),
    says: /^denied by "kubectl": NotToday: ask Bob first$/,
    command: 'kubectl delete csr ann',
  },
  {
    // kubernetes/kubernetes#108633
    id: 'signer-refused',
    verdict: 'failed',
    object: user({
      usages: ['server auth'],
      conditions: [
        condition('Approved', 5),
        condition('Failed', 5, 'SignerValidationFailure', 'usages did not match'),
      ],
    }),
    says: /SignerValidationFailure: usages did not match; it requires usage client auth/,
  },
  {
    id: 'certificate-unreadable',
    verdict: 'stuck',
    object: user({ ...approvedNow, certificate: Buffer.from('no certificate') }),
    says: /cannot be read/,
  },
  {
    id: 'certificate-of-another-key',
    verdict: 'stuck',
    object: user({ ...approvedNow, certificate: certificateFor(otherKey) }),
    says: /another key/,
  },
  {
    id: 'certificate-expired',
    verdict: 'stuck',
    object: user({ ...approvedNow, certificate: certificateFor(someKey, '2026-11-21T00:00:00Z') }),
    says: /expired at 2026-11-21T00:00:00Z/,
  },
  {
    id: 'request-unreadable',
    verdict: 'stuck',
    object: user({ request: Buffer.from('no PEM') }),
    says: /no PEM block/,
  },
  {
    id: 'no-such-signer',
    verdict: 'stuck',
    object: user({ signerName: 'kubernetes.io/kube-apiserver' }),
    says: /Kubernetes has no signer "kubernetes.io\/kube-apiserver"/,
  },
  {
    id: 'name-never-signed',
    verdict: 'stuck',
    object: service({
      name: 'csr-my-svc',
      signerName: 'beta.eks.amazonaws.com/app-serving',
      ...approvedLongAgo,
    }),
    says: /name begins with "csr-"/,
    command: 'kubectl delete csr csr-my-svc',
  },
  {
    id: 'would-fail',
    verdict: 'stuck',
    object: servingRequest({ ...made, usages: ['digital signature', 'client auth'] }),
    says: /do not approve it: it would fail permanently: it requires usages digital signature and server auth/,
  },
  {
    id: 'node-requests-other-identity',
    verdict: 'stuck',
    object: clientRequest({ ...made, username: 'system:node:node-2' }),
    cluster: { manager: alive, allowed: ['system:node:node-2 nodeclient'] },
    says: /"system:node:node-2" requests the identity of "system:node:node-1"/,
    command: 'kcert csr deny csr-7x2lq',
  },
  {
    id: 'rbac-missing',
    verdict: 'stuck',
    object: clientRequest(bootstrapper),
    cluster: { manager: alive, allowed: [] },
    says: /no binding gives "system:bootstrap:abcdef" .* this right/,
    command:
      'kubectl create clusterrolebinding kubeadm:node-autoapprove-bootstrap --clusterrole=system:certificates.k8s.io:certificatesigningrequests:nodeclient --group=system:bootstrappers:kubeadm:default-node-token',
  },
  {
    id: 'rbac-unknown',
    verdict: 'stuck',
    object: clientRequest(bootstrapper),
    cluster: { manager: alive },
    says: /kcert could not check that/,
    command:
      'kubectl auth can-i create certificatesigningrequests.certificates.k8s.io --subresource=nodeclient --as=system:bootstrap:abcdef --as-group=system:bootstrappers --as-group=system:bootstrappers:kubeadm:default-node-token --as-group=system:authenticated',
  },
  {
    id: 'controller-manager-down',
    verdict: 'stuck',
    object: clientRequest(bootstrapper),
    cluster: {
      manager: { renewedAt: new Date('2026-11-21T09:10:00Z'), holder: 'cp-1_5b1c' },
      allowed: ['system:bootstrap:abcdef nodeclient'],
    },
    says: /last renewed at 2026-11-21T09:10:00Z by cp-1_5b1c/,
  },
  {
    id: 'approver-off',
    verdict: 'stuck',
    object: clientRequest(bootstrapper),
    cluster: {
      manager: { ...alive, commandLine: ['kube-controller-manager', '--controllers', '*,-csrapproving'] },
      allowed: ['system:bootstrap:abcdef nodeclient'],
    },
    says: /--controllers/,
    command: 'kcert csr approve csr-7x2lq',
  },
  {
    id: 'approver-retries',
    verdict: 'waiting',
    object: clientRequest(bootstrapper),
    cluster: { manager: alive, allowed: ['system:bootstrap:abcdef nodeclient'] },
    says: /next try, at most 1000 s/,
  },
  {
    id: 'no-approver-for-serving',
    verdict: 'stuck',
    object: servingRequest(made),
    cluster: { approvers: [{ kind: 'ServiceAccount', name: 'kube-system/kubelet-csr-approver' }] },
    says: /no approver for kubelets' serving .* ServiceAccount kube-system\/kubelet-csr-approver/,
    command: 'kcert csr approve csr-7x2lq',
  },
  {
    id: 'waits-for-a-person',
    verdict: 'stuck',
    object: user(),
    cluster: { approvers: [] },
    says: /a person must decide; RBAC allows no program to approve/,
    command: 'kcert csr approve ann',
  },
  {
    id: 'no-approver-for-signer',
    verdict: 'stuck',
    object: service(),
    says: /Kubernetes has no approver for "example.com\/serving"/,
    command: 'kcert csr approve my-svc.my-namespace',
  },
  {
    id: 'will-fail',
    verdict: 'stuck',
    object: user({ usages: ['server auth'], ...approvedNow }),
    cluster: { manager: alive },
    says: /refuse it permanently/,
  },
  {
    id: 'signer-down',
    verdict: 'stuck',
    object: user(approvedLongAgo),
    cluster: { manager: 'absent' },
    says: /does not run: it has no Lease/,
  },
  {
    id: 'signer-off',
    verdict: 'stuck',
    object: user(approvedLongAgo),
    cluster: {
      manager: { ...alive, commandLine: ['--controllers=*,-certificatesigningrequest-signing-controller'] },
    },
    says: /disables its signers/,
  },
  {
    id: 'signer-not-configured',
    verdict: 'stuck',
    object: user(approvedLongAgo),
    cluster: { manager: { ...alive, commandLine: ['kube-controller-manager', '--leader-elect=true'] } },
    says: /neither --cluster-signing-cert-file/,
    command: 'kcert ca sign --csr ann --ca ca.crt --ca-key ca.key',
  },
  {
    id: 'signer-signs-now',
    verdict: 'waiting',
    object: user(approvedNow),
    cluster: { manager: alive },
    says: /approved a moment ago/,
    command: 'kcert csr fetch ann --wait 1m --out ann.crt',
  },
  {
    id: 'signer-fails',
    verdict: 'stuck',
    object: user(approvedLongAgo),
    cluster: { manager: alive },
    says: /should have signed it 1800 s ago/,
  },
  {
    id: 'signer-absent',
    verdict: 'stuck',
    object: service(approvedLongAgo),
    cluster: { signers: [] },
    says: /no program has the RBAC right to sign for "example.com\/serving"/,
    command: 'kcert ca sign --csr my-svc.my-namespace --ca ca.pem --ca-key ca-key.pem',
  },
  {
    id: 'signer-has-not-signed',
    verdict: 'stuck',
    object: service(approvedLongAgo),
    cluster: { signers: [{ kind: 'ServiceAccount', name: 'signer/signer' }] },
    says: /these programs may sign: ServiceAccount signer\/signer/,
  },
  {
    id: 'deleted-soon',
    verdict: 'issued',
    object: user({ ...approvedLongAgo, certificate: certificateFor(someKey) }),
    says: /an hour after the approval, once issued: at 2026-11-21T10:30:00Z/,
    command: 'kcert csr fetch ann',
  },
]

test.each(rows)('$id: $verdict', async ({ id, verdict, object, cluster, says, command }) => {
  const explanation = await explained(object, cluster, 'kubectl')
  const cause = explanation.causes.find((one) => one.id === id)
  expect(explanation.causes.map((one) => one.id)).toContain(id)
  expect(cause?.detail).toMatch(says)
  expect(explanation.verdict).toBe(verdict)
  expect(cause?.fix).not.toBe('')
  if (command !== undefined) expect(cause?.commands).toContain(command)
})

test('has a row here for every cause of the table', () => {
  expect(rows.map(({ id }) => id).toSorted()).toEqual(causes.map(({ id }) => id).toSorted())
})

test('puts the deciding cause first, and reports only causes that apply', async () => {
  const { causes: found } = await explained(clientRequest(bootstrapper), { manager: alive, allowed: [] })
  expect(found.map(({ id }) => id)).toEqual(['rbac-missing'])
})

test('does not mention the next retry when the controller-manager does not run', async () => {
  const cluster: Cluster = { manager: 'absent', allowed: ['system:bootstrap:abcdef nodeclient'] }
  const { causes: found } = await explained(clientRequest(bootstrapper), cluster)
  expect(found.map(({ id }) => id)).toEqual(['controller-manager-down'])
})

test('names the binding of all nodes when a kubelet lacks the permission to renew', async () => {
  const { causes: found } = await explained(clientRequest(made), { manager: alive, allowed: [] })
  expect(found[0]?.commands[0]).toBe(
    'kubectl create clusterrolebinding kubeadm:node-autoapprove-certificate-rotation --clusterrole=system:certificates.k8s.io:certificatesigningrequests:selfnodeclient --group=system:nodes',
  )
})

test('binds a requester that is in no bootstrappers group by its name', async () => {
  const object = clientRequest({ ...made, username: 'ann b', groups: ['system:authenticated'] })
  const { causes: found } = await explained(object, { manager: alive, allowed: [] })
  expect(found[0]?.commands[0]).toMatch(/ --user='ann b'$/)
})

test('leaves failed lookups open, and does not guess the causes that need them', async () => {
  const { causes: found, unknownFacts } = await explained(user(approvedLongAgo), {
    failing: 'no route to host',
  })
  expect(unknownFacts).toEqual([{ fact: 'whether kube-controller-manager runs', why: 'no route to host' }])
  expect(found.map(({ id }) => id)).toEqual(['signer-fails'])
})

test('makes no lookups for a request that breaks a rule', async () => {
  const { unknownFacts } = await explained(clientRequest({ ...bootstrapper, usages: ['server auth'] }), {
    failing: 'asked all the same',
  })
  expect(unknownFacts).toEqual([])
})

test("does not blame RBAC when RBAC allows the kubelet's request", async () => {
  const object = submitted(clientDescription(), {
    ...made,
    signerName: 'kubernetes.io/kube-apiserver-client-kubelet',
    usages: ['digital signature', 'client auth'],
  })
  const { verdict } = await explained(object, { manager: alive, allowed: ['system:node:node-1 nodeclient'] })
  expect(verdict).toBe('waiting')
})
