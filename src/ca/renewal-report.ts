import * as v from 'valibot'
import * as json from '../x509/json-fields.ts'

// The JSON contract of `kcert renew`. docs/schemas/ is generated from it; the program itself only imports its type.

export const certificateRenewalSchema = v.object({
  ...json.header('CertificateRenewal'),
  generatedAt: json.time,
  outcome: json.described(
    v.picklist(['listed', 'nothing-due', 'planned', 'declined', 'renewed', 'incomplete']),
    'incomplete: a certificate could not be renewed, or is not yet in use',
  ),
  certificates: json.objects({
    node: v.string(),
    name: json.text("kubeadm's name of the certificate, or kubelet.conf or kubelet-serving"),
    path: json.text('file with the certificate'),
    subject: v.string(),
    notAfter: json.described(
      json.time,
      'expiry of the certificate in the file; after a renewal, of the new one',
    ),
    state: json.described(
      v.picklist(['valid', 'due', 'expired', 'key-mismatch']),
      'key-mismatch: the private key does not match the certificate',
    ),
    action: json.described(
      v.picklist(['none', 'renew', 'renewed', 'not-renewable']),
      'renew: due for renewal, by the command in next',
    ),
    previousNotAfter: json.optionalField(json.time, 'expiry of the replaced certificate'),
    newKey: v.optional(v.boolean()),
    why: json.optionalText('why kcert cannot renew it here'),
    next: v.optional(v.string()),
  }),
  missing: json.objects({
    node: v.string(),
    name: v.string(),
    path: v.string(),
    ...json.adviceEntries,
  }),
  restarts: json.objects({
    node: v.string(),
    program: v.picklist(['kubelet', 'etcd', 'kube-apiserver', 'kube-controller-manager', 'kube-scheduler']),
    reason: json.described(
      v.picklist(['new-certificate', 'started-before-renewal', 'not-running']),
      'started-before-renewal: it started before its certificates were renewed',
    ),
  }),
  checks: json.described(
    json.objects({
      node: v.string(),
      name: v.string(),
      what: v.picklist(['served', 'accepted']),
      at: v.string(),
      ok: v.boolean(),
      detail: v.string(),
    }),
    'checks after the renewal: served in a TLS handshake, or accepted by an API server',
  ),
  backups: json.objects({ node: v.string(), folder: v.string() }),
  unreachable: json.objects({ node: v.string(), why: v.string() }),
  root: json.optionalText(
    'folder of --root: its files were renewed, nothing was restarted and no server was checked',
  ),
  next: json.optionalText('next command'),
})

export type CertificateRenewal = v.InferOutput<typeof certificateRenewalSchema>
