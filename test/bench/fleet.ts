import { createPublicKey, type KeyObject, X509Certificate } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { createRequest } from '../../src/x509/issuing.ts'
import { generatePrivateKey } from '../../src/x509/new-key.ts'
import { writePem } from '../../src/x509/pem.ts'

// A fleet: many requests with separate keys, half of them for each of two signers.

export const ownSigner = 'example.com/fleet'
export const kubernetesSigner = 'kubernetes.io/kube-apiserver-client'

interface Member {
  readonly key: KeyObject
  readonly signer: string
}

/** Returns the requests by name, alternating between the signers. */
export function membersOf(fleet: string, count: number): Map<string, Member> {
  const p256 = { algorithm: 'ECDSA', curve: 'P-256' } as const
  return new Map(
    Array.from({ length: count }, (_, index) => [
      `${fleet}-${String(index).padStart(5, '0')}`,
      { key: generatePrivateKey(p256), signer: index % 2 === 0 ? ownSigner : kubernetesSigner },
    ]),
  )
}

/** Returns a request as kcert and kubectl send it, labelled with its fleet. */
export function manifestOf(fleet: string, [name, { key, signer }]: readonly [string, Member]): string {
  const request = writePem('CERTIFICATE REQUEST', createRequest({ subject: { commonName: name } }, key))
  return `apiVersion: certificates.k8s.io/v1
kind: CertificateSigningRequest
metadata:
  name: ${name}
  labels:
    fleet: ${fleet}
spec:
  request: ${Buffer.from(request).toString('base64')}
  signerName: ${signer}
  usages:
  - client auth
`
}

/** Returns the policy that approves requests of the fleet from this user. */
export function policyText(username: string): string {
  return `apiVersion: kcert/v1
kind: ApprovalPolicy
rules:
- name: fleet
  decision: approve
  signerNames: [${ownSigner}, ${kubernetesSigner}]
  usernames: [${JSON.stringify(username)}]
  commonNames: ["fleet-*"]
  usages: [client auth]
`
}

/** Throws unless each request has its file in the folder, with a certificate for its name and key. */
export function refuseLoss(members: ReadonlyMap<string, Member>, folder: string): void {
  const files = new Set(readdirSync(folder))
  if (files.size !== members.size)
    throw new Error(`${files.size} files were fetched of ${members.size} requests`)
  for (const [name, { key }] of members) {
    const { subject, publicKey } = new X509Certificate(readFileSync(join(folder, `${name}.crt`)))
    if (subject !== `CN=${name}` || !publicKey.equals(createPublicKey(key)))
      throw new Error(`${name}.crt holds a certificate of ${subject}`)
  }
}
