import * as v from 'valibot'
import { described, header, text, texts } from '../x509/json-fields.ts'
import { signedCertificateSchema } from './report.ts'

// The JSON contract of `kcert ca sign --kubeadm`. docs/schemas/SignedControlPlane.json is generated from this.

const { entry: _entry, ...certificateEntries } = signedCertificateSchema.entries

export const signedControlPlaneSchema = v.object({
  ...header('SignedControlPlane'),
  certificates: v.array(
    v.object({
      row: text('name as in kubeadm certs check-expiration'),
      ca: described(v.picklist(['ca', 'front-proxy-ca', 'etcd-ca']), 'the CA that signed it'),
      file: text('file of the certificate'),
      ...certificateEntries,
    }),
  ),
  issuanceLogs: described(texts, 'issuance logs of the CAs, with the serial numbers'),
  next: described(texts, 'commands that set the certificates of kubeconfigs'),
  notices: described(texts, 'notices for the user'),
})

export type SignedControlPlane = v.InferOutput<typeof signedControlPlaneSchema>
