import type { CertificateReport, NameReport, RequestReport } from '../inspection/report.ts'

type KeyFields = CertificateReport['publicKey']
type AltNames = CertificateReport['subjectAltNames']

/** Returns the short name for a column: the common name, and the organizations, which are the groups of a Kubernetes user. */
export function shortName(name: NameReport): string {
  if (name.commonName === undefined || name.commonName === '') return name.text === '' ? '(empty)' : name.text
  const { commonName, organization } = name
  if (organization.length === 0) return commonName
  return `${commonName} (${organization.length === 1 ? organization[0] : organization.join(', ')})`
}

/** Returns `RSA 2048`, `ECDSA P-256`, `Ed25519`, `ML-DSA-65`. */
export function keyText({ algorithm, bits, curve }: KeyFields): string {
  return [algorithm, curve ?? bits].filter((part) => part !== undefined).join(' ')
}

/** Returns whether the request is signed by its own key. */
export function signatureText({ signatureValid, signatureUnchecked }: RequestReport): string {
  if (signatureUnchecked) return 'unknown'
  return signatureValid ? 'valid' : 'WRONG'
}

/** Returns all SANs in one list, each with its type where that is not obvious. */
export function altNameList({ dns, ip, email, uri }: AltNames): string[] {
  return [...dns, ...ip, ...email.map((name) => `email:${name}`), ...uri]
}
