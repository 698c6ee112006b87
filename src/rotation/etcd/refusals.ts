import { shortList } from '../../errors/short-list.ts'
import { changedChoice } from '../fixed-choices.ts'
import { otherNewCas } from '../key-type.ts'
import { leafIn } from '../leaves.ts'
import { caFileOf, kcertFolderIn } from '../material.ts'
import type { Phase, Refusal } from '../phase.ts'
import {
  expiredCas,
  intermediates,
  sameKeys,
  unlikeNames,
  unreachableNodes,
  unservedLayouts,
  when,
  withoutApiServer,
} from '../refusals.ts'
import {
  apiServers,
  certificatesIn,
  fileAt,
  fileKey,
  type Observed,
  onNode,
  type Snapshot,
} from '../snapshot.ts'
import { bundleOf, changeOf, isPlanned, type Target } from '../target.ts'
import { beganWithUnknownClients } from '../target-reading.ts'
import { etcdTestedMinors, untestedVersions } from '../tested-versions.ts'
import { upgradeInProgress } from '../upgrades.ts'
import { otherEndpoints } from './endpoints.ts'
import {
  caKeyFiles,
  clientFlags,
  etcdLeafFiles,
  etcdNodes,
  isOfNewCa,
  servingFlags,
  trustFiles,
  trustFlags,
} from './members.ts'
import { etcdRotation, etcdRow } from './phase-table.ts'
import { quorumGaps } from './quorum.ts'

// Clusters and states in which kcert does not rotate etcd's CA.

const next = 'kcert rotate-ca plan'

/** Returns why a phase is refused for this cluster in its current state; empty when the phase may start. */
export function etcdPreflight(
  observed: Snapshot,
  target: Target,
  { number, risk }: Pick<Phase, 'number' | 'risk'>,
): readonly Refusal[] {
  const unreachable = unseenEtcdNodes(observed)
  if (target.isDropping) return unreachable
  const isFirst = number === 1
  const restarts =
    risk === 'restarts' || (target.etcdClients === 'unknown' && number === etcdRow('present-bridge').number)
  return [
    ...unreachable,
    ...otherChoice(observed, target),
    ...unservedLayouts(observed),
    ...untestedVersions({ ...observed, nodes: withKubelet(observed) }, target, etcdTestedMinors),
    ...withoutApiServer(observed),
    ...otherEtcd(observed),
    ...withoutMember(observed),
    ...fewMembers(observed, target),
    ...expiredCas(observed, target),
    ...intermediates(target),
    ...unlikeNames(target),
    ...sameKeys(target),
    ...otherNewCas(target),
    ...withoutKeyId(target),
    ...sharedWithCluster(observed, target),
    ...otherTrust(observed, target),
    ...otherFiles(observed),
    ...otherSigners(observed, target),
    ...unsupported(target),
    ...(isFirst ? [...keyElsewhere(observed, target), ...upgradeInProgress(observed, target)] : []),
    // A plan with restarts waits for it: the previous run may have stopped while a member restarted.
    ...(restarts ? learners(observed) : disagreeing(observed)),
  ]
}

/** Returns why no phase can start or be complete. Workers do not use the CA of etcd. */
export function unseenEtcdNodes({ nodes, ...observed }: Observed<'nodes'>): readonly Refusal[] {
  const why =
    'its member of etcd and its API server may still trust only the old CA; repair the node, or remove its member from etcd and delete its Node object, or its entry in etcd of kcert.yaml'
  return unreachableNodes({ ...observed, nodes: etcdNodes({ ...observed, nodes }) }, why)
}

/** The journal with the choice may be lost. Members that do not trust both CAs would refuse unknown clients. */
function otherChoice(observed: Snapshot, { etcdClients }: Target): readonly Refusal[] {
  const isOther = etcdClients === 'known' && beganWithUnknownClients(observed)
  return isOther ? [changedChoice(etcdRotation, 'etcdClients', 'unknown', etcdClients)] : []
}

function withKubelet({ nodes }: Observed<'nodes'>): Observed<'nodes'>['nodes'] {
  return nodes.filter(({ isEtcdMachine }) => !isEtcdMachine)
}

/** A machine in kcert.yaml whose member is not found may have a member that another entry or nobody rotates. */
function withoutMember({ nodes, etcdMembers }: Observed<'nodes' | 'etcdMembers'>): readonly Refusal[] {
  const found = nodes.filter(({ name, isEtcdMachine, unreachable }) => {
    return isEtcdMachine && unreachable === undefined && onNode(etcdMembers, name).length === 0
  })
  return when(found.length > 0, {
    what: `no etcd member was found on etcd machines in kcert.yaml: ${shortList(found.map(({ name }) => name))}`,
    why: 'kcert reads the unit etcd.service of a machine with layout: plain, or the static pod of one with layout: kubeadm. Set units of the machine if its unit has another name, or remove the entry if it has no member',
    next,
  })
}

function otherEtcd(observed: Snapshot): readonly Refusal[] {
  const { etcdMembers } = observed
  const found = apiServers(observed).flatMap((api) =>
    Map.groupBy(otherEndpoints(api, etcdMembers), ({ flag }) => flag)
      .entries()
      .map(([flag, its]) => {
        return `${api.id} --${flag}=${its.map(({ url }) => url?.host || '(not a URL)').join()}`
      })
      .toArray(),
  )
  const external =
    'List the machines of external etcd under etcd in kcert.yaml: see "Rotate the CA of external etcd" in docs/guides/rotate-ca.md'
  return [
    ...when(etcdMembers.length === 0, {
      what: 'no etcd member was found',
      why: `kcert finds members on control-plane nodes: static pods, and systemd units of nodes with layout: plain in kcert.yaml. ${external}`,
      next: 'kcert rotate-ca discover --dry-run',
    }),
    ...when(etcdMembers.length > 0 && found.length > 0, {
      what: `endpoints of API servers at which no etcd member of this cluster was found: ${shortList(found)}`,
      why: `they are not in --listen-client-urls or --advertise-client-urls of a member that kcert found. ${external}. At other addresses, such as a load balancer, kcert reads the member ID from /metrics, as the client that the API server is. It did not find a member there. Correct the endpoint, or set the flag to --advertise-client-urls of the members`,
      next,
    }),
  ]
}

function fewMembers({ etcdMembers }: Snapshot, { acceptsOutage }: Target): readonly Refusal[] {
  const count = etcdMembers.length
  return when(count > 0 && count < 3 && !acceptsOutage, {
    what: `etcd has ${count === 1 ? 'only 1 member' : `${count} members`}`,
    why: 'while one restarts, etcd has no quorum: API servers wait for 10 to 14 s, and requests with a shorter timeout fail',
    next: 'kcert rotate-ca plan --accept-outage',
  })
}

/** A learner does not count for the quorum, and joins it at an unknown time. */
function learners({ etcdMembers }: Snapshot): readonly Refusal[] {
  const found = etcdMembers.filter(({ state }) => state?.isLearner).map(({ id }) => id)
  return when(found.length > 0, {
    what: `learners: ${shortList(found)}`,
    why: 'a member is joining; wait until it is promoted, or remove it',
    next,
  })
}

function disagreeing(observed: Snapshot): readonly Refusal[] {
  if (observed.etcdMembers.length === 0) return []
  return quorumGaps(observed).map(({ at, what }) => ({
    what: `etcd is not healthy: ${at} ${what}`,
    why: 'a restart of another member could end its quorum; repair this first',
    next,
  }))
}

/** Without key identifiers, a verifier with both CAs may choose the wrong one of the old CA and the bridge certificate. */
function withoutKeyId(target: Target): readonly Refusal[] {
  const oldCa = changeOf(target, 'etcd')?.oldCa
  return when(oldCa !== undefined && oldCa.subjectKeyId === undefined, {
    what: `the etcd CA has no subject key identifier: ${oldCa?.subject}`,
    why: 'the bridge certificate must refer to it, so that every verifier builds the right path',
    next: 'kcert ca init --help',
  })
}

function sharedWithCluster(observed: Snapshot, target: Target): readonly Refusal[] {
  const spki = changeOf(target, 'etcd')?.oldCa.spki
  const shared = apiServers(observed).find((api) =>
    (['cluster', 'front-proxy'] as const).some((ca) =>
      certificatesIn(fileAt(observed, api.node, caFileOf(api, ca))).some(
        (digest) => spki !== undefined && observed.certificates.get(digest)?.spki === spki,
      ),
    ),
  )
  return when(shared !== undefined, {
    what: `etcd shares its CA with the cluster or the front proxy (on ${shared?.node})`,
    why: 'clients of the cluster could connect to etcd, and they would lose their CA; create a separate etcd CA first',
    next: 'kcert ca init --help',
  })
}

/** More CAs in a file would mean more clients that kcert does not know. */
function otherTrust(observed: Snapshot, target: Target): readonly Refusal[] {
  const change = changeOf(target, 'etcd')
  if (change === undefined) return []
  const { oldCa, newCa } = change
  const found = trustFiles(observed).filter(({ node, path }) => {
    const trust = certificatesIn(fileAt(observed, node, path)).join()
    return ![oldCa.digest, newCa.digest, bundleOf(change).join()].includes(trust)
  })
  return when(found.length > 0, {
    what: `files that do not contain exactly the etcd CA: ${shortList([...new Set(found.map(({ node, path }) => fileKey(node, path)))])}`,
    why: 'kcert replaces one CA by another; it does not know the clients of further CAs',
    next,
  })
}

function otherFiles(observed: Snapshot): readonly Refusal[] {
  const incomplete = observed.etcdMembers.flatMap(({ id, node, flags }) =>
    [...Object.values(servingFlags), ...trustFlags].flatMap((flag) =>
      fileAt(observed, node, flags[flag]) === undefined ? [`${id} --${flag}=${flags[flag] ?? ''}`] : [],
    ),
  )
  const apis = apiServers(observed).flatMap(({ id, node, flags }) => {
    return ['etcd-cafile', 'etcd-certfile'].flatMap((flag) =>
      fileAt(observed, node, flags[flag]) === undefined ? [`${id} --${flag}=${flags[flag] ?? ''}`] : [],
    )
  })
  const configured = observed.etcdMembers.flatMap(({ id, flags, process: running }) => {
    // It remains among the flags only if kcert cannot use the file.
    const path = flags['config-file'] ?? running?.flags['config-file']
    return path === undefined ? [] : [`${id} --config-file=${path}`]
  })
  const separate = observed.etcdMembers.flatMap(({ id, flags }) =>
    clientFlags.flatMap((flag) => (flags[flag] === undefined ? [] : [`${id} --${flag}=${flags[flag]}`])),
  )
  const shared = apiServers(observed).flatMap(({ id, flags }) =>
    kcertFolderIn(flags, 'etcd') === kcertFolderIn(flags, 'cluster') ? [id] : [],
  )
  return [
    ...when(configured.length > 0, {
      what: `unusable configuration files of etcd: ${shortList(configured)}`,
      why: 'kcert uses the file of a systemd unit, with an absolute path and one YAML document, if it has not changed since the member started. Restart the member after a change, or set flags instead of --config-file',
      next,
    }),
    ...when(separate.length > 0, {
      what: `etcd members with separate client certificates: ${shortList(separate)}`,
      why: 'kcert does not reissue them. Remove these flags: members then present the certificates of --cert-file and --peer-cert-file, which need the extended key usage clientAuth',
      next,
    }),
    ...when(incomplete.length > 0, {
      what: `files of etcd that are not set or cannot be read: ${shortList(incomplete)}`,
      why: 'kcert rotates the CA of members that use TLS for clients and for other members',
      next,
    }),
    ...when(shared.length > 0, {
      what: `--etcd-cafile and --client-ca-file of API servers are in one folder: ${shortList(shared)}`,
      why: "kcert's folder beside each CA file must belong to one CA; move the CA of etcd to a folder of its own",
      next,
    }),
    ...when(apis.length > 0, {
      what: `files of API servers that are not set or cannot be read: ${shortList(apis)}`,
      why: 'kcert rotates the CA of members that API servers verify, and to which they present a client certificate',
      next,
    }),
  ]
}

function otherSigners(observed: Snapshot, target: Target): readonly Refusal[] {
  const change = changeOf(target, 'etcd')
  if (change === undefined) return []
  const found = etcdLeafFiles(observed).filter((file) => {
    const leaf = leafIn(observed, file)
    return leaf?.signedBy !== change.oldCa.spki && !isOfNewCa(observed, file, change)
  })
  return when(found.length > 0, {
    what: `certificates that the etcd CA did not sign: ${shortList(found.map(({ node, path }) => fileKey(node, path)))}`,
    why: 'kcert reissues only certificates of the CA that it rotates',
    next,
  })
}

function unsupported({ newKeys, reason }: Target): readonly Refusal[] {
  return when(newKeys || reason === 'compromise', {
    what: 'new keys for the certificates of etcd are not supported',
    why: 'etcd reads certificate and key from two files at each handshake, which cannot be replaced at once. Rotate the CA without --new-keys and --reason compromise',
    next: 'kcert rotate-ca plan',
  })
}

function keyElsewhere(observed: Snapshot, target: Target): readonly Refusal[] {
  const change = changeOf(target, 'etcd')
  // From phase 3 on, the key beside the CA is the new one.
  const isSigned = change?.bridge !== undefined && !isPlanned(change.bridge)
  const oldKeys = caKeyFiles(observed, trustFiles(observed)).filter(
    ({ contains }) => contains.kind === 'key' && contains.spki === change?.oldCa.spki,
  )
  return when(change === undefined || !(isSigned || oldKeys.length > 0), {
    what: 'no control-plane node or etcd machine has the key of the etcd CA',
    why: 'phase 1 signs the bridge certificate with it; copy it beside the file of --etcd-cafile on one control-plane node, or beside the --trusted-ca-file of a member (mode 0600)',
    next,
  })
}
