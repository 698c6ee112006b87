import {
  type ControllerEvent,
  controllerName,
  eventNamespace,
  leftPending,
} from '../csr/controller-events.ts'
import type { ControllerManager, ExplainFacts, Holder } from '../csr/explain/facts.ts'
import { isObject } from '../errors/is-object.ts'
import type { Cluster } from './cluster.ts'
import { type ObjectOf, resources } from './kinds.ts'
import type { ApiObject } from './malformed.ts'
import type { ObjectsApi } from './objects.ts'
import { getOne, listEach } from './readable.ts'

const component = 'kube-controller-manager'
const events = { group: '', version: 'v1', resource: 'events', namespace: eventNamespace } as const
const pods = { ...resources.pods, namespace: 'kube-system' } as const

type Rule = NonNullable<ObjectOf<'clusterroles'>['rules']>[number]

/**
 * Returns the facts of a cluster that explain why a request makes no progress. Throws KCERT_API_FORBIDDEN when a lookup is not
 * allowed.
 */
export function explainFactsOf({ objects, access }: Pick<Cluster, 'objects' | 'access'>): ExplainFacts {
  return {
    isAllowed: (question) => access.isAllowed(question),
    async readLeftPending(uid) {
      let last: ControllerEvent | undefined
      for await (const object of objects.list(events, { fieldSelector: `involvedObject.uid=${uid}` })) {
        const event = controllerEventOf(object)
        if (event !== undefined && event.time >= (last?.time ?? '')) last = event
      }
      return last ?? 'none'
    },
    async readControllerManager() {
      const [found, commandLine] = await Promise.all([
        getOne(objects, { ...resources.leases, name: component }),
        commandLineOf(objects),
      ])
      if (found === undefined && commandLine === undefined) return 'absent'
      return { ...leaseFacts(found), ...(commandLine === undefined ? {} : { commandLine }) }
    },
    async findHolders(verb, signerName) {
      const roles = new Set<string>()
      for await (const { metadata, rules = [] } of listEach(objects, resources.clusterRoles))
        if (rules.some((rule) => gives(rule, verb, signerName))) roles.add(metadata.name)
      const holders = new Map<string, Holder>()
      for await (const { roleRef, subjects = [] } of listEach(objects, resources.clusterRoleBindings)) {
        if (!roles.has(roleRef?.name ?? '')) continue
        for (const subject of subjects) {
          const { kind = 'User', name = '', namespace } = subject
          const holder = { kind, name: namespace === undefined ? name : `${namespace}/${name}` }
          holders.set(JSON.stringify(subject), holder)
        }
      }
      return [...holders.values()]
    },
  }
}

/** Returns the Event if kcert controller wrote it on a request that it leaves pending. */
function controllerEventOf({ source, reason, message, lastTimestamp: time }: ApiObject) {
  const isOwn = isObject(source) && source.component === controllerName && reason === leftPending
  if (!isOwn || typeof message !== 'string' || typeof time !== 'string') return undefined
  return { reason, message, time }
}

function leaseFacts(lease: ObjectOf<'leases'> | undefined): Pick<ControllerManager, 'renewedAt' | 'holder'> {
  const { renewTime, holderIdentity } = lease?.spec ?? {}
  const renewedAt = new Date(renewTime ?? Number.NaN)
  return {
    ...(Number.isNaN(renewedAt.getTime()) ? {} : { renewedAt }),
    ...(holderIdentity ? { holder: holderIdentity } : {}),
  }
}

/** The flags of kubeadm's static pod; undefined where there is none, or where pods may not be read. */
async function commandLineOf(objects: ObjectsApi): Promise<readonly string[] | undefined> {
  try {
    for await (const { spec } of listEach(objects, pods, { labelSelector: `component=${component}` })) {
      const [container] = spec?.containers ?? []
      if (container !== undefined) return [...(container.command ?? []), ...(container.args ?? [])]
    }
  } catch {
    // The Lease alone shows whether it runs. Its flags help where they are readable.
  }
  return undefined
}

/** Rules for all resources are ignored: a cluster administrator is not an approver or signer. */
function gives(
  { apiGroups = [], resources: kinds = [], resourceNames = [], verbs = [] }: Rule,
  verb: string,
  signerName: string,
): boolean {
  const names = [signerName, `${signerName.split('/')[0]}/*`]
  return (
    apiGroups.includes('certificates.k8s.io') &&
    kinds.includes('signers') &&
    verbs.some((one) => one === verb || one === '*') &&
    (resourceNames.length === 0 || resourceNames.some((name) => names.includes(name)))
  )
}
