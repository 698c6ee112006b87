import type { ControllerManager, ExplainFacts, Holder } from '../csr/explain/facts.ts'
import type { Cluster } from './cluster.ts'
import type { ApiObject } from './malformed.ts'
import type { ObjectsApi } from './objects.ts'
import type { Resource } from './resource.ts'

const system = 'kube-system'
const component = 'kube-controller-manager'
const rbac = { group: 'rbac.authorization.k8s.io', version: 'v1' } as const

const lease: Resource = {
  group: 'coordination.k8s.io',
  version: 'v1',
  resource: 'leases',
  namespace: system,
  name: component,
}
const pods: Resource = { group: '', version: 'v1', resource: 'pods', namespace: system }

/** Returns the facts of a cluster that say why a request stands still. A lookup that is not allowed throws KCERT_API_FORBIDDEN. */
export function explainFactsOf({ objects, access }: Pick<Cluster, 'objects' | 'access'>): ExplainFacts {
  return {
    isAllowed: (question) => access.isAllowed(question),
    async readControllerManager() {
      const [found, commandLine] = await Promise.all([objects.get(lease), commandLineOf(objects)])
      if (found === undefined && commandLine === undefined) return 'absent'
      return { ...leaseFacts(found), ...(commandLine === undefined ? {} : { commandLine }) }
    },
    async findHolders(verb, signerName) {
      const roles = new Set<string>()
      for await (const role of objects.list({ ...rbac, resource: 'clusterroles' }))
        if (rulesOf(role).some((rule) => gives(rule, verb, signerName))) roles.add(nameOf(role))
      const holders = new Map<string, Holder>()
      for await (const binding of objects.list({ ...rbac, resource: 'clusterrolebindings' })) {
        const { roleRef, subjects } = binding as Binding
        if (!roles.has(roleRef?.name ?? '')) continue
        for (const subject of subjects ?? []) holders.set(JSON.stringify(subject), holderOf(subject))
      }
      return [...holders.values()]
    },
  }
}

function leaseFacts(object: ApiObject | undefined): Pick<ControllerManager, 'renewedAt' | 'holder'> {
  const { renewTime, holderIdentity } = (object as Lease | undefined)?.spec ?? {}
  const renewedAt = new Date(renewTime ?? Number.NaN)
  return {
    ...(Number.isNaN(renewedAt.getTime()) ? {} : { renewedAt }),
    ...(holderIdentity ? { holder: holderIdentity } : {}),
  }
}

/** Of kubeadm's static pod; undefined where there is none, or where pods may not be read. */
async function commandLineOf(objects: ObjectsApi): Promise<readonly string[] | undefined> {
  try {
    for await (const pod of objects.list(pods, { labelSelector: `component=${component}` })) {
      const [container] = (pod as Pod).spec?.containers ?? []
      if (container !== undefined) return [...(container.command ?? []), ...(container.args ?? [])]
    }
  } catch {
    // The Lease alone says whether it runs; its flags are a help where they can be seen.
  }
  return undefined
}

interface Lease {
  readonly spec?: { readonly renewTime?: string; readonly holderIdentity?: string }
}

interface Pod {
  readonly spec?: {
    readonly containers?: readonly {
      readonly command?: readonly string[]
      readonly args?: readonly string[]
    }[]
  }
}

interface Rule {
  readonly apiGroups?: readonly string[]
  readonly resources?: readonly string[]
  readonly resourceNames?: readonly string[]
  readonly verbs?: readonly string[]
}

interface Subject {
  readonly kind?: string
  readonly name?: string
  readonly namespace?: string
}

interface Binding {
  readonly roleRef?: { readonly name?: string }
  readonly subjects?: readonly Subject[]
}

/** Rules about all resources are passed over: whoever may do everything is not an approver or signer for that. */
function gives(
  { apiGroups, resources, resourceNames, verbs }: Rule,
  verb: string,
  signerName: string,
): boolean {
  const names = [signerName, `${signerName.split('/')[0]}/*`]
  return (
    (apiGroups ?? []).includes('certificates.k8s.io') &&
    (resources ?? []).includes('signers') &&
    (verbs ?? []).some((one) => one === verb || one === '*') &&
    (!resourceNames?.length || resourceNames.some((name) => names.includes(name)))
  )
}

function rulesOf(role: ApiObject): readonly Rule[] {
  return Array.isArray(role.rules) ? (role.rules as Rule[]) : []
}

function nameOf(object: ApiObject): string {
  return (object.metadata as { name?: string } | undefined)?.name ?? ''
}

function holderOf({ kind = 'User', name = '', namespace }: Subject): Holder {
  return { kind, name: namespace === undefined ? name : `${namespace}/${name}` }
}
