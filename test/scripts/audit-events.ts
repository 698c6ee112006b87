import { createHash, generateKeyPairSync, type KeyObject, sign } from 'node:crypto'
import type { Issued } from './small-pki.ts'

// Lines of audit logs and service account tokens, in the formats of kube-apiserver 1.36.

export interface Use {
  readonly username: string
  /** Absent: the event has no credential ID. */
  readonly credential?: string | undefined
  /** RFC 3339. */
  readonly at?: string
  readonly stage?: string
  readonly extra?: Readonly<Record<string, readonly string[]>>
  /** Fields that replace others. */
  readonly fields?: object
}

let events = 0

/** Returns a line of an audit log at level Metadata. */
export function auditLine({ username, credential, at, stage, extra, fields }: Use): string {
  const number = ++events
  const time = at ?? '2026-11-25T10:00:00.123456Z'
  const id = credential === undefined ? {} : { 'authentication.kubernetes.io/credential-id': [credential] }
  const event = {
    kind: 'Event',
    apiVersion: 'audit.k8s.io/v1',
    level: 'Metadata',
    auditID: `8ee17730-f830-446e-bd22-${number.toString(16).padStart(12, '0')}`,
    stage: stage ?? 'ResponseComplete',
    requestURI: '/api/v1/namespaces/default/pods?limit=500',
    verb: 'list',
    user: { username, groups: ['system:authenticated'], extra: { ...id, ...extra } },
    sourceIPs: [`192.0.2.${number % 250}`],
    userAgent: 'kubectl/v1.36.3 (linux/amd64) kubernetes/1c2e10a',
    objectRef: { resource: 'pods', namespace: 'default', apiVersion: 'v1' },
    responseStatus: { metadata: {}, code: 200 },
    requestReceivedTimestamp: time,
    stageTimestamp: time,
    annotations: { 'authorization.k8s.io/decision': 'allow', 'authorization.k8s.io/reason': '' },
    ...fields,
  }
  return `${JSON.stringify(event)}\n`
}

/** Returns the credential ID of a certificate. */
export function certificateId({ der }: Pick<Issued, 'der'>): string {
  return `X509SHA256=${createHash('sha256').update(der).digest('hex')}`
}

/** Returns a service account key: sa.pub, and its key ID. */
export function serviceAccountKey() {
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const spki = publicKey.export({ format: 'der', type: 'spki' })
  return {
    pem: publicKey.export({ format: 'pem', type: 'spki' }) as string,
    keyId: createHash('sha256').update(spki).digest('base64url'),
    privateKey,
  }
}

/** Returns a token of an account. */
export function tokenOf(
  account: string,
  { keyId, privateKey }: { readonly keyId: string; readonly privateKey: KeyObject },
  claims: object,
): string {
  const part = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url')
  const subject = {
    iss: 'https://kubernetes.default.svc.cluster.local',
    sub: `system:serviceaccount:${account}`,
  }
  const audience = { aud: ['https://kubernetes.default.svc.cluster.local'] }
  const signed = `${part({ alg: 'ES256', kid: keyId })}.${part({ ...audience, ...subject, ...claims })}`
  const signature = sign('sha256', Buffer.from(signed), { key: privateKey, dsaEncoding: 'ieee-p1363' })
  return `${signed}.${signature.toString('base64url')}`
}
