import * as v from 'valibot'
import * as json from '../x509/json-fields.ts'
import { signedCertificateSchema } from './report.ts'

// The JSON contract of `kcert ca sign --kubeadm`. docs/schemas/SignedControlPlane.json is generated from this.

const { entry: _entry, ...certificateEntries } = signedCertificateSchema.entries

export const signedControlPlaneSchema = v.object({
  ...json.header('SignedControlPlane'),
  certificates: json.objects({
    row: json.text('name as in kubeadm certs check-expiration'),
    ca: json.described(v.picklist(['ca', 'front-proxy-ca', 'etcd-ca']), 'the CA that signed it'),
    file: json.text('file of the certificate'),
    ...certificateEntries,
  }),
  issuanceLogs: json.described(json.texts, 'issuance logs of the CAs, with the serial numbers'),
  next: json.described(json.texts, 'commands that set the certificates of kubeconfigs'),
  notices: json.described(json.texts, 'notices for the user'),
})

export type SignedControlPlane = v.InferOutput<typeof signedControlPlaneSchema>
