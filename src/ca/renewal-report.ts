import * as v from 'valibot'
import { timeSchema as time } from '../x509/json-fields.ts'

// The JSON contract of `kcert renew`. docs/schemas/ is generated from it; the program itself only imports its type.

const described = (meaning: string) => v.pipe(v.string(), v.description(meaning))

export const certificateRenewalSchema = v.object({
  apiVersion: v.literal('kcert/v1'),
  kind: v.literal('CertificateRenewal'),
  generatedAt: time,
  outcome: v.pipe(
    v.picklist(['listed', 'nothing-due', 'planned', 'declined', 'renewed', 'incomplete']),
    v.description(
      'incomplete: something that was asked for could not be renewed, or was not seen to be in use',
    ),
  ),
  certificates: v.array(
    v.object({
      node: v.string(),
      name: described("row of kubeadm's table; beyond it kubelet.conf and kubelet-serving"),
      path: described('of the file that holds the certificate'),
      subject: v.string(),
      notAfter: v.pipe(
        time,
        v.description('of the certificate that is there, after a renewal of the new one'),
      ),
      state: v.pipe(
        v.picklist(['valid', 'due', 'expired', 'broken']),
        v.description("broken: the key beside it is another's"),
      ),
      action: v.pipe(
        v.picklist(['none', 'renew', 'renewed', 'cannot']),
        v.description('renew: it would be, or will be by the command in next'),
      ),
      expired: v.optional(v.pipe(time, v.description('end of the certificate that was renewed'))),
      newKey: v.optional(v.boolean()),
      why: v.optional(described('why it cannot be renewed here')),
      next: v.optional(v.string()),
    }),
  ),
  missing: v.array(v.object({ node: v.string(), name: v.string(), path: v.string(), next: v.string() })),
  restarts: v.array(
    v.object({
      node: v.string(),
      program: v.picklist(['kubelet', 'etcd', 'kube-apiserver', 'kube-controller-manager', 'kube-scheduler']),
      because: v.pipe(
        v.picklist(['new-certificate', 'older-than-its-files', 'not-running']),
        v.description('older-than-its-files: it started before its certificates were renewed'),
      ),
    }),
  ),
  proofs: v.pipe(
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
    v.description('what was seen in the end: served by a handshake, accepted by an API server'),
  ),
  backups: v.array(v.object({ node: v.string(), folder: v.string() })),
  unreachable: v.array(v.object({ node: v.string(), why: v.string() })),
  next: v.optional(described('the command that goes on')),
})

export type CertificateRenewal = v.InferOutput<typeof certificateRenewalSchema>
