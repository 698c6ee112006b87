import { orUndefined } from '../errors/caught.ts'
import { commandLine } from '../errors/command-line.ts'
import { shortList } from '../errors/short-list.ts'
import type { Flags } from '../pki/component-flags.ts'
import { isNewerKeyType, kubeadmVersion } from '../pki/kubeadm-organization.ts'
import { readPublicKey } from '../x509/keys.ts'
import type { KubeadmKeyType } from '../x509/new-key.ts'
import { bundlesWithOldCa } from './ca-bundles.ts'
import type { CertificateRecord } from './certificate-record.ts'
import { isOfOldCa, leafFile, oldApiLeaves } from './leaves.ts'
import type { Refusal } from './phase.ts'
import { phaseRow } from './phase-table.ts'
import type { RotationPlan } from './report.ts'
import { algorithmIn, kubeadmConfig } from './signing.ts'
import { apiServers, fileAt, type Observed, objectName, type Snapshot } from './snapshot.ts'
import { changeOf, isPlanned, type Target } from './target.ts'
import type { TargetSections } from './target-reading.ts'

// A rotation to another key type: who cannot serve with it, what gets such keys, and what kcert cannot see.

type KeyTypePlan = Pick<RotationPlan, 'keyType'>

/** Returns why the rotation cannot use the key type of --algorithm. `isFirst`: nothing has changed yet. */
export function keyTypeRefusals(
  observed: Observed<TargetSections> & Partial<Pick<Snapshot, 'kubeadm'>>,
  target: Target,
  isFirst: boolean,
): readonly Refusal[] {
  const { keyType } = target
  if (keyType === undefined) return []
  return [
    ...otherNewCas(target),
    ...(isFirst ? unfitKubeadm(observed, target, keyType) : []),
    ...unfitCipherSuites(observed, target, keyType),
  ]
}

/** Refuses new CAs with another key type: of the operator, or of a rotation that has begun without --algorithm. */
export function otherNewCas({ changes, keyType }: Target): readonly Refusal[] {
  return changes.flatMap(({ ca, newCa }) => {
    const found = keyTypeOf(newCa)
    if (keyType === undefined || found === undefined || found === keyType) return []
    return [
      {
        what: `the new ${ca} CA has the key type ${found}, not ${keyType}`,
        ...(isPlanned(newCa)
          ? {
              why: 'a CA of --ca-cert or --front-proxy-ca-cert must have a key of the type in --algorithm',
              next: 'kcert rotate-ca plan',
            }
          : {
              why: 'phase 1 created it with this type. Continue without --algorithm, or roll back all phases first',
              next: 'kcert rotate-ca rollback --to 0',
            }),
      },
    ]
  })
}

function unfitKubeadm(
  { kubeadm }: Partial<Pick<Snapshot, 'kubeadm'>>,
  target: Target,
  keyType: KubeadmKeyType,
): readonly Refusal[] {
  if (kubeadm === undefined || changeOf(target, 'cluster') === undefined) return []
  const version = kubeadmVersion(kubeadm.kubernetesVersion ?? '')
  if (isNewerKeyType(keyType, version))
    return [
      {
        what: `kubeadm 1.${version?.minor} does not support the key type ${keyType}`,
        why: `it rejects encryptionAlgorithm: ${keyType} in kubeadm-config; kubeadm supports it since 1.34`,
        next: 'kcert rotate-ca plan --algorithm ECDSA-P256',
      },
    ]
  const { noAlgorithm } = kubeadm
  if (noAlgorithm === undefined || noAlgorithm.creates === keyType) return []
  return [
    {
      what: `kubeadm would not create ${keyType} keys: ${noAlgorithm.why}`,
      why: `with these settings, kubeadm creates ${noAlgorithm.creates} keys in certs renew and join; correct ClusterConfiguration first`,
      next: 'kubectl -n kube-system edit configmap kubeadm-config',
    },
  ]
}

/** Refuses servers whose certificate gets a key for which their cipher suites of TLS 1.2 have no use. */
function unfitCipherSuites(
  observed: Observed<TargetSections>,
  target: Target,
  keyType: KubeadmKeyType,
): readonly Refusal[] {
  const change = changeOf(target, 'cluster')
  if (change === undefined) return []
  const servers = [
    ...apiServers(observed).map((api) => ({
      ...{ id: api.id, node: api.node, path: api.definition, leaf: leafFile(observed, api, 'serving') },
      flags: [api.flags, api.process?.flags ?? {}],
    })),
    // A kubelet that requests its serving certificate creates the key itself.
    ...observed.kubelets.map(({ id, node, configuration: path = '', servingFile, tls = {} }) => ({
      ...{ id, node, path, leaf: fileAt(observed, node, servingFile), flags: [tls] },
    })),
  ]
  const [family] = keyType.split('-')
  return servers.flatMap(({ id, node, path, leaf, flags }) => {
    const suites = flags.find((one) => !servesWith(one, keyType))?.['tls-cipher-suites']
    const named = `${id} --tls-cipher-suites`
    if (suites === undefined || target.waivers.has(named) || !isOfOldCa(observed, leaf, change)) return []
    const add = `TLS_ECDHE_${family}_WITH_AES_128_GCM_SHA256`
    const advice = commandLine`add ${add}, or, if every client supports TLS 1.3, add --waive ${named}`
    return [
      {
        what: `${id} cannot serve a certificate with an ${family} key to TLS 1.2 clients: tls-cipher-suites in ${node}:${path} is ${suites}`,
        why: `no cipher suite in the list is for ${family} keys; ${advice}`,
        next: 'kcert rotate-ca plan',
      },
    ]
  })
}

/**
 * Returns false if a list of cipher suites fits only keys of another type. Those of TLS 1.3 fit every key, and no component lets you
 * choose them.
 */
function servesWith(flags: Flags, keyType: KubeadmKeyType): boolean {
  const { 'tls-cipher-suites': suites = '', 'tls-min-version': least } = flags
  if (least === 'VersionTLS13' || !/_(?:RSA|ECDSA)_WITH_/.test(suites)) return true
  return suites.includes(`_${keyType.slice(0, keyType.indexOf('-'))}_WITH_`)
}

/** Returns what gets keys of another type, what keeps its type, and what kcert cannot check; empty without --algorithm. */
export function keyTypePlan(observed: Snapshot, target: Target): KeyTypePlan {
  const { keyType } = target
  if (keyType === undefined) return {}
  const change = changeOf(target, 'cluster')
  const { kubeadm, kubelets } = observed
  const leaves = oldApiLeaves(observed, target).map(({ api, role }) => `${role} of ${api.node}`)
  const files = kubelets.filter(({ node, servingFile }) => {
    return change && isOfOldCa(observed, fileAt(observed, node, servingFile), change)
  })
  const clients = kubelets.filter(({ clientCurrent }) => clientCurrent !== undefined)
  const serving = kubelets.filter(({ servingCurrent }) => servingCurrent !== undefined)
  const webhooks = change ? bundlesWithOldCa(observed, change).map(({ server }) => server) : []
  const { number } = phaseRow('kubeconfigs')
  const algorithm = kubeadm && algorithmIn(kubeadm)
  const config = objectName(kubeadmConfig)
  return {
    keyType: {
      wanted: keyType,
      changes: [
        ...caLines(target, keyType),
        ...line('certificates of API servers', leaves),
        ...(change ? ['client certificates in kubeconfigs on nodes'] : []),
        ...line('serving certificates that kubelets read from a file', nodesOf(files)),
        ...(change && algorithm !== undefined && algorithm !== keyType
          ? [`${config}: encryptionAlgorithm ${algorithm} → ${keyType} in phase ${number}`]
          : []),
      ],
      unchanged: [
        ...line('client certificates that kubelets request, always ECDSA-P256', nodesOf(clients)),
        ...line('serving certificates that kubelets request, always ECDSA-P256', nodesOf(serving)),
        'the service account key; the command that replaces it with a key of the same type is kcert rotate-sa-key',
        'certificates for CSRs: their requesters choose the key type',
        change
          ? 'etcd: kubeadm certs renew creates keys of encryptionAlgorithm for it; check --cipher-suites of etcd before'
          : `${config}: encryptionAlgorithm changes only with the cluster CA`,
      ],
      unchecked: change ? [...line(webhooksText, webhooks), ...uncheckedClients(keyType)] : [webhooksText],
    },
  }
}

const webhooksText =
  'webhooks and aggregated API servers: their TLS libraries must verify such certificates of API servers'

function uncheckedClients(keyType: KubeadmKeyType): readonly string[] {
  const label = keyType.startsWith('RSA') ? 'RSA PRIVATE KEY (PKCS#1)' : 'EC PRIVATE KEY (SEC1)'
  return [
    'clients in Java, .NET, Python and other languages, in pods and outside: connect with each to a server with such a certificate',
    `programs that read a kubeconfig: they must read a key as ${label}`,
    'load balancers and proxies between clients and API servers: they must not restrict cipher suites or key types',
  ]
}

/** Returns the same for the CA of etcd. The keys of its certificates stay. */
export function etcdKeyTypePlan({ etcdMembers }: Observed<'etcdMembers'>, target: Target): KeyTypePlan {
  const { keyType } = target
  if (keyType === undefined) return {}
  const pinned = etcdMembers.filter(({ flags }) => {
    const { 'cipher-suites': suites = '', 'tls-min-version': least } = flags
    const tls = { 'tls-cipher-suites': suites, 'tls-min-version': least === 'TLS1.3' ? 'VersionTLS13' : '' }
    return !servesWith(tls, keyType)
  })
  return {
    keyType: {
      wanted: keyType,
      changes: caLines(target, keyType),
      unchanged: [
        'keys of the certificates of etcd: kubeadm certs renew creates keys of encryptionAlgorithm',
        ...line(
          `members whose --cipher-suites do not fit ${keyType}: correct the flag before kubeadm certs renew`,
          pinned.map(({ id }) => id),
        ),
      ],
      unchecked: ['clients of etcd beside API servers: their TLS libraries must verify such a CA'],
    },
  }
}

function caLines({ changes }: Target, keyType: KubeadmKeyType): string[] {
  return changes.map(({ ca, oldCa }) => `${ca} CA: ${keyTypeOf(oldCa) ?? 'unknown'} → ${keyType}`)
}

function nodesOf(all: readonly { readonly node: string }[]): string[] {
  return all.map(({ node }) => node)
}

/** Returns a line that ends with these names; empty without names. */
function line(what: string, names: readonly string[]): readonly string[] {
  return names.length === 0 ? [] : [`${what}: ${shortList([...new Set(names)])}`]
}

/** Returns the key type of a CA as kubeadm writes it; undefined if its key is not recorded or cannot be read. */
export function keyTypeOf({ publicKey }: Pick<CertificateRecord, 'publicKey'>): string | undefined {
  if (publicKey === undefined) return undefined
  const key = orUndefined(() => readPublicKey(Buffer.from(publicKey, 'base64')))
  if (key === undefined) return undefined
  if (key.algorithm === 'RSA') return `RSA-${key.bits}`
  return key.curve === undefined ? key.algorithm : `${key.algorithm}-${key.curve.replace('-', '')}`
}
