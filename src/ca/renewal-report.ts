import * as v from 'valibot'
import { described, header, optionalText, text, time } from '../x509/json-fields.ts'

// The JSON contract of `kcert renew`. docs/schemas/ is generated from it; the program itself only imports its type.

export const certificateRenewalSchema = v.object({
  ...header('CertificateRenewal'),
  generatedAt: time,
  outcome: described(
    v.picklist(['listed', 'nothing-due', 'planned', 'declined', 'renewed', 'incomplete']),
    'incomplete: a certificate could not be renewed, or is not yet in use',
  ),
  certificates: v.array(
    v.object({
      node: v.string(),
      name: text("kubeadm's name of the certificate, or kubelet.conf or kubelet-serving"),
      path: text('file with the certificate'),
      subject: v.string(),
      notAfter: described(time, 'expiry of the certificate in the file; after a renewal, of the new one'),
      state: described(
        v.picklist(['valid', 'due', 'expired', 'key-mismatch']),
        'key-mismatch: the private key does not match the certificate',
      ),
      action: described(
        v.picklist(['none', 'renew', 'renewed', 'not-renewable']),
        'renew: due for renewal, by the command in next',
      ),
      previousNotAfter: v.optional(described(time, 'expiry of the replaced certificate')),
      newKey: v.optional(v.boolean()),
      why: optionalText('why kcert cannot renew it here'),
      next: v.optional(v.string()),
    }),
  ),
  missing: v.array(
    v.object({
      node: v.string(),
      name: v.string(),
      path: v.string(),
      fix: v.optional(v.string()),
      next: v.optional(v.string()),
    }),
  ),
  restarts: v.array(
    v.object({
      node: v.string(),
      program: v.picklist(['kubelet', 'etcd', 'kube-apiserver', 'kube-controller-manager', 'kube-scheduler']),
      reason: described(
        v.picklist(['new-certificate', 'started-before-renewal', 'not-running']),
        'started-before-renewal: it started before its certificates were renewed',
      ),
    }),
  ),
  checks: described(
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
    'checks after the renewal: served in a TLS handshake, or accepted by an API server',
  ),
  backups: v.array(v.object({ node: v.string(), folder: v.string() })),
  unreachable: v.array(v.object({ node: v.string(), why: v.string() })),
  root: optionalText(
    'folder of --root: its files were renewed, nothing was restarted and no server was checked',
  ),
  next: optionalText('next command'),
})

export type CertificateRenewal = v.InferOutput<typeof certificateRenewalSchema>
