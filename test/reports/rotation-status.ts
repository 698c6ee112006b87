import type { RotationStatus } from '../../src/rotation/report.ts'

const at = '2026-11-21T09:00:00Z'
const sha256 = 'ab'.repeat(32)
const titles = [
  'the new CA lies on every control-plane node',
  'controller-managers publish both CAs',
  'every namespace has both CAs',
  'pods in the cluster have read both CAs',
  'servers accept client certificates of both CAs',
  'schedulers and controller-managers trust both',
  'kubeconfigs hold both CAs and new client certificates',
  'the cloud controller manager trusts both',
  'everything presents the new CA',
  'cluster-info carries the new CA',
  'nothing presents the old CA any more',
  'nothing trusts the old CA any more',
]

/** A rotation before phase 5, with every kind of item that a status can contain. */
export const sampleStatus: RotationStatus = {
  apiVersion: 'kcert/v1',
  kind: 'RotationStatus',
  generatedAt: at,
  state: 'under-way',
  position: 'introducing',
  authorities: [
    {
      ca: 'cluster',
      oldCa: { generation: 'old', subject: 'CN=kubernetes', notAfter: '2026-12-30T08:00:00Z', sha256 },
      newCa: { generation: 'new', subject: 'CN=kubernetes-ca-2', notAfter: '2036-11-18T08:00:00Z', sha256 },
      oldPin: `sha256:${sha256}`,
      newPin: `sha256:${sha256}`,
      hasBridge: true,
    },
    {
      ca: 'front-proxy',
      oldCa: { generation: 'old', subject: 'CN=front-proxy-ca', notAfter: '2026-11-01T08:00:00Z', sha256 },
      newCa: { generation: 'new', subject: 'CN=front-proxy-ca' },
      oldPin: `sha256:${sha256}`,
      hasBridge: false,
    },
  ],
  next: { command: 'kcert rotate-ca --phase 5', why: 'cp1: kubelet trusts the old CA alone (and 3 more)' },
  phases: titles.map((title, index) => ({
    number: index + 1,
    id: `phase-${index + 1}`,
    title,
    risk: index === 11 ? 'no-return' : index % 3 === 1 ? 'restarts' : 'writes',
    state: index < 4 ? 'holds' : index === 4 ? 'open' : 'later',
    gaps:
      index === 4
        ? [
            { at: 'cp1/kubelet', what: 'trusts the old CA alone' },
            { at: 'cp2/kubelet', what: 'trusts the old CA alone' },
            { at: 'cp1:/etc/kubernetes/pki/ca.crt', what: 'contains the old CA alone' },
            { at: 'configmap kube-public/cluster-info', what: 'contains the old CA alone' },
          ]
        : [],
    remarks: index === 7 ? ['not configured: there is no cloud controller manager'] : [],
    evidence:
      index < 2
        ? [
            { key: 'request signed cp1', ok: true, at, ageSeconds: 340, detail: 'by the old CA' },
            {
              key: 'healthy cp2/kube-controller-manager',
              ok: false,
              at,
              ageSeconds: 12,
              detail: 'no answer',
            },
          ]
        : [],
    ...(index < 4 ? { lastRun: { event: 'held' as const, at } } : {}),
  })),
  nodes: [
    { name: 'cp1', isControlPlane: true, isReady: true, clockSkewSeconds: 0.02, openPhases: [5] },
    { name: 'cp2', isControlPlane: true, isReady: true, clockSkewSeconds: -0.4, openPhases: [5] },
    {
      name: 'w1',
      isControlPlane: false,
      isReady: false,
      unreachable: 'connection timed out',
      openPhases: [],
    },
  ],
  blockers: [],
}
