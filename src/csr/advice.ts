import type { CertificateRequest } from '../x509/request.ts'
import { listed } from './quoting.ts'
import {
  apiServerClient,
  defaultSigningDuration,
  findSigner,
  kubeletClient,
  kubeletServing,
} from './signers.ts'
import type { SigningRequest } from './signing-request.ts'

/** A note for the owner of a request; it does not fail the check. */
export interface Advice {
  readonly id: string
  readonly detail: string
  /** How to fix it. */
  readonly fix: string
}

type Adviser = (object: SigningRequest, request: CertificateRequest) => Advice | undefined

/** Returns notes on a request that are not rules. */
export function adviceOn(object: SigningRequest, request: CertificateRequest): Advice[] {
  return advisers.flatMap((adviser) => adviser(object, request) ?? [])
}

const advisers: readonly Adviser[] = [
  function misspelledFields({ unknownFields = [] }) {
    if (unknownFields.length === 0) return undefined
    const detail = `unknown field ${listed(unknownFields)}: the API server drops it`
    return { id: 'unknown-fields', detail, fix: 'correct the field name, or remove it' }
  },
  function usagesByKey({ usages }, { publicKey: { algorithm } }) {
    const id = 'usages-by-key'
    const enciphers = usages.includes('key encipherment')
    const isForTls = usages.includes('server auth') || usages.includes('client auth')
    if (algorithm === 'RSA' && isForTls && !enciphers) {
      const detail =
        'the key is RSA, and usage key encipherment is missing: TLS 1.2 with RSA key exchange will not work'
      return { id, detail, fix: 'add --usage "key encipherment", as kubelets with RSA keys do' }
    }
    if (algorithm === 'RSA' || !enciphers) return undefined
    const detail = `key encipherment works with RSA keys only, and the key is ${algorithm}`
    return { id, detail, fix: 'remove "key encipherment", as kubelets do since 1.27' }
  },
  function keyOfKubelets({ signerName }, { publicKey: { algorithm } }) {
    if (algorithm !== 'Ed25519' || (signerName !== kubeletClient && signerName !== kubeletServing))
      return undefined
    const detail = 'kubeadm reads RSA and ECDSA keys only'
    return { id: 'kubelet-key', detail, fix: 'use ECDSA P-256, as the kubelet does' }
  },
  function droppedExtensions({ signerName }, { extensions }) {
    if (findSigner(signerName) === undefined) return undefined
    const dropped = extensions.filter(({ oid }) => oid !== subjectAltName).map(({ name }) => name)
    if (dropped.length === 0) return undefined
    const detail = `the signer drops the requested extensions ${listed(dropped)}`
    return { id: 'dropped-extensions', detail, fix: 'set the usages in spec.usages' }
  },
  function droppedNames({ signerName }, { subjectAltNames: { other } }) {
    if (findSigner(signerName) === undefined || other.length === 0) return undefined
    const detail = `the signer drops the names ${listed(other)}`
    return { id: 'dropped-names', detail, fix: 'use DNS names, IP addresses, email addresses or URIs' }
  },
  function serverWithoutNames({ usages }, { subjectAltNames: { dns, ip } }) {
    if (!usages.includes('server auth') || dns.length + ip.length > 0) return undefined
    const detail =
      'clients reject a server certificate without a DNS name or IP address, because they ignore the common name'
    return { id: 'server-names', detail, fix: 'add the SANs of the server with --dns and --ip' }
  },
  function reservedIdentity({ signerName }, { subject }) {
    if (signerName !== apiServerClient) return undefined
    const names = [subject.commonName ?? '', ...subject.organization].filter((name) =>
      name.startsWith('system:'),
    )
    if (names.length === 0) return undefined
    const detail = `the certificate gives the identity ${listed(names)}, which Kubernetes reserves for its components`
    return {
      id: 'reserved-identity',
      detail,
      fix: 'use your own user and group names, and bind roles to them',
    }
  },
  function emptyUser({ signerName }, { subject }) {
    if (signerName !== apiServerClient || subject.commonName) return undefined
    const detail = 'the API server uses the common name as the user, and there is none'
    return {
      id: 'empty-user',
      detail,
      fix: 'create a request whose common name is the user',
    }
  },
  function cappedLifetime({ signerName, expirationSeconds = 0 }) {
    if (findSigner(signerName) === undefined || expirationSeconds <= defaultSigningDuration) return undefined
    const detail = `${expirationSeconds} s is more than a year, and kube-controller-manager caps it at its --cluster-signing-duration (default 1 year)`
    return {
      id: 'lifetime',
      detail,
      fix: 'raise --cluster-signing-duration of kube-controller-manager if you need more',
    }
  },
  function weakSignature(_object, { signatureAlgorithm }) {
    if (!/sha-?1(?!\d)/i.test(signatureAlgorithm)) return undefined
    const detail = `the request is signed with ${signatureAlgorithm}, which is broken`
    return {
      id: 'weak-signature',
      detail,
      fix: 'create a new request with a current tool, which signs with SHA-256',
    }
  },
  function eksNames({ signerName, name }) {
    // The signer of EKS ignores objects whose names begin like those of kubelets (aws/containers-roadmap#2079).
    if (!signerName.startsWith('beta.eks.amazonaws.com/') || !name?.startsWith('csr-')) return undefined
    const detail = `${signerName} never signs objects whose name begins with "csr-"`
    return { id: 'object-name', detail, fix: 'give the object another name' }
  },
]

const subjectAltName = '2.5.29.17'
