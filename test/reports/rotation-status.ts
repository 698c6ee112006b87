import { phaseTable } from '../../src/rotation/phase-table.ts'
import type { RotationStatus } from '../../src/rotation/report.ts'

const at = '2026-11-21T09:00:00Z'
const sha256 = 'ab'.repeat(32)

/** A rotation before phase 5, with every kind of item that a status can contain. */
export const sampleStatus: RotationStatus = {
  apiVersion: 'kcert/v1',
  kind: 'RotationStatus',
  generatedAt: at,
  state: 'in-progress',
  position: 'preparing',
  cas: [
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
  next: {
    command: 'kcert rotate-ca --phase 5',
    why: 'cp1/kubelet: /etc/kubernetes/pki/ca.crt without the new CA (and 3 more)',
  },
  phases: phaseTable.map(({ number, id, title, risk }, index) => ({
    number,
    id,
    title,
    risk,
    state: index < 4 ? 'complete' : index === 4 ? 'incomplete' : 'waiting',
    pending:
      index === 4
        ? [
            { at: 'cp1/kubelet', what: '/etc/kubernetes/pki/ca.crt without the new CA' },
            { at: 'cp2/kubelet', what: '/etc/kubernetes/pki/ca.crt without the new CA' },
            { at: 'cp1/kube-apiserver', what: '/etc/kubernetes/pki/ca.crt without the new CA' },
            { at: 'ConfigMap kube-public/cluster-info', what: 'without the new CA' },
          ]
        : [],
    remarks: index === 7 ? ['complete: no cloud-controller-manager with --root-ca-file'] : [],
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
    ...(index < 4 ? { lastRun: { event: 'completed' as const, at } } : {}),
  })),
  nodes: [
    { name: 'cp1', isControlPlane: true, isReady: true, clockSkewSeconds: 0.02, pendingPhases: [5] },
    { name: 'cp2', isControlPlane: true, isReady: true, clockSkewSeconds: -0.4, pendingPhases: [5] },
    {
      name: 'w1',
      isControlPlane: false,
      isReady: false,
      unreachable: 'connection timed out',
      pendingPhases: [],
    },
  ],
  blockers: [],
}
