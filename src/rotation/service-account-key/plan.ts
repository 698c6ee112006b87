import { commandLine } from '../../errors/command-line.ts'
import { given } from '../../errors/given.ts'
import { shortList } from '../../errors/short-list.ts'
import { shutdownDelayMs } from '../../pki/component-flags.ts'
import type { ServiceAccountToken } from '../../x509/service-account-token.ts'
import type { Refusal } from '../phase.ts'
import type { Observed } from '../snapshot.ts'
import { timeOf } from '../views.ts'
import { type KeyObservation, serviceAccountKeysOf } from './observation.ts'
import type {
  ApiServerKeys,
  ControllerManagerKey,
  FoundToken,
  KeyFile,
  NodeTokens,
  PlannedKeys,
  Reading,
  ServiceAccountKeys,
  TokenDriver,
} from './observed.ts'
import type { ServiceAccountKeyPlan } from './report.ts'

// What a rotation of the service account key would do, and what blocks it. Nothing reloads these keys (Kubernetes 1.36.3:
// pkg/serviceaccount/jwt.go, pkg/controlplane/apiserver/options/options.go, cmd/kube-controller-manager/app/service_accounts.go),
// so each pass restarts every API server.

export type RotationReason = ServiceAccountKeyPlan['reason']
type Step = ServiceAccountKeyPlan['steps'][number]

/** What was read of a cluster, as the rules below need it. */
interface Found {
  readonly apiServers: readonly ApiServerKeys[]
  readonly managers: readonly ControllerManagerKey[]
  readonly nodes: readonly { readonly node: string; readonly tokens: NodeTokens }[]
  /** Unexpired tokens in objects and files. */
  readonly held: readonly FoundToken[]
  readonly drivers: readonly TokenDriver[]
  readonly unread: readonly { readonly what: string; readonly why: string }[]
}

/** Returns the plan. It writes nothing, and contains no token and no key. */
export function serviceAccountKeyPlan(observed: PlannedKeys, reason: RotationReason): ServiceAccountKeyPlan {
  const kubeadm = unreadOf('ConfigMap kubeadm-config or Secret kubeadm-certs', observed.hasUploadedCerts)
  const found = foundIn(observed, kubeadm)
  const keyId = signingKeyOf(found)
  const verifiers = externalVerifiers(found)
  const steps = reason === 'compromise' ? compromiseSteps(found, verifiers) : routineSteps(found, verifiers)
  const passes = reason === 'compromise' ? 1 : 3
  const names = <Item extends { readonly node: string }>(items: readonly Item[]) =>
    new Set(items.map(({ node }) => node))
  const [servers, managers] = [names(found.apiServers), names(found.managers)]
  return {
    apiVersion: 'kcert/v1',
    kind: 'ServiceAccountKeyPlan',
    generatedAt: timeOf(observed.atMs),
    reason,
    ...given({ keyId }),
    apiServers: found.apiServers.map(apiServerView),
    controllerManagers: found.managers.map(({ node, signingKey }) => ({
      node,
      ...given({ signingKey: signingKey && keyFileView(signingKey) }),
    })),
    tokens: found.held.map(tokenView),
    mountedTokens: observed.nodes.map(({ node, tokens }) =>
      'unread' in tokens
        ? { node, keys: [], unread: tokens.unread }
        : {
            node,
            keys: countsOf(tokens.value.mounted, ({ keyId: id }) => [id]).map(([id, count]) => ({
              ...given({ keyId: id }),
              tokens: count,
            })),
          },
    ),
    audiences: foreignAudiences(found).map(([audience, tokens]) => ({ audience, tokens })),
    externalVerifiers: verifiers,
    steps: [...steps],
    restarts: observed.nodes.map(({ node }) => ({
      node,
      kubeApiserver: servers.has(node) ? passes : 0,
      kubeControllerManager: managers.has(node) ? 1 : 0,
      kubelet: 1,
    })),
    notes: [...notesOn(observed, found, reason)],
    blockers: blockersOf(found, keyId).map(({ what, why, next }) => ({ what, why, next })),
    estimatedSeconds: steps.reduce((sum, step) => sum + step.waitSeconds + step.estimatedSeconds, 0),
  }
}

/** Returns the tokens that were read. */
export function tokensIn({
  atMs,
  nodes,
  objects,
}: Pick<ServiceAccountKeys, 'atMs' | 'nodes' | 'objects'>): Pick<Found, 'nodes' | 'held'> {
  const read = nodes.flatMap(({ node, tokens }) => ('value' in tokens ? { node, tokens: tokens.value } : []))
  const inObjects = objects.flatMap(({ tokens }) => ('value' in tokens ? tokens.value : []))
  return {
    nodes: read,
    held: [...inObjects, ...read.flatMap(({ tokens }) => tokens.files)].filter(
      ({ claims: { expiresAtMs = Number.POSITIVE_INFINITY } }) => expiresAtMs > atMs,
    ),
  }
}

function foundIn(observed: ServiceAccountKeys, unread: Found['unread'] = []): Found {
  const { controlPlanes, nodes, objects, drivers } = observed
  const keys = controlPlanes.flatMap(({ keys: one }) => ('value' in one ? one.value : []))
  return {
    apiServers: keys.flatMap(({ apiServer }) => apiServer ?? []),
    managers: keys.flatMap(({ controllerManager }) => controllerManager ?? []),
    ...tokensIn(observed),
    drivers: 'value' in drivers ? drivers.value : [],
    unread: [
      ...controlPlanes.flatMap(({ node, keys: one }) => unreadOf(`the keys on ${node}`, one)),
      ...keys.flatMap(({ node, apiServer, controllerManager }) => [
        ...(apiServer === undefined
          ? [{ what: `the keys on ${node}`, why: 'no kube-apiserver runs there' }]
          : []),
        ...(apiServer ? unreadOf(`/openid/v1/jwks of ${apiServer.node}`, apiServer.served) : []),
        ...[apiServer, controllerManager].flatMap((one) => (one ? unreadFiles(one) : [])),
      ]),
      ...nodes.flatMap(({ node, tokens }) => unreadOf(`the tokens on ${node}`, tokens)),
      ...objects.flatMap(({ kind, tokens }) => unreadOf(`${kind}s`, tokens)),
      ...unreadOf('CSIDrivers', drivers),
      ...unread,
    ],
  }
}

function unreadOf(what: string, reading: Reading<unknown>): Found['unread'] {
  return 'unread' in reading ? [{ what, why: reading.unread }] : []
}

function unreadFiles(one: {
  readonly node: string
  readonly keyFiles?: readonly KeyFile[]
  readonly signingKey?: KeyFile
}): Found['unread'] {
  const files = [...(one.keyFiles ?? []), ...(one.signingKey ? [one.signingKey] : [])]
  return files.flatMap(({ path, keyIds }) => unreadOf(`${one.node}:${path}`, keyIds))
}

function idsOf(file: KeyFile | undefined): readonly string[] {
  return file !== undefined && 'value' in file.keyIds ? file.keyIds.value : []
}

/** Returns the value that all have; undefined if they differ, or one has none. */
function onlyOne(values: readonly (string | undefined)[]): string | undefined {
  const [first] = values
  return values.every((value) => value === first) ? first : undefined
}

function countsOf<Item, Key>(
  items: readonly Item[],
  keysOf: (item: Item) => readonly Key[],
): [Key, number][] {
  const counts = new Map<Key, number>()
  for (const key of items.flatMap(keysOf)) counts.set(key, (counts.get(key) ?? 0) + 1)
  return [...counts]
}

/** What blocks the rotation: something unread, an external signer, or keys that are not the same everywhere. */
function blockersOf({ apiServers, managers, unread }: Found, keyId: string | undefined): readonly Refusal[] {
  const external = apiServers.filter(({ signingEndpoint }) => signingEndpoint !== undefined)
  if (external.length > 0) return [externalSigner(external)]
  const blockers = unread.map(({ what, why }) => ({
    what: `${what}: not read`,
    why: `${why}. A token or key there may be the old one`,
    next: again,
  }))
  if (apiServers.length === 0)
    return [
      ...blockers,
      {
        what: 'no API server was found on the nodes of the inventory',
        why: 'the keys are files of the nodes where API servers run',
        next: 'kcert rotate-ca discover',
      },
    ]
  const withoutFiles = apiServers.filter((one) => one.signingKey === undefined || one.keyFiles.length === 0)
  if (withoutFiles.length > 0)
    return [
      ...blockers,
      {
        what: `${namesOf(withoutFiles)}: --service-account-signing-key-file or --service-account-key-file is not set`,
        why: 'without both flags, kcert does not know which files have the key',
        next: again,
      },
    ]
  if (unread.length > 0) return blockers
  if (keyId === undefined)
    blockers.push({
      what: `API servers sign with different keys: ${apiServers.map((one) => `${one.node} with ${idsOf(one.signingKey)[0]}`).join(', ')}`,
      why: 'every API server must verify the tokens of the others. Copy sa.key and sa.pub from one control plane to the others, and restart their API servers',
      next: commandLine`kcert inspect /etc/kubernetes/pki/sa.key /etc/kubernetes/pki/sa.pub`,
    })
  for (const { node, served, keyFiles, signingKey } of apiServers) {
    const ids = 'value' in served ? served.value : []
    const [signing] = idsOf(signingKey)
    const files = new Set(keyFiles.flatMap(idsOf))
    if (signing !== undefined && !ids.includes(signing))
      blockers.push({
        what: `${node} signs with ${signing}, but verifies only ${ids.join(', ') || 'no key'}`,
        why: 'the API server on this node rejects its own tokens. It may be older than its files: restart it',
        next: again,
      })
    else if (ids.length > 1)
      blockers.push({
        what: `${node} verifies tokens of ${ids.length} keys: ${ids.join(', ')}`,
        why: 'a rotation is not finished, or an old key was left. Remove the keys that signed no token below from --service-account-key-file',
        next: again,
      })
    else if (files.size !== ids.length || ids.some((id) => !files.has(id)))
      blockers.push({
        what: `${node} serves other keys than ${keyFiles.map(({ path }) => path).join(', ')} contains`,
        why: 'the file changed after the API server started. Restore it, or restart the API server',
        next: again,
      })
  }
  for (const { node, signingKey } of managers) {
    const [signing] = idsOf(signingKey)
    if (signingKey !== undefined && keyId !== undefined && signing !== keyId)
      blockers.push({
        what: `kube-controller-manager on ${node} signs with ${signing}`,
        why: `API servers sign with ${keyId}. Set --service-account-private-key-file to the same key`,
        next: again,
      })
  }
  return blockers
}

const again = commandLine`kcert rotate-sa-key plan`

function namesOf(items: readonly { readonly node: string }[]): string {
  return shortList(items.map(({ node }) => node))
}

/** KEP-740. The flags exclude key files (pkg/controlplane/apiserver/options/validation.go), so there is nothing to change here. */
export function externalSigner(servers: readonly { readonly node: string }[]): Refusal {
  return {
    what: `an external signer has the key: --service-account-signing-endpoint on ${namesOf(servers)}`,
    why: 'API servers reload its keys, so no restart is needed. Add the new key to the keys that the signer serves. Wait for its refresh hint, sign with the new key, wait for the longest lifetime of its tokens, then remove the old key',
    next: 'kubectl get --raw /openid/v1/jwks',
  }
}

// The default, with any cluster domain. API servers also accept the issuer of legacy tokens.
const ownIssuer = /^https:\/\/kubernetes\.default\.svc(?:\.|$)/

// Served by kube-apiserver with static keys (pkg/serviceaccount/jwt.go, GetCacheAgeMaxSeconds).
export const jwksMaxAgeSeconds = 3600

/** Returns the signs of programs outside of the cluster that verify tokens. */
export function externalVerifiersIn(observed: KeyObservation): ServiceAccountKeyPlan['externalVerifiers'] {
  return externalVerifiers(foundIn(serviceAccountKeysOf(observed)))
}

/** Returns why a rotation cannot start: something unread, or keys that are not the same everywhere. */
export function blockersIn(observed: KeyObservation): readonly Refusal[] {
  const found = foundIn(serviceAccountKeysOf(observed))
  return blockersOf(found, signingKeyOf(found))
}

function signingKeyOf({ apiServers }: Found): string | undefined {
  return onlyOne(apiServers.map(({ signingKey }) => idsOf(signingKey)[0]))
}

function externalVerifiers(found: Found): ServiceAccountKeyPlan['externalVerifiers'] {
  const issuers = new Set(found.apiServers.flatMap((one) => one.issuers))
  const uris = new Set(found.apiServers.flatMap(({ jwksUri }) => jwksUri ?? []))
  const own = ownAudiences(found)
  const why = [
    ...[...issuers]
      .filter((issuer) => !ownIssuer.test(issuer))
      .map((issuer) => `the issuer ${issuer} has a name outside of the cluster`),
    ...[...uris].map((uri) => `--service-account-jwks-uri is ${uri}`),
    ...foreignAudiences(found).map(([audience]) => `tokens for the audience ${audience} are mounted`),
    ...found.drivers.flatMap(({ name, audiences }) =>
      audiences
        .filter((one) => !own.has(one))
        .map((audience) => `CSIDriver ${name} requests tokens for the audience ${audience}`),
    ),
    ...credentialProvidersIn(found, own),
  ]
  return { mayExist: why.length > 0, why, maxAgeSeconds: jwksMaxAgeSeconds }
}

/** Returns a line for each image credential provider that gets tokens for another audience than these, with its nodes. */
function credentialProvidersIn({ nodes }: Found, own: ReadonlySet<string>): readonly string[] {
  const found = nodes.flatMap(({ node, tokens }) =>
    tokens.credentialProviders.flatMap((one) => (own.has(one.audience) ? [] : [{ node, ...one }])),
  )
  const same = Map.groupBy(found, ({ name, audience }) => JSON.stringify([name, audience]))
  return [...same.values()].map(
    (on) =>
      `image credential provider ${on[0]?.name} on ${namesOf(on)} gets tokens for the audience ${on[0]?.audience}`,
  )
}

function foreignAudiences(found: Found): [string, number][] {
  const own = ownAudiences(found)
  const mounted = found.nodes.flatMap(({ tokens }) => tokens.mounted)
  return countsOf(mounted, ({ audiences }) => audiences.filter((one) => !own.has(one)))
}

/** "" in a CSIDriver is the audience of the API server. */
function ownAudiences({ apiServers }: Found): ReadonlySet<string> {
  return new Set(['', ...apiServers.flatMap(({ audiences }) => audiences)])
}

// Seconds of one restart, the longest of a rotation by hand: 3 + 1 nodes of Kubernetes 1.36.3 on two shared cores, 2026-11-22.
// `atOnce`: after SIGTERM and SIGKILL. `clientsReread`: client-go reads a token file once a minute.
const took = { apiServer: 50, withDelay: 47, atOnce: 13, manager: 28, kubelets: 9, clientsReread: 70 }
/** Tokens of the default volume are renewed within this time. An unused older one is counted as stale. */
export const tokenLifetimeSeconds = 3607

function routineSteps(
  { apiServers, managers, drivers }: Found,
  verifiers: { readonly mayExist: boolean },
): Step[] {
  const servers = apiServers.length
  const undelayed = apiServers.filter(hasNoDelay)
  const wait = verifiers.mayExist ? jwksMaxAgeSeconds : 0
  return [
    {
      title: 'API servers verify both keys',
      phases: [1, 2, 3],
      actions: [
        'create the new key pair; delete the Secret kubeadm-certs if it exists',
        'write the public keys on every control plane: the old one, then the new one',
        ...(undelayed.length > 0
          ? [`set --shutdown-delay-duration=15s on ${namesOf(undelayed)}; the last pass removes it`]
          : []),
        'restart the API servers one at a time',
        ...(wait > 0
          ? [
              'upload /openid/v1/jwks to every place outside of the cluster that has a copy, or wait for its max-age',
            ]
          : []),
      ],
      check: '/openid/v1/jwks of every API server has both keys',
      waitSeconds: wait,
      estimatedSeconds: servers * took.apiServer,
    },
    {
      title: 'API servers and controller managers sign with the new key',
      phases: [4],
      actions: [
        'on every control plane, write the public keys: the new one, then the old one; then the new private key',
        'restart the API servers one at a time, then the controller managers, the leader last',
      ],
      check: 'every API server issues tokens of the new key, and every other one accepts them',
      waitSeconds: 0,
      estimatedSeconds: servers * took.withDelay + managers.length * took.manager,
    },
    {
      title: 'every token is of the new key',
      phases: [5, 6],
      actions: [
        'restart the kubelets in batches: this renews the tokens that they mounted',
        'replace the tokens listed above: create a second Secret for the same ServiceAccount, give it to the owner, then delete the first',
      ],
      check:
        'no mounted token and no object has the old key; then no increase of serviceaccount_stale_tokens_total and serviceaccount_legacy_tokens_total',
      waitSeconds: Math.max(tokenLifetimeSeconds, ...drivers.map((one) => one.lifetimeSeconds)),
      estimatedSeconds: took.kubelets + took.clientsReread,
    },
    {
      title: 'API servers verify only the new key',
      phases: [7, 8],
      actions: [
        'on every control plane, write only the new public key, and restore the manifest',
        'restart the API servers one at a time',
        ...(wait > 0 ? ['upload /openid/v1/jwks again, without the old key'] : []),
      ],
      check: '/openid/v1/jwks of every API server has only the new key; tokens of the old key get 401',
      waitSeconds: 0,
      estimatedSeconds: servers * took.withDelay,
    },
  ]
}

/** Dropped at once. The only time that was measured is that of one cluster: 3 + 1 nodes. */
function compromiseSteps(
  { apiServers, managers, nodes }: Found,
  verifiers: { readonly mayExist: boolean },
): Step[] {
  return [
    {
      title: 'every process uses only the new key',
      phases: [1, 2, 3, 4, 5, 6, 7, 8],
      actions: [
        'create the new key pair; delete the Secret kubeadm-certs if it exists',
        'write sa.pub and sa.key on every control plane',
        'restart the API servers one at a time, then the controller managers',
        `restart all kubelets at once (${nodes.length}): this renews the tokens that they mounted`,
        ...(verifiers.mayExist
          ? ['upload /openid/v1/jwks to every place outside of the cluster that has a copy']
          : []),
        'replace the tokens listed above, and restart the pods that still get 401 after 70 s',
      ],
      check: '/openid/v1/jwks of every API server has only the new key, and no mounted token has the old one',
      waitSeconds: 0,
      estimatedSeconds:
        apiServers.length * took.atOnce + managers.length * took.manager + took.kubelets + took.clientsReread,
    },
  ]
}

/** Returns which clients the loss of the old key logs out, and for how long. */
export function rejectedClients(
  { atMs, tokens: { nodes, objects } }: Observed<'tokens'>,
  keyId: string | undefined,
): readonly string[] {
  const { nodes: read, held } = tokensIn({ atMs, nodes, objects })
  return rejectedIn(read, held, keyId)
}

/** Without `keyId`, API servers sign with different keys, and every token counts. */
function rejectedIn(
  nodes: Found['nodes'],
  held: Found['held'],
  keyId: string | undefined,
): readonly string[] {
  const isLost = (its: ServiceAccountToken): boolean =>
    keyId === undefined || its.keyId === undefined || its.keyId === keyId
  const pods = nodes.reduce((sum, { tokens }) => sum + tokens.mounted.filter(isLost).length, 0)
  const lost = held.filter(({ claims }) => isLost(claims)).length
  return [
    `rejected (401) for a time: pods with mounted tokens (${pods}), from the restart of the first API server until their kubelet has restarted and the client reads the file again, at most 58 s later when this was measured; clients that read their token only once, until they restart`,
    `rejected (401) until they get a new token: the holders of tokens in Secrets, ConfigMaps and files (${lost})`,
  ]
}

function* notesOn(
  { hasUploadedCerts, otherKubeconfigs }: PlannedKeys,
  found: Found,
  reason: RotationReason,
): Generator<string> {
  const { apiServers, held, drivers } = found
  const undelayed = apiServers.filter(hasNoDelay)
  if (undelayed.length > 0)
    yield `${namesOf(undelayed)}: without --shutdown-delay-duration, a restart cuts up to 3 connections in use${reason === 'compromise' ? '' : '. The first pass sets 15 s, and still has this effect'}`
  if (apiServers.length === 1)
    yield 'there is one API server: the cluster has none for about 50 s in each of its restarts'
  if (reason === 'compromise') {
    yield* rejectedIn(found.nodes, held, signingKeyOf(found))
  }
  if ('value' in hasUploadedCerts && hasUploadedCerts.value)
    yield 'the Secret kube-system/kubeadm-certs has sa.key, for kubeadm join --control-plane: it is deleted'
  if (otherKubeconfigs.length > 0)
    yield `not read, because they are on no node: ${otherKubeconfigs.join(', ')}. Check them with kcert inspect`
  for (const { name, lifetimeSeconds } of drivers)
    yield `CSIDriver ${name}: kubelets request tokens for it, which are valid for up to ${lifetimeSeconds} s. ${reason === 'compromise' ? 'It gets 401 until its volumes are published again after their kubelet has restarted' : 'Phase 6 waits until those of the old key are expired'}`
  if (reason === 'routine')
    yield `no counter sees tokens that a client requested for longer than an hour (kubectl create token --duration): the audit log does`
}

function hasNoDelay({ shutdownDelay = '0' }: ApiServerKeys): boolean {
  return shutdownDelayMs({ 'shutdown-delay-duration': shutdownDelay }) === 0
}

function apiServerView(one: ApiServerKeys): ServiceAccountKeyPlan['apiServers'][number] {
  const { node, issuers, served, keyFiles, signingKey, signingEndpoint, shutdownDelay } = one
  return {
    node,
    issuers: [...issuers],
    ...('value' in served ? { served: [...served.value] } : { served: [], servedUnread: served.unread }),
    keyFiles: keyFiles.map(keyFileView),
    ...given({ signingKey: signingKey && keyFileView(signingKey), signingEndpoint, shutdownDelay }),
  }
}

function keyFileView({
  path,
  keyIds,
}: KeyFile): ServiceAccountKeyPlan['apiServers'][number]['keyFiles'][number] {
  return 'value' in keyIds ? { path, keyIds: [...keyIds.value] } : { path, keyIds: [], unread: keyIds.unread }
}

function tokenView({ kind, location, claims, owner }: FoundToken): ServiceAccountKeyPlan['tokens'][number] {
  const { keyId, namespace, serviceAccount, expiresAtMs }: ServiceAccountToken = claims
  return {
    ...{ kind, location, subject: `system:serviceaccount:${namespace}:${serviceAccount}` },
    ...given({
      keyId,
      expirationTimestamp: expiresAtMs === undefined ? undefined : timeOf(expiresAtMs),
      owner,
    }),
  }
}
