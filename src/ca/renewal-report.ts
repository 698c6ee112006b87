import * as v from 'valibot'
import { described, header, text, timeSchema as time } from '../x509/json-fields.ts'

// The JSON contract of `kcert renew`. docs/schemas/ is generated from it; the program itself only imports its type.

export const certificateRenewalSchema = v.object({
  ...header('CertificateRenewal'),
  generatedAt: time,
  outcome: described(
    v.picklist(['listed', 'nothing-due', 'planned', 'declined', 'renewed', 'incomplete']),
    'incomplete: something that was asked for could not be renewed, or was not seen to be in use',
  ),
  certificates: v.array(
    v.object({
      node: v.string(),
      name: text("row of kubeadm's table; beyond it kubelet.conf and kubelet-serving"),
      path: text('of the file that holds the certificate'),
      subject: v.string(),
      notAfter: described(time, 'of the certificate that is there, after a renewal of the new one'),
      state: described(
        v.picklist(['valid', 'due', 'expired', 'broken']),
        "broken: the key beside it is another's",
      ),
      action: described(
        v.picklist(['none', 'renew', 'renewed', 'cannot']),
        'renew: it would be, or will be by the command in next',
      ),
      expired: v.optional(described(time, 'end of the certificate that was renewed')),
      newKey: v.optional(v.boolean()),
      why: v.optional(text('why it cannot be renewed here')),
      next: v.optional(v.string()),
    }),
  ),
  missing: v.array(v.object({ node: v.string(), name: v.string(), path: v.string(), next: v.string() })),
  restarts: v.array(
    v.object({
      node: v.string(),
      program: v.picklist(['kubelet', 'etcd', 'kube-apiserver', 'kube-controller-manager', 'kube-scheduler']),
      because: described(
        v.picklist(['new-certificate', 'older-than-its-files', 'not-running']),
        'older-than-its-files: it started before its certificates were renewed',
      ),
    }),
  ),
  proofs: described(
    v.array(
      v.object({
        node: v.string(),
        name: v.string(),
        what: v.picklist(['served', 'accepted']),
        at: v.string(),
        ok: v.boolean(),
        detail: v.string(),
      }),
    ),
    'what was seen in the end: served by a handshake, accepted by an API server',
  ),
  backups: v.array(v.object({ node: v.string(), folder: v.string() })),
  unreachable: v.array(v.object({ node: v.string(), why: v.string() })),
  next: v.optional(text('the command that goes on')),
})

export type CertificateRenewal = v.InferOutput<typeof certificateRenewalSchema>
