import { given } from '../errors/given.ts'
import { KcertError } from '../errors/kcert-error.ts'
import { rfc3339 } from '../pki/rfc3339.ts'
import { type BootstrapToken, isTokenId } from './token.ts'

// Tokens are stored in Secrets kube-system/bootstrap-token-<id>, which three controllers read: the authenticator of the API
// server, the signer of cluster-info, and the cleaner (k8s.io/cluster-bootstrap).

export const tokenSecretType = 'bootstrap.kubernetes.io/token'
export const tokenNamespace = 'kube-system'
export const secretPrefix = 'bootstrap-token-'
/** The group that kubeadm gives to joining nodes, with the bindings that they need. */
export const kubeadmJoiners = 'system:bootstrappers:kubeadm:default-node-token'

const groupPattern = /^system:bootstrappers:[a-z0-9:-]{0,255}[a-z0-9]$/
const secretPattern = /^[a-z0-9]{16}$/

export type TokenUsage = 'signing' | 'authentication'
export const tokenUsages: readonly TokenUsage[] = ['signing', 'authentication']

/** A Secret as the API server writes it; `data` is base64. */
export type SecretObject = {
  readonly apiVersion?: string
  readonly kind?: string
  readonly metadata: { readonly name?: string; readonly namespace?: string; readonly uid?: string }
  readonly type?: string
  readonly data?: Readonly<Record<string, string>>
  readonly stringData?: Readonly<Record<string, string>>
}

/** The facts of a token without its secret; safe to print. */
export interface TokenFacts {
  readonly id: string
  readonly description?: string
  /** Undefined when it never expires. */
  readonly expiration?: Date
  readonly usages: readonly TokenUsage[]
  /** In addition to system:bootstrappers, which every token has. */
  readonly groups: readonly string[]
  /** Why the API server or the signer ignores it; empty when they accept it. */
  readonly faults: readonly TokenFault[]
}

export interface TokenFault {
  readonly id:
    | 'type'
    | 'name'
    | 'token-id'
    | 'token-secret'
    | 'expiration-unreadable'
    | 'expired'
    | 'auth-extra-groups'
  readonly detail: string
}

/** Returns the token in a Secret, including its secret, for signing; undefined when the Secret contains none. */
export function tokenOfSecret(secret: SecretObject): BootstrapToken | undefined {
  const id = dataOf(secret, 'token-id')
  const half = dataOf(secret, 'token-secret')
  return id !== undefined && isTokenId(id) && half !== undefined && secretPattern.test(half)
    ? { id, secret: half }
    : undefined
}

/** Returns the tokens with which kube-controller-manager signs cluster-info at a given time. Their groups do not matter. */
export function signingTokens(secrets: readonly SecretObject[], now: Date): BootstrapToken[] {
  return secrets.flatMap((secret) => {
    const { usages, faults } = readTokenSecret(secret, now)
    const signs = usages.includes('signing') && faults.every(({ id }) => id === 'auth-extra-groups')
    return signs ? (tokenOfSecret(secret) ?? []) : []
  })
}

/** Returns the facts of a token's Secret at a given time, with the rules of Kubernetes. They contain nothing of the secret. */
export function readTokenSecret(secret: SecretObject, now: Date): TokenFacts {
  const name = secret.metadata.name ?? ''
  const id = dataOf(secret, 'token-id') ?? ''
  const expiration = dataOf(secret, 'expiration')
  const expiresAt = expiration === undefined ? undefined : parseRfc3339(expiration)
  const description = dataOf(secret, 'description')
  const groups = (dataOf(secret, 'auth-extra-groups') ?? '').split(',').filter((group) => group !== '')
  const isUnreadable = expiration !== undefined && expiresAt === undefined
  const faults: (TokenFault | false)[] = [
    secret.type !== tokenSecretType &&
      fault('type', `its type is ${secret.type ?? 'missing'}, not ${tokenSecretType}`),
    !isTokenId(id) && fault('token-id', 'token-id is not six characters of a-z and 0-9'),
    name !== secretPrefix + id && fault('name', `its name is not ${secretPrefix}<token-id>`),
    !secretPattern.test(dataOf(secret, 'token-secret') ?? '') &&
      fault('token-secret', 'token-secret is not sixteen characters of a-z and 0-9'),
    // An unreadable expiration counts as expired, so that a typo never makes a token permanent.
    isUnreadable &&
      fault('expiration-unreadable', 'expiration is not an RFC 3339 time, so the token counts as expired'),
    expiresAt !== undefined &&
      expiresAt <= now &&
      fault('expired', `it expired at ${expiresAt.toISOString()}`),
    ...groups
      .filter((group) => !groupPattern.test(group))
      .map((group) => fault('auth-extra-groups', `group ${JSON.stringify(group)} is not a bootstrap group`)),
  ]
  return {
    id,
    ...given({ description, expiration: expiresAt }),
    usages: tokenUsages.filter((usage) => dataOf(secret, `usage-bootstrap-${usage}`) === 'true'),
    groups,
    faults: faults.filter((one) => one !== false),
  }
}

export interface TokenSettings extends Omit<TokenFacts, 'id' | 'faults'> {
  readonly token: BootstrapToken
}

/** Returns the groups of a new token; default: kubeadm's. Throws KCERT_USAGE for groups that the API server would ignore. */
export function checkGroups(
  named: readonly string[] | undefined,
  usages: readonly TokenUsage[],
): readonly string[] {
  if (!usages.includes('authentication')) {
    if (named === undefined) return []
    throw new KcertError('KCERT_USAGE', '--groups requires usage authentication', {
      why: 'groups belong to the user that the token authenticates as',
      next: '--usages signing,authentication',
    })
  }
  const wrong = named?.find((group) => !groupPattern.test(group))
  if (wrong === undefined) return named ?? [kubeadmJoiners]
  throw new KcertError('KCERT_USAGE', `invalid group ${JSON.stringify(wrong)}`, {
    why: 'a group of bootstrap tokens starts with system:bootstrappers: and continues with a-z, 0-9, ":" and "-"',
    fix: `use a group such as ${kubeadmJoiners}`,
  })
}

/** Returns the Secret of a new token. It contains the secret: send it to the API server and nowhere else. */
export function secretOfToken({
  token,
  description,
  expiration,
  usages,
  groups,
}: TokenSettings): SecretObject {
  return {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name: secretPrefix + token.id, namespace: tokenNamespace },
    type: tokenSecretType,
    stringData: {
      'token-id': token.id,
      'token-secret': token.secret,
      // Older cleaners reject fractions of a second.
      ...given({ description, expiration: expiration && rfc3339(expiration) }),
      ...Object.fromEntries(usages.map((usage) => [`usage-bootstrap-${usage}`, 'true'])),
      ...(groups.length === 0 ? {} : { 'auth-extra-groups': groups.join(',') }),
    },
  }
}

function dataOf({ data, stringData }: SecretObject, key: string): string | undefined {
  const plain = stringData?.[key]
  if (plain !== undefined) return plain
  const encoded = data?.[key]
  return encoded === undefined ? undefined : Buffer.from(encoded, 'base64').toString('utf8')
}

function fault(id: TokenFault['id'], detail: string): TokenFault {
  return { id, detail }
}

const rfc3339Pattern = /^\d{4}-\d{2}-\d{2}[Tt]\d{2}:\d{2}:\d{2}(?:\.\d+)?(?:[Zz]|[+-]\d{2}:\d{2})$/

function parseRfc3339(text: string): Date | undefined {
  if (!rfc3339Pattern.test(text)) return undefined
  const time = new Date(text)
  return Number.isNaN(time.getTime()) ? undefined : time
}
